# Causes each fault that doc/monitoring.md describes, and runs the statements that the page advises. Compares the table
# of log messages in doc/monitoring.md with the source code.

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

# Runs the next block of statements of a section of doc/monitoring.md.
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
like(next_block($title), qr/^t\|.*\npostgres|^t\|/, 'where to look first: the statements show that the database mints');
section_ends($title);

$title = 'The clock is behind';
$node->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES');
$node->clock->step(-600);
like($node->error_of('SELECT snowflake.next_id(5)'), qr/the clock is behind/, 'the clock is behind: next_id() fails');
my $step = qr/(?:59|60)\d{4}(?:\.\d+)?/;    # ms, with microseconds
like(next_block($title), qr/^[^|]+\|$step\|-$step\|.*\|00:(?:09|10):.*\n1\|$step$/, 'the clock is behind: the statement shows by how much');
$node->clock->step(+600);
is(next_block($title), 't|', 'the clock is behind: after the correction the database mints');
section_ends($title);

# Mints ids while the clock is two hours ahead, and corrects the clock.
sub be_ahead
{
	$node->clock->step(+7200);
	$node->safe_psql('postgres', 'SELECT snowflake.accept_clock()');
	$node->safe_psql('postgres', 'INSERT INTO photos (id) SELECT snowflake.next_id(g) FROM generate_series(1, 20) g');
	$node->clock->step(-7200);
	like($node->error_of('SELECT snowflake.next_id(5)'), qr/the clock is behind/, 'the clock was ahead: after the correction next_id() fails');
	like(next_block($title), qr/\|0(?:1:59|2:00):.*\n20\|/, 'the clock was ahead: the statement shows by how much, and the number of ids in the future');
	return;
}

sub is_put_right
{
	my ($said) = @_;
	like($said, qr/\nt\|$/, 'the clock was ahead: after the statements the database mints');
	my ($id) = $node->ids($insert);
	is($node->safe_psql('postgres', "SELECT abs(extract(epoch FROM clock_timestamp() - snowflake.time_of($id))) < 60"), 't', 'the clock was ahead: new ids have the present time');
	$node->safe_psql('postgres', 'INSERT INTO photos (id) SELECT snowflake.next_id(g % 30) FROM generate_series(1, 3000) g');
	is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM photos'), '0', 'the clock was ahead: all ids are unique');
	return;
}

$title = 'The clock was ahead, and was accepted';
my @again = @{ $blocks{$title} };
be_ahead();
next_block($title);
$node->poll_query_until('postgres', 'SELECT snowflake.next_id(5) > 0') or BAIL_OUT('nothing is minted under a larger lead');
pass('the clock was ahead: with a larger max_lead the database mints at once');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.max_lead');
next_block($title);
$node->restart;
like($node->error_of('SELECT snowflake.next_id(5)'), qr/the clock is behind the high-water mark \(sequence snowflake.high_water\)/, 'the clock was ahead: next_id() fails because of the mark');
is_put_right(next_block($title));
is($node->safe_psql('postgres', 'SELECT snowflake.region_of(max(id)), count(*) FROM photos WHERE id >= snowflake.min_id(now() + interval \'1 h\')'),
	'0|20', 'the clock was ahead: ids in the future remain, and have the old region');

begin('regionless', conf => "snowflake.layout = 'instagram'\n");
$node->safe_psql('postgres', 'CREATE TABLE likes (photo bigint REFERENCES photos ON UPDATE CASCADE)');
$blocks{$title} = [ @again[ 0, 4 ] ];
be_ahead();
$node->safe_psql('postgres', 'INSERT INTO likes SELECT id FROM photos');
my $shards = $node->safe_psql('postgres', 'SELECT snowflake.shard_of(id), count(*) FROM photos GROUP BY 1 ORDER BY 1');
$node->restart;
my $said = next_block($title);
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(id), count(*) FROM photos GROUP BY 1 ORDER BY 1'), $shards, 'without regions: the new ids of the rows have the same shards');
is($node->safe_psql('postgres', 'SELECT count(*) FROM photos WHERE snowflake.time_of(id) > clock_timestamp()'), '0', 'without regions: no id is in the future');
is($node->safe_psql('postgres', 'SELECT count(*) FROM photos JOIN likes ON photo = id'), $node->safe_psql('postgres', 'SELECT count(*) FROM likes'),
	'without regions: references have the new ids');
