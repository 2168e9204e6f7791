# Tests the web page that scripts/demo --report makes. The test records a run of the demo, draws the page, and opens the
# page in Chromium if Chromium is available.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use JSON::PP;
use List::Util qw(first max min);
use PostgreSQL::Test::Utils qw(slurp_file append_to_file command_ok);
use Test::More;

my $directory = PostgreSQL::Test::Utils::tempdir_short();
(my $bin = `pg_config --bindir`) =~ s/\n//;
command_ok([ 'initdb', '-D', "$directory/data", qw(--auth=trust --encoding=UTF8 --no-locale --no-sync) ], 'initdb');
append_to_file("$directory/data/postgresql.conf",
	"shared_preload_libraries = 'snowflake'\nlisten_addresses = ''\nunix_socket_directories = '$directory'\n");
{
	local %ENV = (%ENV, PGHOST => $directory, PGDATABASE => 'postgres', PGUSER => scalar getpwuid $>);
	delete $ENV{PGPORT};
	is(system("$^X -I t/lib scripts/demo.d/record.pl $bin $directory > $directory/recording.json"), 0, 'record.pl succeeds');
}
END
{
	local $?;
	system("$bin/pg_ctl", qw(stop -s -m immediate -D), "$directory/data") if defined $directory && -e "$directory/data/postmaster.pid";
}
is(system("$^X scripts/demo.d/report.pl $directory/recording.json > $directory/report.html"), 0, 'report.pl succeeds');

my $recording = decode_json(slurp_file("$directory/recording.json"));
my $page = slurp_file("$directory/report.html");

