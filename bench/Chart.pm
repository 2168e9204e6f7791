# Charts as SVG, by gnuplot. A card of its own colour keeps them readable on light and dark pages.
package Chart;
use strict;
use warnings;

our $directory;
my %colour = (ours => 0x2f7d5b, floor => 0x8a8f98, other => 0xc0793a);
my %palette = (ours => ['#2f7d5b', '#86bfa3'], floor => ['#8a8f98', '#c4c8ce'], other => ['#c0793a', '#5b6fb5', '#b5495b', '#7b5aa6', '#a69a3a']);

sub gnuplot {
  my ($name, $height, $commands) = @_;
  open my $pipe, '|-', 'gnuplot' or die "gnuplot: $!\n";
  print $pipe <<"END";
set terminal svg size 860,$height dynamic font "Helvetica,Arial,sans-serif,13" background "#fbfaf7"
set output "$directory/$name.svg"
set border 3 lc rgb "#777777"
set tics textcolor rgb "#222222" nomirror
set tmargin 3
set xlabel textcolor rgb "#333333"
set ylabel textcolor rgb "#333333"
set key textcolor rgb "#222222"
set grid lc rgb "#dddddd"
$commands
END
  close $pipe or die "gnuplot failed on the chart \"$name\"\n";
}

sub quoted { my ($text) = @_; $text =~ s/([\\"])/\\$1/g; $text =~ s/([_^{}@&])/\\\\$1/g; return "\"$text\"" }

# bars NAME, TITLE, AXIS, LOG, [LABEL, KIND, MEDIAN, LEAST, GREATEST]...: the first is on top.
sub bars {
  my ($name, $title, $axis, $log, @bars) = @_;
  return unless @bars;
  my $data = '';
  my $at = @bars;
  for (@bars) {
    my ($label, $kind, @value) = @$_;
    my $number = sprintf $value[0] >= 100 ? '%.0f' : '%.3g', $value[0];
    $data .= join(' ', $at--, @value, $colour{$kind}, quoted($label), "\"$number\"") . "\n";
  }
  my ($most) = sort { $b <=> $a } map { $_->[4] } @bars;
  my ($least) = sort { $a <=> $b } map { $_->[2] } @bars;
  my $from = $log ? 10**int(log($least) / log(10)) : 0;
  my $to = $log ? $most * 3 : $most * 1.12;
  gnuplot($name, 70 + 26 * @bars, <<"END");
\$data << EOD
${data}EOD
set label 1 @{[quoted($title)]} at screen 0.02, screen 1 offset 0, -1.2 font ",15" textcolor rgb "#111111"
set xlabel @{[quoted($axis)]}
@{[$log ? 'set logscale x' : '']}
set xrange [$from:$to]
set yrange [0.4:@{[@bars + 0.6]}]
set grid noytics xtics
set style fill solid 0.85 noborder
set lmargin 30
unset key
plot \$data using 2:1:($from):2:(\$1-0.34):(\$1+0.34):5:ytic(6) with boxxyerror lc rgb variable, \\
     \$data using 2:1:3:4 with xerrorbars pt 0 lw 1.2 lc rgb "#222222", \\
     \$data using 4:1:7 with labels left offset 0.8,0 textcolor rgb "#222222"
END
}

# thinned [X, Y]...: without the points that lie on the ones before them on log scales.
sub thinned {
  my @kept = shift // return;
  for (@_) {
    my ($x, $y) = @{ $kept[-1] };
    push @kept, $_ if abs(log($_->[0] / $x)) > 0.06 || abs(log($_->[1] / $y)) > 0.15;
  }
  return @kept;
}

# lines NAME, TITLE, X AXIS, Y AXIS, SETTINGS, [LABEL, [X, Y]...]...
sub lines {
  my ($name, $title, $x, $y, $settings, @lines) = @_;
  return unless @lines;
  my ($data, %seen, @plots) = ('');
  for my $i (0 .. $#lines) {
    my ($label, @points) = @{ $lines[$i] };
    $data .= "\$line$i << EOD\n" . join('', map {"$_->[0] $_->[1]\n"} @points) . "EOD\n";
    my $kind = $label =~ /^next_id/ ? 'ours' : $label =~ /^(C:|no generator)/ ? 'floor' : 'other';
    my $colours = $palette{$kind};
    my $colour = $colours->[$seen{$kind}++ % @$colours];
    push @plots, "\$line$i using 1:2 with linespoints pt 7 ps 0.4 lw 2 lc rgb \"$colour\" title "
      . quoted($label);
  }
  gnuplot($name, 420, <<"END");
$data
set label 1 @{[quoted($title)]} at screen 0.02, screen 1 offset 0, -1.2 font ",15" textcolor rgb "#111111"
set xlabel @{[quoted($x)]}
set ylabel @{[quoted($y)]}
set key outside right top Left reverse
$settings
plot @{[join(', ', @plots)]}
END
}

1;
