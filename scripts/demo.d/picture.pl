# Draws the first chart of a recording as a separate picture. The chart shows the server's clock and the time of the
# newest id over the true time.
#
#   perl picture.pl recording.json > clock.svg

use strict;
use warnings FATAL => 'all';

use JSON::PP;
use List::Util qw(first max min);

my $recording = do { local $/; decode_json(<>) };
my @steps = grep { $_->{what} eq 'step' && abs $_->{by} < 60 } @{ $recording->{events} };
my ($from, $until) = ($steps[0]{at} - 2, $steps[-1]{at} + 2);
my @samples = grep { $_->{at} >= $from && $_->{at} <= $until } @{ $recording->{samples} };

my %frame = (width => 760, height => 300, left => 44, right => 16, top => 34, bottom => 34);
my $high = $until - $from + 0.5;
sub across { return $frame{left} + ($frame{width} - $frame{left} - $frame{right}) * ($_[0] - $from) / ($until - $from); }
sub up { return $frame{height} - $frame{bottom} - ($frame{height} - $frame{top} - $frame{bottom}) * $_[0] / $high; }

# The functions clock() and newest() return the server's clock and the time of the newest id. The two functions count
# seconds from the left edge of the picture.
sub clock { return $_[0]{offset} + $_[0]{at} - $from; }
sub newest { return max(map { $_->{last} // 0 } @{ $_[0]{shards} }) - $recording->{began} - $from; }

sub curve
{
	my ($class, @points) = @_;
	return qq{<path class="$class" d="M} . join('L', map { sprintf '%.1f %.1f', across($_->[0]), up($_->[1]) } @points) . qq{"/>\n};
}
sub text
{
	my ($x, $y, $what, $class) = @_;
	return sprintf qq{<text x="%.0f" y="%.0f" class="%s">%s</text>\n}, $x, $y, $class, $what;
}
sub seconds { return sprintf '%.3g s', abs $_[0]; }

# Draws a step of the clock as a vertical line between two points of the same time.
my (@clock, $before);
foreach my $sample (@samples)
{
	my $step = defined $before ? first { $_->{at} > $before->{at} - 0.05 && $_->{at} <= $sample->{at} + 0.05 } @steps : undef;
	push @clock, [ $step->{at}, $before->{offset} + $step->{at} - $from ], [ $step->{at}, $sample->{offset} + $step->{at} - $from ]
	  if $step && abs($sample->{offset} - $before->{offset}) > 0.03;
	push @clock, [ $sample->{at}, clock($sample) ];
	$before = $sample;
}
my @newest = map { [ $_->{at}, newest($_) ] } @samples;
my $svg = '';
for (my $s = 0; $s <= $until - $from; $s += 5)
{
	$svg .= sprintf qq{<path class="grid" d="M%.1f %.1fH%.1f"/>\n}, $frame{left}, up($s), $frame{width} - $frame{right};
	$svg .= text($frame{left} - 8, up($s) + 4, $s, 'scale end') . text(across($from + $s), $frame{height} - 14, $s || '0 s', 'scale middle');
}
foreach my $step (@steps)
{
	$svg .= sprintf qq{<path class="step" d="M%.1f %.1fV%.1f"/>\n}, across($step->{at}), $frame{top} - 6, $frame{height} - $frame{bottom};
	$svg .= text(across($step->{at}), $frame{top} - 14, 'set ' . ($step->{by} < 0 ? 'back ' : 'ahead ') . seconds($step->{by}), 'scale middle');
}
$svg .= curve('clock', @clock) . curve('newest', @newest);
my $count = $recording->{count};
my $ids = scalar reverse join ',', unpack '(A3)*', reverse $count->{ids};
my $twice = $count->{ids} - $count->{distinct};
my $x = $frame{width} - $frame{right} - 4;
$svg .= text($x, up(3.2), 'clock of the server', 'end is-clock') . text($x, up(2.1), 'time of the newest id', 'end is-newest')
  . text($x, up(1), "$ids ids in the whole recording, $twice of them twice", 'end');
print <<"SVG";
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $frame{width} $frame{height}" role="img"
  aria-label="The clock of a server is set back twice; the time of its newest id stands still meanwhile, and never goes back">
<!-- A recording by scripts/demo, whose option "report" draws one anew. -->
<style>
svg { background: #fff } text { font: 13px system-ui, sans-serif; fill: #1c2430 } .scale { fill: #5b6675; font-size: 12px }
.end { text-anchor: end } .middle { text-anchor: middle } path { fill: none; stroke-width: 2.5; stroke-linejoin: round }
.grid { stroke: #e3e1da; stroke-width: 1 } .step { stroke: #a9adb3; stroke-width: 1; stroke-dasharray: 3 3 }
.clock { stroke: #b4552d } .newest { stroke: #1f6fb2 } .is-clock { fill: #b4552d } .is-newest { fill: #1f6fb2 }
</style>
$svg</svg>
SVG
