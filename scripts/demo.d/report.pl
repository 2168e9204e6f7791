# Draws a recording of scripts/demo --report as an HTML page. The HTML page loads no other file, contains no script, and
# supports light and dark colour schemes.
#
#   perl report.pl recording.json > report.html
#
# Each chart is drawn twice, for wide and for narrow screens, because the text of an SVG picture is scaled with the
# picture.

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use JSON::PP;
use List::Util qw(first max min sum0);

my $recording = do { local $/; decode_json(<>) };
my @samples = @{ $recording->{samples} };
my $end = max($recording->{end}, $samples[-1]{at});
my %setting = %{ $recording->{settings} };
my @shards = sort { $a <=> $b } (keys %{ $recording->{rate} }, $recording->{bursting});
my @events = @{ $recording->{events} };
my $number = 0;
$_->{number} = ++$number foreach @events;

# A phase of the recording lasts from its first sample to the first sample of the next phase.
my @phases = map { phase($_) } 0 .. @events;

print page();

sub phase
{
	my ($i) = @_;
	my $from = $i == 0 ? 0 : $events[ $i - 1 ]{at};
	my $until = $i == @events ? $end : $events[$i]{at};
	my @inside = grep { $_->{at} >= $from && $_->{at} <= $until } @samples;
	my ($before) = reverse grep { $_->{at} < $from } @samples;
	$before //= $inside[0];
	my %did = (from => $from, until => $until, event => $i == 0 ? undef : $events[ $i - 1 ]);
	$did{$_} = total($inside[-1], $_) - total($before, $_) foreach qw(ids waits wait_ms refusals);
	$did{lead} = max(map { $_->{lead_ms} } @inside);
	$did{reason} = first { defined } map { $_->{reason} } @inside;
	$did{pause} = longest_pause($before, @inside);
	return \%did;
}

sub total
{
	my ($sample, $what) = @_;
	return $sample->{total}{$what};
}

sub of_shard
{
	my ($sample, $shard, $what) = @_;
	my $row = first { $_->{shard} == $shard } @{ $sample->{shards} };
	return $row ? $row->{$what} : undef;
}

# Returns the longest time in seconds without a new id. The returned time without a new id differs from the real time by
# at most the interval between two samples.
sub longest_pause
{
	my ($last, @inside) = @_;
	my $pause = 0;
	foreach my $sample (@inside)
	{
		$pause = max($pause, $sample->{at} - $last->{at});
		$last = $sample if total($sample, 'ids') > total($last, 'ids');
	}
	return $pause;
}

# Numbers and words

