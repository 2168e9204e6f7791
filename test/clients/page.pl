# Checks that doc/clients.md shows only tested code. Each example in doc/clients.md must be part of a program that the
# example's section links. Each program in test/clients/ must be linked in doc/clients.md.

use strict;
use warnings FATAL => 'all';

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $here = $FindBin::RealBin;
my $page = slurp_file("$here/../../doc/clients.md");

# Removes the indentation of all lines, and removes empty lines.
sub lines_of { return join "\n", grep { length } map { s/^\s+|\s+$//gr } split /\n/, $_[0]; }

my %text;
my %linked = map { $_ => 1 } $page =~ m{\.\./test/clients/([\w./-]+[.]\w+)\)}g;
foreach my $file (sort keys %linked)
{
	ok(-e "$here/$file", "$file is there") or next;
	$text{$file} = lines_of(slurp_file("$here/$file"));
}

# Checks that each example in doc/clients.md is part of a program that the same section links.
foreach my $section (split /^(?=## )/m, $page)
{
	my ($title) = $section =~ /^## (.*)/ or next;
	my @files = $section =~ m{\.\./test/clients/([\w./-]+[.]\w+)\)}g;
	foreach my $example ($section =~ /^```(?!sh\b)\w+\n(.*?)^```/msg)
	{
		my $lines = lines_of($example);
		ok((grep { index($text{$_} // '', $lines) >= 0 } @files), "$title: stands in " . join ', ', @files)
		  or diag($example);
	}
}

# Checks that doc/clients.md links every program of test/clients/.
my @programs = grep { !m{(?:^|/)(?:node_modules|migrations|lib|settings|tests|__init__|tap|Tap)[./]?} }
  map { s{^\Q$here\E/}{}r } glob("$here/*/*.{py,js,pl,php,rb,go,java}");
cmp_ok(scalar @programs, '>', 20, 'programs');
ok($linked{$_}, "$_ is on the page") foreach @programs;

# Checks links to sections of doc/clients.md, in doc/clients.md itself and in README.md.
my %anchor = map { (lc s/[^\w\- ]//gr) =~ tr/ /-/r => 1 } $page =~ /^## (.*)/mg;
ok($anchor{$_}, "there is a section $_") foreach $page =~ /\]\(#([\w-]+)\)/g,
  slurp_file("$here/../../README.md") =~ m{\(doc/clients\.md#([\w-]+)\)}g;

done_testing();
