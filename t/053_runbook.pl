# Runs the runbook of doc/monitoring.md: each statement as the page has it, under the fault that it is for. Also
# compares the page's table of messages with the source.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Ledger;
use Snowflake::Node;
use Snowflake::Page;
use Test::More;

my $file = "$FindBin::RealBin/../doc/monitoring.md";
my $page = slurp_file($file);
my %blocks = Snowflake::Page::blocks($file);

my $node;

# Runs the next block of a section; dies if a statement of it fails.
sub next_block
{
	my ($title, $on) = @_;
	my $block = shift @{ $blocks{$title} } // BAIL_OUT("the page has no more statements under \"$title\"");
	return ($on // $node)->safe_psql('postgres', $block);
}

sub section_ends
{
	my ($title) = @_;
	is_deeply(delete $blocks{$title}, [], "all statements of \"$title\" were run");
	return;
}

sub begin
{
	my ($name, %params) = @_;
	$node->stop if defined $node;
	$node = Snowflake::Node->create_running($name, allows_streaming => 1, %params);
	$node->safe_psql('postgres', <<~'SQL');
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text);
		INSERT INTO photos (caption) SELECT g FROM generate_series(1, 100) g;
		SQL
	return;
}

my $insert = 'INSERT INTO photos (id) VALUES (snowflake.next_id(5)) RETURNING id';

begin('main');
my $title = 'Where to look first';
like(next_block($title), qr/^t\|.*\npostgres|^t\|/, 'where to look first: minting');
section_ends($title);

$title = 'The clock is behind';
$node->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES');
$node->clock->step(-600);
like($node->error_of('SELECT snowflake.next_id(5)'), qr/the clock is behind/, 'the clock is behind');
my $step = qr/(?:59|60)\d{4}(?:\.\d+)?/;    # ms, with microseconds
like(next_block($title), qr/^[^|]+\|$step\|-$step\|.*\|00:(?:09|10):.*\n1\|$step$/, 'how far is seen');
$node->clock->step(+600);
is(next_block($title), 't|', 'corrected, it is over');
section_ends($title);

# Mints under a clock that is two hours ahead, and corrects the clock.
sub be_ahead
{
	$node->clock->step(+7200);
	$node->safe_psql('postgres', 'SELECT snowflake.accept_clock()');
	$node->safe_psql('postgres', 'INSERT INTO photos (id) SELECT snowflake.next_id(g) FROM generate_series(1, 20) g');
	$node->clock->step(-7200);
	like($node->error_of('SELECT snowflake.next_id(5)'), qr/the clock is behind/, 'ids of the future: everything is refused');
	like(next_block($title), qr/\|0(?:1:59|2:00):.*\n20\|/, 'how far and how many is seen');
	return;
}

sub is_put_right
{
	my ($said) = @_;
	like($said, qr/\nt\|$/, 'minting goes on');
	my ($id) = $node->ids($insert);
	is($node->safe_psql('postgres', "SELECT abs(extract(epoch FROM clock_timestamp() - snowflake.time_of($id))) < 60"), 't', 'with ids of now');
	$node->safe_psql('postgres', 'INSERT INTO photos (id) SELECT snowflake.next_id(g % 30) FROM generate_series(1, 3000) g');
	is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM photos'), '0', 'and none twice');
	return;
}

$title = 'The clock was ahead, and was accepted';
my @again = @{ $blocks{$title} };
be_ahead();
next_block($title);
$node->poll_query_until('postgres', 'SELECT snowflake.next_id(5) > 0') or BAIL_OUT('nothing is minted under a larger lead');
pass('under a larger lead minting goes on at once');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.max_lead');
next_block($title);
$node->restart;
like($node->error_of('SELECT snowflake.next_id(5)'), qr/the clock is behind the high-water mark/, 'the mark keeps everybody waiting');
is_put_right(next_block($title));
is($node->safe_psql('postgres', 'SELECT snowflake.region_of(max(id)), count(*) FROM photos WHERE id >= snowflake.min_id(now() + interval \'1 h\')'),
	'0|20', 'the ids of the future stay, and are of the old region');