is_put_right($said);
section_ends($title);

begin('others', conf => "max_replication_slots = 5\n");
$title = 'The disk is full';
$node->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('abandoned', true)});
like(next_block($title), qr/^\d+\|.*\nabandoned\|f\|.*\n0\|0\|\|$/, 'the disk is full: the statement shows the slot that retains WAL');
is(next_block($title), '', 'the disk is full: the statement that drops the slot succeeds');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots'), '0', 'the disk is full: the slot does not exist any more');
like(next_block($title), qr/^t\|\n\d+\|\d+\|[\d.]+\|[\d.]+$/, 'the disk is full: the last statement shows that the database mints');
section_ends($title);

$title = 'A duplicate key was reported';
next_block($title) foreach 1 .. 2;
like(next_block($title), qr/^0\|100\|/, 'duplicate key: the statement shows the regions of the ids');
my ($far) = $node->ids(q{INSERT INTO photos VALUES (snowflake.make_id(clock_timestamp() + interval '80 ms', 5, 0)) RETURNING id});
next_block($title);
cmp_ok(($node->ids($insert))[0], '>', $far, 'duplicate key: after observe() ids are greater than the imported id');
like(next_block($title), qr/^[^|]*\|t\n1\|/, 'duplicate key: the mark is later than every id');
section_ends($title);

$title = 'A standby is asked to mint';
$node->backup('standby');
my $standby = Snowflake::Node->create_from_backup('standby', $node, 'standby', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
like($standby->error_of('SELECT snowflake.next_id(5)'), qr/25006/, 'a standby: next_id() fails');
like(next_block($title, $standby), qr/^t\|.*\nstreaming\|/, 'a standby: the statement shows that it is one, and its primary');
$node->stop('immediate');
# After the promotion, the high-water mark may be ahead of the clock by up to "snowflake.reserve".
like(next_block($title, $standby), qr/^t\n(?:t\|the database may be a clone\||f\|high-water mark \(sequence snowflake.high_water\) ahead of the clock\|)/, 'a standby: after the promotion health shows a clone, or a mark ahead of the clock');
$node = $standby;
cmp_ok(($node->ids($insert))[0], '>', $far, 'a standby: after the promotion ids are above all earlier ids');
section_ends($title);

$title = 'A database last minted elsewhere';
like(next_block($title), qr/^postgres\|t\|the database may be a clone\|\d+\|.*\n\d+\|/, 'last minted elsewhere: the statement shows the reason');
is(next_block($title), 't', 'last minted elsewhere: the statement accepts the clone');
is(next_block($title), 't||f', 'last minted elsewhere: afterwards the database mints and is no clone');
section_ends($title);

my $probe = delete $blocks{''};
is($node->safe_psql('postgres', join '', @$probe), 't||', 'the query for a probe shows that the database mints');
is(join(', ', sort keys %blocks), '', 'every section with statements was run');

# Returns the log messages of the source code, in the form that doc/monitoring.md uses.
sub messages_of_source
{
	my $source = join '', map { slurp_file("$FindBin::RealBin/../src/pg/errors/$_.cpp") } qw(log_messages errors_clone);
	$source =~ s/"\n\s*"//g;
	my @found = map { s/\\"/"/gr } $source =~ /errmsg\("((?:[^"\\]|\\.)*)"/g;
	my ($refusal) = grep { /^snowflake refuses/ } @found;
	my $causes = slurp_file("$FindBin::RealBin/../src/pg/errors/cause.cpp") =~ s/"\n\s*"//gr;
	my @whats = $causes =~ /\{"\w+",\s*"([^"]+)"/g;
	@found = map { s/%(?:lld|llu|s)(?: ms)?/\x{2026}/gr } grep { !/^snowflake refuses/ } @found;
	return (@found, map { ": $_" } @whats);
}

utf8::decode($page);
my ($table) = $page =~ /^\| message \|.*?\n((?:\|.*\n)+)/m;
my @told = map { /^\| `(.*?)`/ ? $1 : () } split /\n/, $table;
s/^.*?(?=: )// foreach grep { /^(?:snowflake refuses|\x{2026}:)/ } @told;
is(join("\n", sort @told), join("\n", sort(messages_of_source())), 'the table of messages on the page equals the messages of the source');

done_testing();