sub grouped { return scalar reverse join ',', unpack '(A3)*', reverse int($_[0] + 0.5); }
sub html { return $_[0] =~ s/&/&amp;/gr =~ s/</&lt;/gr =~ s/>/&gt;/gr =~ s/"/&quot;/gr; }

sub duration
{
	my ($seconds) = @_;
	return sprintf '%g h', $seconds / 3600 if abs $seconds >= 3600;
	return sprintf '%.3g s', $seconds if abs $seconds >= 1;
	return sprintf '%.0f ms', $seconds * 1000;
}

sub short
{
	my ($count) = @_;
	return sprintf '%.3gM', $count / 1e6 if $count >= 1e6;
	return sprintf '%.3gk', $count / 1e3 if $count >= 1e3;
	return sprintf '%.3g', $count;
}

sub title_of
{
	my ($event) = @_;
	return 'Start' unless $event;
	return "Shard $recording->{bursting} mints as fast as it can" if $event->{what} eq 'burst';
	return 'Clock set back by ' . duration(-$event->{by}) if $event->{by} < 0;
	return 'Clock set ahead by ' . duration($event->{by});
}

sub story_of
{
	my ($phase) = @_;
	my $event = $phase->{event};
	my $lead = duration($setting{max_lead} / 1000);
	my $guard = duration($setting{max_forward_jump});
	return 'Three shards post photos, one id a transaction.' unless $event;
	return "Ids run ahead of the clock, by up to ${\duration($phase->{lead} / 1000)} here; max_lead allows $lead."
	  if $event->{what} eq 'burst';
	my $pause = duration($phase->{pause});
	if ($event->{by} < 0)
	{
		return "Less than max_lead ($lead): ids go on ahead of the clock." if -$event->{by} * 1000 < $setting{max_lead};
		return 'The jump is taken back: minting goes on as if it had not been.' if -$event->{by} > $setting{max_forward_jump};
		return "More than max_lead ($lead): calls wait until the clock comes near the last id, $pause at most here, "
		  . 'and no id goes back.';
	}
	return "Further than max_forward_jump ($guard): once the reserve is used up calls are refused, until somebody corrects or accepts the clock."
	  if $event->{by} > $setting{max_forward_jump};
	return 'The clock is right again, and the next id has its time.';
}

# Drawing

# Returns the axes of a chart. $frame->{x} computes the horizontal position of a time, and $frame->{y} the vertical
# position of a value.
sub frame
{
	my (%is) = @_;
	my %frame = (left => 54, right => 10, top => 22, bottom => 24, %is);
	my $across = $frame{width} - $frame{left} - $frame{right};
	my $down = $frame{height} - $frame{top} - $frame{bottom};
	$frame{x} = sub { return $frame{left} + $across * $_[0] / $end };
	$frame{y} = sub {
		my $share = ($_[0] - $frame{low}) / ($frame{high} - $frame{low});
		return $frame{top} + $down * (1 - min(1.02, max(-0.02, $share)));
	};
	return \%frame;
}

sub text
{
	my ($x, $y, $what, $class) = @_;
	return sprintf '<text x="%.1f" y="%.1f" class="%s">%s</text>', $x, $y, $class, html($what);
}

sub line
{
	my ($x1, $y1, $x2, $y2, $class) = @_;
	return sprintf '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>', $x1, $y1, $x2, $y2, $class;
}

# Draws a line through the points of a chart. A point without a value interrupts the line.
sub curve
{
	my ($frame, $class, @points) = @_;
	my ($path, $pen) = ('', 'M');
	foreach my $point (@points)
	{
		if (!defined $point->[1]) { $pen = 'M'; next; }
		$path .= sprintf '%s%.1f %.1f', $pen, $frame->{x}->($point->[0]), $frame->{y}->($point->[1]);
		$pen = 'L';
	}
	return qq{<path d="$path" class="$class"/>};
}

sub area
{
	my ($frame, $class, @points) = @_;
	my $path = join 'L', map { sprintf '%.1f %.1f', $frame->{x}->($_->[0]), $frame->{y}->($_->[1]) }
	  [ $points[0][0], $frame->{low} ], @points, [ $points[-1][0], $frame->{low} ];
	return qq{<path d="M${path}Z" class="$class"/>};
}

sub grid
{
	my ($frame, $format, @values) = @_;
	my $svg = '';
	foreach my $value (@values)
	{
		my $y = $frame->{y}->($value);
		$svg .= line($frame->{left}, $y, $frame->{width} - $frame->{right}, $y, $value == 0 ? 'axis' : 'grid');
		$svg .= text($frame->{left} - 6, $y + 4, $format->($value), 'scale');
	}
	my $every = $frame->{width} < 500 ? 10 : 5;
	for (my $at = 0; $at <= $end; $at += $every)
	{
		$svg .= text($frame->{x}->($at), $frame->{height} - 6, $at == 0 ? '0 s' : $at, 'time');
	}
	return $svg;
}

# Draws a vertical line at the start of each phase, with the number that the page's list shows for the phase.
sub marks
{
	my ($frame, $without_numbers) = @_;
	my $svg = '';
	foreach my $event (@events)
	{
		my $x = $frame->{x}->($event->{at});
		$svg .= line($x, $frame->{top} - 4, $x, $frame->{height} - $frame->{bottom}, 'event');
		next if $without_numbers;
		$svg .= sprintf '<circle cx="%.1f" cy="10" r="8" class="badge"/>', $x;
		$svg .= text($x, 13.8, $event->{number}, 'number');
	}
	return $svg;
}

# draw LABEL HEIGHT CODE: draws a chart twice by calling CODE, once for wide screens and once for narrow screens.
sub draw
{
	my ($label, $height, $code) = @_;
	return join '', map {
		my ($class, $width) = @$_;
		qq{<svg class="$class" viewBox="0 0 $width $height" role="img" aria-label="} . html($label) . '">'
		  . $code->($width, $height) . "</svg>\n"
	} [ 'wide', 860 ], [ 'narrow', 330 ];
}

# Draws how far the server's clock and the time of the newest id differ from the true time. A correct clock is a
# horizontal line in the chart, because its difference from the true time is always 0. While the server mints no greater
# id, the newest id's difference from the true time decreases.
sub clock_drawing
{
	my $low = min(map { ($_->{offset}, newest($_) // 0) } @samples) - 0.2;
	my $high = 0.9;
	return draw('Clock of the server and time of the newest id, both less the true time', 260, sub {
		my $frame = frame(width => $_[0], height => $_[1], low => $low, high => $high);
		my $svg = grid($frame, sub { sprintf('%+.1f s', $_[0]) =~ s/\+0.0/0/r }, grep { $_ > $low } map { $_ / 2 } -6 .. 1);
		$svg .= marks($frame);
		my (@clock, @newest);
		my $before;
		foreach my $sample (@samples)
		{
			# A step of the clock becomes a vertical line at its exact time, because a sample was taken just before the
			# step.
			if (defined $before && abs($sample->{offset} - $before->{offset}) > 0.03)
			{
				my $event = first { $_->{at} > $before->{at} - 0.2 && $_->{at} <= $sample->{at} + 0.2 } @events;
				push @clock, [ $event->{at}, $before->{offset} ], [ $event->{at}, $sample->{offset} ] if $event;
			}
			push @clock, [ $sample->{at}, $sample->{offset} ];
			my $newest = newest($sample);
			push @newest, [ $sample->{at}, $newest ] if defined $newest;
			$before = $sample;
		}
		$svg .= curve($frame, 'clock', map { [ $_->[0], $_->[1] > $high ? $high * 1.01 : $_->[1] ] } @clock);
		$svg .= curve($frame, 'newest', @newest);
		my $jump = first { $_->{what} eq 'step' && $_->{by} > $setting{max_forward_jump} } @events;
		$svg .= text($frame->{x}->($jump->{at}) - 6, $frame->{y}->($high) + 12, 'to ' . sprintf('%+g h', $jump->{by} / 3600), 'note end')
		  if $jump;
		return $svg;
	});
}

# Returns the time of the newest id minus the true time, in seconds.
sub newest
{
	my ($sample) = @_;
	my $last = max(0, map { $_->{last} // 0 } @{ $sample->{shards} });
	return $last == 0 ? undef : $last - $recording->{began} - $sample->{at};
}

sub lead_drawing
{
	my $highest = max($setting{max_lead} * 1.2, 1);
	return draw('Lead: how far the newest id is ahead of the clock', 180, sub {
		my $frame = frame(width => $_[0], height => $_[1], low => 0, high => $highest);
		my @points = map { [ $_->{at}, $_->{lead_ms} ] } @samples;
		my @beyond = grep { $_->[1] > $highest } @points;
		my $svg = grid($frame, sub { $_[0] == 0 ? '0' : duration($_[0] / 1000) }, 0, $setting{max_lead} / 2, $setting{max_lead});
		$svg .= marks($frame, 1);
		$svg .= area($frame, 'lead-area', @points) . curve($frame, 'lead', @points);
		$svg .= line($frame->{left}, $frame->{y}->($setting{max_lead}), $frame->{width} - $frame->{right},
			$frame->{y}->($setting{max_lead}), 'bound');
		$svg .= text($frame->{width} - $frame->{right}, $frame->{y}->($setting{max_lead}) - 5, 'max_lead', 'note end');
		return $svg unless @beyond;
		my $top = (sort { $b->[1] <=> $a->[1] } @beyond)[0];
		$svg .= text($frame->{x}->($beyond[0][0]) + 4, 12, 'up to ' . duration($top->[1] / 1000), 'note');
		return $svg;
	});
}

# Draws the ids per second of one shard. The vertical axis of each shard's chart has its own scale.
sub rate_drawing
{
	my ($shard, $colour) = @_;
	my @points;
	my $since = $samples[0];
	foreach my $sample (@samples)
	{
		my $seconds = $sample->{at} - $since->{at};
		next if $seconds < 0.1;    # just before each step of the clock an additional sample was taken
		my ($before, $now) = map { of_shard($_, $shard, 'ids') // 0 } $since, $sample;
		push @points, [ $sample->{at}, ($now - $before) / $seconds ];
		$since = $sample;
	}
	my $highest = max(1, map { $_->[1] } @points);
	my $step = 10**int(log($highest) / log(10));
	my $tick = first { $_ <= $highest } map { $_ * $step } 5, 2, 1;
	my $ids = of_shard($samples[-1], $shard, 'ids') // 0;
	my $name = "Shard $shard";
	my $drawing = draw("$name: ids a second", 120, sub {
		my $frame = frame(width => $_[0], height => $_[1], low => 0, high => $highest * 1.08, top => 12);
		return grid($frame, \&short, 0, $tick) . marks($frame, 1) . area($frame, "fill c$colour", @points)
		  . curve($frame, "stroke c$colour", @points);
	});
	return "<h3><span class=\"dot c$colour\"></span>$name <small>" . grouped($ids) . ' ids, at most '
	  . short($highest) . " a second</small></h3>\n$drawing";
}

# The page

sub tiles
{
	my $count = $recording->{count};
	my $twice = $count->{ids} - $count->{distinct};
	my @tiles = (
		[ grouped($count->{ids}), 'ids, counted in the tables' ],
		[ grouped($twice), 'of them twice', $twice ? 'bad' : 'good' ],
		[ $samples[-1]{backward_steps} - $samples[0]{backward_steps}, 'steps back that the server saw' ],
		[ duration(max(map { $_->{pause} } grep { !$_->{refusals} } @phases)), 'longest pause without an error' ],
		[ grouped(sum0(map { $_->{refusals} } @phases)), 'calls refused' ]);
	return join '', map { sprintf "<li class=\"%s\"><b>%s</b> %s</li>\n", $_->[2] // '', @$_[ 0, 1 ] } @tiles;
}

sub phases
{
	return join '', map {
		my $phase = $_;
		my $number = $phase->{event} ? $phase->{event}{number} : 0;
		my @did = (grouped($phase->{ids}) . ' ids');
		push @did, grouped($phase->{waits}) . ' waits, ' . duration($phase->{wait_ms} / 1000) . ' in all' if $phase->{waits};
		push @did, grouped($phase->{refusals}) . ' refused' . ($phase->{reason} ? ": $phase->{reason}" : '') if $phase->{refusals};
		sprintf "<li><span class=\"badge\">%s</span><div><h3>%s</h3><p>%s</p><p class=\"did\">%s</p></div></li>\n",
		  $number || '·', html(title_of($phase->{event})), html(story_of($phase)), html(join '; ', @did)
	} @phases;
}

sub server_log
{
	my @lines = @{ $recording->{log} };
	return '' unless @lines;
	return "<section><h2>What the server's log said</h2>\n<div class=\"log\">"
	  . join('', map { sprintf "<p class=\"%s\"><b>%s</b> %s</p>\n", lc $_->{severity}, $_->{severity}, html($_->{text}) } @lines)
	  . "</div></section>\n";
}

sub page
{
	my $server = $recording->{server};
	my $style = style();
	my $rates = join '', map { '<div class="panel">' . rate_drawing($shards[$_], $_ + 1) . "</div>\n" } 0 .. $#shards;
	my ($tiles, $phases, $clock, $lead, $log) = (tiles(), phases(), clock_drawing(), lead_drawing(), server_log());
	return <<"HTML";
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>snowflake: ids while the clock is stepped</title>
<link rel="icon" href="data:,">
<style>
$style</style>
</head>
<body>
<header>
<h1>Ids while the clock is stepped</h1>
<p>snowflake $server->{snowflake} in PostgreSQL ${\html($server->{postgres})}, layout $server->{layout}. A throw-away server minted ids for four
shards for ${\sprintf '%.0f', $end} seconds, and its clock was set back and ahead meanwhile. All that is drawn was read from the
views <code>health</code>, <code>clock_history</code>, <code>database_stats</code> and <code>shard_stats</code>, five times a second.</p>
</header>
<ul class="tiles">
$tiles</ul>
<section>
<h2>The clock, and the newest id</h2>
<p class="key"><span class="swatch clock"></span>clock of the server, <span class="swatch newest"></span>time of the newest
id; both less the true time. Where the line of the newest id falls, none is minted: ids wait, and never go back.</p>
$clock</section>
<section>
<h2>Lead</h2>
<p class="key">How far the shard that is furthest ahead of the clock is.</p>
$lead</section>
<section>
<h2>Ids a second</h2>
<div class="panels">
$rates</div>
</section>
<section>
<h2>What happened</h2>
<ol class="phases">
$phases</ol>
</section>
$log<footer>
<p>The clock is that of a library that the server was started with; no clock of the machine was set. The rates are those of four
clients that insert what they mint: bench/RESULTS.md has the extension's own.</p>
</footer>
</body>
</html>
HTML
}

sub style
{
	open my $file, '<', dirname(__FILE__) . '/report.css' or die "report.css: $!";
	local $/;
	return scalar <$file>;
}