# Checks that the recording of the demo contains all events in the right order.
my @samples = @{ $recording->{samples} };
cmp_ok(scalar @samples, '>', 40, 'the recording has more than 40 samples');
my $ids = $samples[-1]{total}{ids};
is($recording->{count}{distinct}, $recording->{count}{ids}, 'ids in the tables are unique');
cmp_ok($recording->{count}{ids}, '<=', $ids, 'the statistics count every id in the tables');
cmp_ok($ids, '>', 10000, 'more than 10000 ids were minted');
is($samples[-1]{backward_steps}, 3, 'clock_history shows three steps back');
is(join(',', sort { $a <=> $b } map { $_->{shard} } @{ $samples[-1]{shards} }), '1,2,3,5', 'the samples have four shards');
cmp_ok(min(map { $_->{offset} } @samples), '<', -1.5, 'the clock was behind at some time');
cmp_ok(max(map { $_->{offset} } @samples), '>', 7000, 'the clock was far ahead at some time');
cmp_ok($samples[-1]{total}{refusals}, '>', 0, 'calls were refused while the clock was far ahead');
ok((first { ($_->{reason} // '') eq 'clock jumped ahead' } @samples), 'a sample has the reason of the refusals');
foreach my $shard (1, 2, 3, 5)
{
	my @last = map { $_->{last} // () } map { grep { $_->{shard} == $shard } @{ $_->{shards} } } @samples;
	is_deeply(\@last, [ sort { $a <=> $b } @last ], "the last ids of shard $shard ascend");
}

# Draws only the chart that README.md shows.
is(system("$^X scripts/demo.d/picture.pl $directory/recording.json > $directory/picture.svg"), 0, 'picture.pl succeeds');
my $picture = slurp_file("$directory/picture.svg");
like($picture, qr{^<svg xmlns=.*>${\scalar reverse join ',', unpack '(A3)*', reverse $recording->{count}{ids}} ids in the whole recording, 0 of them twice<.*</svg>$}s,
	'the chart says how many ids, none twice');
is(() = $picture =~ />set (?:back|ahead) /g, 3, 'the chart shows three steps of the clock');
like(slurp_file('doc/clock.svg'), qr{^<svg xmlns=.*> ?[\d,]+ ids in the whole recording, 0 of them twice<}s, "the chart of the README shows the number of ids");

# Checks that the page of the demo loads no other file and shows the values of the recording.
unlike($page, qr{(?:src|href)=(?!"data:)|url\(|\@import|<script}, 'the page loads no other file');
my $grouped = reverse join ',', unpack '(A3)*', reverse $recording->{count}{ids};
like($page, qr{<b>$grouped</b> ids, counted}, 'the page shows the number of ids');
like($page, qr{class="good"><b>0</b> of them twice}, 'the page shows that no id is a duplicate');
is(() = $page =~ /<svg /g, 12, 'the page has six drawings in two widths');
is(() = $page =~ m{<span class="badge">}g, 7, 'the page shows seven phases');
like($page, qr/refused: clock jumped ahead/, 'the page shows the reason of the refusals');
like($page, qr/the clock was stepped back by \d/, "the page shows a message of the server");
unlike($page, qr/NaN|\binf\b|HASH\(|ARRAY\(/i, 'the page contains no invalid number');

# Opens the page of the demo in the light and the dark colour scheme, in the width of a large screen and of a phone.
if (my $chromium = $ENV{SNOWFLAKE_CHROMIUM})
{
	my %background;
	foreach my $scheme (qw(light dark))
	{
		foreach my $width (390, 1200)
		{
			my $seen = look($chromium, $scheme, $width);
			my $name = "$scheme, $width pixels";
			is_deeply($seen->{console}, [], "$name: the console has no message");
			is($seen->{result}{width}, $width, "$name: the page has the width of the screen");
			cmp_ok($seen->{result}{scroll}, '<=', $width, "$name: the page needs no horizontal scrolling");
			is_deeply($seen->{result}{beyond}, [], "$name: nothing is cut off");
			is($seen->{result}{drawings}, 6, "$name: six drawings are visible");
			cmp_ok($seen->{result}{smallest}, '>=', 11, "$name: the smallest text has at least 11 pixels");
			cmp_ok($seen->{result}{contrast}, '>=', 4.5, "$name: the contrast of all text is at least 4.5");
			$background{$scheme} = $seen->{result}{background};
		}
	}
	isnt($background{light}, $background{dark}, 'the colour schemes differ');
}
else
{
	diag('the page was not opened, because Chromium is not available');
}

# Opens the page of the demo in a frame of the given width. Returns what a script measures on the page, such as the
# smallest text, and the messages of the browser's console.
sub look
{
	my ($chromium, $scheme, $width) = @_;
	my $inside = $page =~ s/&/&amp;/gr =~ s/"/&quot;/gr;
	my $file = "$directory/look_${scheme}_$width.html";
	open my $handle, '>:raw', $file or die "$file: $!";
	print $handle <<"HTML";
<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
<body><iframe id="page" style="border:0;width:${width}px;height:900px" srcdoc="$inside"></iframe><pre id="result"></pre>
<script>
addEventListener('load', () => {
  const view = document.getElementById('page').contentWindow, page = view.document;
  const rgb = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = colour => rgb(colour).map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = node => {
    for (; node; node = node.parentElement) {
      const colour = view.getComputedStyle(node).backgroundColor;
      if (!/, 0\\)\$/.test(colour)) return colour;
    }
  };
  const visible = [...page.querySelectorAll('body *')].filter(node => node.getClientRects().length);
  let smallest = 99, contrast = 99, beyond = [];
  for (const node of visible) {
    const box = node.getBoundingClientRect(), style = view.getComputedStyle(node);
    if (node instanceof view.SVGElement ? false : box.right > $width + 0.5 || box.left < 0) beyond.push(node.outerHTML.slice(0, 80));
    if (node.ownerSVGElement && node.tagName === 'text') {
      const drawing = node.ownerSVGElement.getBoundingClientRect();
      if (box.left < drawing.left - 0.5 || box.right > drawing.right + 0.5) beyond.push(node.outerHTML);
    }
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.data.trim())) continue;
    const scale = node.ownerSVGElement ? node.ownerSVGElement.getBoundingClientRect().width / node.ownerSVGElement.viewBox.baseVal.width : 1;
    smallest = Math.min(smallest, parseFloat(style.fontSize) * scale);
    if (node.classList.contains('number')) continue;
    const [a, b] = [light(node.ownerSVGElement ? style.fill : style.color), light(ground(node))].sort((a, b) => b - a);
    contrast = Math.min(contrast, (a + 0.05) / (b + 0.05));
  }
  document.getElementById('result').textContent = JSON.stringify({
    width: view.innerWidth, scroll: page.documentElement.scrollWidth, beyond, smallest, contrast,
    drawings: visible.filter(node => node.tagName === 'svg').length, background: view.getComputedStyle(page.body).backgroundColor });
});
</script>
HTML
	close $handle;
	my $profile = PostgreSQL::Test::Utils::tempdir();
	my @command = ($chromium, qw(--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage
		--disable-background-networking --disable-component-update --disable-sync --enable-logging=stderr),
		'--blink-settings=preferredColorScheme=' . ($scheme eq 'dark' ? 0 : 1), "--user-data-dir=$profile",
		'--window-size=1300,1000', '--virtual-time-budget=5000', '--dump-dom', "file://$file");
	local $ENV{HOME} = $profile;
	IPC::Run::run(\@command, '>', \my $dom, '2>', \my $err, IPC::Run::timeout(120));
	my ($result) = $dom =~ m{<pre id="result">(.+?)</pre>}s or die "no result\n$err";
	$result =~ s/&lt;/</g;
	$result =~ s/&gt;/>/g;
	$result =~ s/&amp;/&/g;
	return { result => decode_json($result), console => [ $err =~ /CONSOLE.*/g ] };
}

done_testing();