begin('regionless', conf => "snowflake.layout = 'instagram'\n");
$node->safe_psql('postgres', 'CREATE TABLE likes (photo bigint REFERENCES photos ON UPDATE CASCADE)');
$blocks{$title} = [ @again[ 0, 4 ] ];
be_ahead();
$node->safe_psql('postgres', 'INSERT INTO likes SELECT id FROM photos');
my $shards = $node->safe_psql('postgres', 'SELECT snowflake.shard_of(id), count(*) FROM photos GROUP BY 1 ORDER BY 1');
$node->restart;
my $said = next_block($title);
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(id), count(*) FROM photos GROUP BY 1 ORDER BY 1'), $shards, 'each row has kept its shard');
is($node->safe_psql('postgres', 'SELECT count(*) FROM photos WHERE snowflake.time_of(id) > clock_timestamp()'), '0', 'no id is of the future any more');
is($node->safe_psql('postgres', 'SELECT count(*) FROM photos JOIN likes ON photo = id'), $node->safe_psql('postgres', 'SELECT count(*) FROM likes'),
	'references have followed');
is_put_right($said);
section_ends($title);

begin('others', conf => "max_replication_slots = 5\n");
$title = 'The disk is full';
$node->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('abandoned', true)});
like(next_block($title), qr/^\d+\|.*\nabandoned\|f\|.*\n0\|0\|\|$/, 'what keeps the WAL is seen');
is(next_block($title), '', 'the slot is dropped');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots'), '0', 'and gone');
like(next_block($title), qr/^t\|\n\d+\|\d+\|[\d.]+\|[\d.]+$/, 'it is over');
section_ends($title);

$title = 'A duplicate key was reported';
next_block($title) foreach 1 .. 2;
like(next_block($title), qr/^0\|100\|/, 'which regions is seen');
my ($far) = $node->ids(q{INSERT INTO photos VALUES (snowflake.make_id(clock_timestamp() + interval '80 ms', 5, 0)) RETURNING id});
next_block($title);
cmp_ok(($node->ids($insert))[0], '>', $far, 'after observe() ids are greater than what came from elsewhere');
like(next_block($title), qr/^[^|]*\|t\n1\|/, 'the mark is later than every id');
section_ends($title);

$title = 'A standby is asked to mint';
$node->backup('standby');
my $standby = Snowflake::Node->create_from_backup('standby', $node, 'standby', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
like($standby->error_of('SELECT snowflake.next_id(5)'), qr/25006/, 'a standby refuses');
like(next_block($title, $standby), qr/^t\|.*\nstreaming\|/, 'what it is, and its primary, is seen');
$node->stop('immediate');
# The mark may be ahead of the clock by up to the reserve. The first call then waits.
like(next_block($title, $standby), qr/^t\n(?:t\|last minted elsewhere\||f\|high-water mark ahead of the clock\|)/, 'promoted, it mints, or will, and is to be accepted');
$node = $standby;
cmp_ok(($node->ids($insert))[0], '>', $far, 'above all that there was');
section_ends($title);

# The promoted standby is such a database.
$title = 'A database last minted elsewhere';
like(next_block($title), qr/^postgres\|t\|last minted elsewhere\|\d+\|.*\n\d+\|/, 'what it is, is seen');
is(next_block($title), 't', 'it is accepted');
is(next_block($title), 't||f', 'it is over');
section_ends($title);

my $probe = delete $blocks{''};
is($node->safe_psql('postgres', join '', @$probe), 't||', 'what a probe asks');
is(join(', ', sort keys %blocks), '', 'no statement of the page was left out');

# Messages: the page has exactly those of the source.
sub messages_of_source
{
	my $source = join '', map { slurp_file("$FindBin::RealBin/../src/pg/errors/$_.cpp") } qw(log_messages errors_clone);
	$source =~ s/"\n\s*"//g;
	my @found = map { s/\\"/"/gr } $source =~ /errmsg\("((?:[^"\\]|\\.)*)"/g;
	my ($refusal) = grep { /^snowflake refuses/ } @found;
	my @whats = slurp_file("$FindBin::RealBin/../src/pg/errors/cause.cpp") =~ /\{"\w+",\s*"([^"]+)"/g;
	@found = map { s/%(?:lld|llu|s)(?: ms)?/\x{2026}/gr } grep { !/^snowflake refuses/ } @found;
	return (@found, map { ": $_" } @whats);
}

utf8::decode($page);
my ($table) = $page =~ /^\| message \|.*?\n((?:\|.*\n)+)/m;
my @told = map { /^\| `(.*?)`/ ? $1 : () } split /\n/, $table;
s/^.*?(?=: )// foreach grep { /^(?:snowflake refuses|\x{2026}:)/ } @told;
is(join("\n", sort @told), join("\n", sort(messages_of_source())), 'the table of messages is that of the source');

done_testing();
