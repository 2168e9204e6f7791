# Tests calls that mint ids after the clock has jumped ahead, or while it is outside of the times that ids can have.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	restart_after_crash = on
	CONF
my $clock = $node->clock;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE DATABASE other');

my $ledger = Snowflake::Ledger->new;

sub in_time
{
	my ($name) = @_;
	my @ids = $node->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
	is( $node->safe_psql('postgres',
			"SELECT count(*) FROM unnest(ARRAY[" . join(',', @ids) . "]) AS id"
			. " WHERE abs(extract(epoch FROM clock_timestamp() - snowflake.time_of(id))) > 30"),
		'0', $name);
	return;
}

my %jumped = (
	sqlstate => '55000',
	message => 'the clock jumped ahead by [\d.]+ (?:min|h|days)',
	detail => 'The jump is \d+ ms long, but '
	  . '"snowflake.max_forward_jump" is 3600 s',
	hint => 'SELECT snowflake.accept_clock\(\)');

# If a jump of the clock is corrected before an id is minted, the jump changes neither the high-water mark nor later
# ids.
in_time('ids before all jumps are of the right time');
my $mark = $node->mark;
$clock->step(+7200);
$node->refuses('SELECT snowflake.next_id(1)', \%jumped, 'after a jump of two hours next_id() fails');
$node->refuses('SELECT snowflake.next_ids(2, 5)', \%jumped, 'after a jump of two hours next_ids() fails');
$node->refuses('SELECT snowflake.observe(snowflake.make_id(now(), 1, 1))', \%jumped, 'after a jump of two hours observe() fails');
$node->refuses('CREATE EXTENSION snowflake', \%jumped, 'after a jump of two hours CREATE EXTENSION fails', 'other');
is($node->mark, $mark, 'a refused jump does not raise the mark');
is( $node->safe_psql('postgres', "SELECT drift_ms BETWEEN 7140000 AND 7260000 FROM snowflake.health"),
	't', 'health shows a jump of two hours in the column drift_ms');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 7, 1))'),
	'7', 'functions that decode still work while the clock is refused');
$clock->step(-7200);
in_time('after a jump was corrected, ids have the right time');

# A server that preloads the library still detects a jump of the clock after a crash.
$node->set_preload(1);
$node->restart;
$clock->step(+7200);
my $victim = $node->start_writer('SELECT pg_sleep(600)');
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'PgSleep'");
my ($pid) = $node->ids("SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'");
$node->kill_backend($pid);
$node->finish_writer($victim);
$ledger->new_server_run;
$node->refuses('SELECT snowflake.next_id(1)', \%jumped, 'next_id() still fails if the server crashes after the jump');

$node->safe_psql('postgres', 'CREATE ROLE visitor');
$node->refuses(
	'SET ROLE visitor; SELECT snowflake.accept_clock()',
	{ sqlstate => '42501', message => 'permission denied for function accept_clock' },
	'an ordinary role may not call accept_clock()');
is($node->safe_psql('postgres', "SELECT snowflake.accept_clock() BETWEEN '1:59' AND '2:01'"),
	't', 'accept_clock() returns the size of the jump');
in_time('after accept_clock() ids have the time of the accepted clock');
is($node->safe_psql('postgres', "SELECT snowflake.accept_clock() < '1 min'"), 't', 'a second accept_clock() finds nothing to accept');

# The third of three clock jumps by 25 minutes is refused, because together the jumps exceed one hour.
foreach my $round (1, 2)
{
	$clock->step(+1500);
	in_time("after a further jump of 25 minutes, round $round, ids have the new time");
}
$clock->step(+1500);
$node->refuses('SELECT snowflake.next_id(1)', \%jumped, 'next_id() fails after three jumps of 25 minutes, which together exceed an hour');
$node->safe_psql('postgres', 'SELECT snowflake.accept_clock()');
in_time('after accept_clock() ids have the time after all three jumps');
$node->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.max_forward_jump = 86400');
$node->reload;
$node->poll_query_until('postgres',
	"SELECT setting = '86400' FROM pg_settings WHERE name = 'snowflake.max_forward_jump'");
$clock->step(+36000);
in_time('a jump of ten hours is not refused if max_forward_jump is a day');

my $now = $clock->offset;
$clock->set(1_704_067_200 - time);
my %before = (
	sqlstate => '55000',
	message => 'the clock is before the epoch of the ids',
	detail => 'The clock shows 2024-01-01 .*\. The epoch of the ids is 2025-01-01 00:00:00',
	hint => 'Correct the clock');
$node->refuses('SELECT snowflake.next_id(1)', \%before, 'next_id() fails while the clock is before the epoch');
$node->restart;
$ledger->new_server_run;
like($node->log_content, qr/WARNING:  "snowflake.epoch" 2025-01-01 00:00:00\+00 is in the future/,
	'a server that starts with a clock before the epoch warns');
$node->refuses('SELECT snowflake.next_id(1)', \%before, 'next_id() fails on a server that started with a clock before the epoch');
$node->refuses('CREATE EXTENSION snowflake', \%before, 'CREATE EXTENSION fails while the clock is before the epoch', 'other');
$clock->set($now);
in_time('if the clock is corrected by years to a time near the mark, nobody has to accept it');

$node->set_preload;
$node->stop;
$clock->set(2_840_140_800 - time);    # 2060-01-01
$ledger->new_server_run;
$node->start;
$node->refuses(
	'SELECT snowflake.next_id(1)',
	{
		sqlstate => '2200H',
		message => 'the id layout has no time values left',
		detail => 'Ids of layout 41/5\+8/10.* can only have times before 2059-11-04 19:53:47.776',
		hint => 'Move the database to a layout with more time bits or a later epoch'
	},
	'next_id() fails past the end of the layout');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now() - interval \'2 years\', 7, 1))'),
	'7', 'ids can be decoded past the end of their layout');
$node->stop;
$clock->set($now);
$node->start;
in_time('neither wrong clock has raised the mark: ids have the right time');
$ledger->check(70, 'ids are unique over clocks far ahead and far behind');

done_testing();
