print "later\n";
