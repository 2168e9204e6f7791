# Tests "snowflake.commit_wait" with two servers, of which one clock is ahead and the other clock is behind.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(time);

# One clock is 0.9 s ahead and the other clock is 0.9 s behind, which is within "snowflake.clock_error".
my $conf = <<'CONF';
snowflake.clock_error = '910ms'
snowflake.max_clock_error = '910ms'
snowflake.max_wait = '30s'
max_prepared_transactions = 3
CONF
my $ahead = Snowflake::Node->create_running('ahead', conf => "snowflake.region = 1\n$conf", clock => 0.9);
my $behind = Snowflake::Node->create_running('behind', conf => "snowflake.region = 2\n$conf", clock => -0.9);
$_->safe_psql('postgres', 'CREATE TABLE t (id bigint)') foreach $ahead, $behind;

# Commits an id on the first server, then mints an id on the second server, and returns the difference of the ids.
my $first = $ahead->session;
my $second = $behind->session;
$_->query_safe('SELECT snowflake.next_id(1)') foreach $first, $second;

sub pair
{
	my ($commit) = @_;
	my $one = $first->query_safe($commit);
	my $other = $second->query_safe('SELECT snowflake.next_id(1)');
	($one) = $one =~ /(\d{10,})/;
	return $other - $one;
}

my $insert = 'INSERT INTO t VALUES (snowflake.next_id(1)) RETURNING id';
cmp_ok(pair($insert), '<', 0, 'without commit wait an id minted after the commit may be smaller');
$first->query_safe('SET snowflake.commit_wait = on');
foreach my $round (1 .. 2)
{
	my $start = time;
	cmp_ok(pair($insert), '>', 0, "with commit wait an id minted after the commit is greater, round $round");
	cmp_ok(time - $start, '>=', 1.82, "round $round: the commit waited for the maximum errors of both clocks");
}
cmp_ok(pair("BEGIN; SELECT snowflake.next_ids(1, 30000) IS NULL; $insert; SELECT snowflake.next_id(7) IS NULL; COMMIT"), '>', 0, 'with commit wait the later id is greater after a batch ahead of the clock');
cmp_ok(pair("BEGIN; $insert; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'"), '>', 0, 'with commit wait the later id is greater after a prepared transaction');
cmp_ok(pair("BEGIN; SAVEPOINT s; $insert; RELEASE s; COMMIT"), '>', 0, 'with commit wait the later id is greater after a subtransaction');

$second->query_safe('SET snowflake.commit_wait = on');
cmp_ok(-pair('SELECT snowflake.next_id(9)'), '<', 0, 'the later id is greater if both sessions use commit wait');

# A commit that waits for the clock can be cancelled, and its session continues.
$ahead->reconfigure('snowflake.max_clock_error' => "'1min'");
my $waiter = $ahead->start_writer(<<~"SQL");
	\\unset ON_ERROR_STOP
	SET snowflake.max_wait = '1h';
	SET snowflake.commit_wait = on;
	INSERT INTO t VALUES (snowflake.next_id(1));
	SELECT 4711;
	SQL
my $waits = "FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event IN ('Extension', 'SnowflakeClock')";
$ahead->poll_query_until('postgres', "SELECT count(*) = 1 $waits") or BAIL_OUT('nobody waits');
pass('pg_stat_activity shows that the commit waits for the clock');
my $rows = $ahead->safe_psql('postgres', 'SELECT count(*) FROM t');
is($ahead->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $waits"), 't', 'pg_cancel_backend() finds the session that waits');
my $end = $ahead->finish_writer($waiter);
like($end->{errors}, qr/canceling statement due to user request/, 'the client gets the error that its statement was cancelled');
is_deeply($end->{ids}, [4711], 'the session continues after the cancelled commit');
is($ahead->safe_psql('postgres', 'SELECT count(*) FROM t'), $rows, 'the cancelled transaction is not committed');
$ahead->reconfigure('snowflake.max_clock_error' => "'910ms'");

# A commit fails if its wait for the clock would exceed "snowflake.max_wait", or if the clock is not synchronized.
$ahead->refuses(
	"SET snowflake.commit_wait = on; SET snowflake.max_wait = '1s'; $insert",
	{
		sqlstate => '55000',
		message => 'the commit would wait too long for the clock',
		detail => 'The last id of the transaction has the time \d.*\. The clock shows \d.* and may be wrong by 910\.000 ms; clocks of other servers may be wrong by 910 ms\. '
		  . 'The commit waited 0 ms and would wait \d+ ms more\. "snowflake.max_wait" is 1000 ms\.',
		hint => 'Raise "snowflake.max_wait"\. .*lower "snowflake.max_clock_error" on all servers'
	},
	'a commit fails if its wait would exceed max_wait');
$ahead->refuses(
	"SET snowflake.clock_error = '911ms'; SET snowflake.commit_wait = on; $insert",
	{
		sqlstate => '55000',
		message => 'the clock is not synchronized',
		detail => '"snowflake.clock_error" is 911 ms\. "snowflake.max_clock_error" is 910 ms\.',
		hint => 'Check the time synchronization, or set "snowflake.clock_error"'
	},
	'a commit fails if the clock is not synchronized');
is($ahead->safe_psql('postgres', "SELECT refusals FROM snowflake.refusals WHERE cause = 'commit_wait'"), '2', 'both refused commits are counted');

# If commits fail for every session, or for the sessions of one role, health() shows that commits fail.
$ahead->safe_psql('postgres', "ALTER DATABASE postgres SET snowflake.clock_error = '911ms'");
is($ahead->safe_psql('postgres', 'SELECT minting FROM snowflake.health()'), 't', 'without commit_wait health() shows that the database mints');
foreach my $where ('SYSTEM', 'DATABASE postgres', 'ROLE ' . $ahead->safe_psql('postgres', 'SELECT current_user'))
{
	$ahead->safe_psql('postgres', "LOAD 'snowflake'; ALTER $where SET snowflake.commit_wait = on");
	$ahead->reload;
	$ahead->poll_query_until('postgres', "SELECT current_setting('snowflake.commit_wait') = 'on'");
	is($ahead->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health()'), 'f|transactions with new ids cannot commit: clock not synchronized', "health() shows refused commits after ALTER $where SET snowflake.commit_wait");
	$ahead->safe_psql('postgres', "ALTER $where RESET snowflake.commit_wait");
	$ahead->reload;
	$ahead->poll_query_until('postgres', "SELECT current_setting('snowflake.commit_wait', true) IS DISTINCT FROM 'on'");
}
is($ahead->safe_psql('postgres', 'SET snowflake.commit_wait = on; SELECT minting FROM snowflake.health()'), 't', 'health() ignores commit_wait of its own session');
$ahead->safe_psql('postgres', 'ALTER DATABASE postgres RESET snowflake.clock_error');

$ahead->clock->step(-0.9);
cmp_ok(pair($insert), '>', 0, 'with commit wait the later id is greater after a correction of the clock');
$_->quit foreach $first, $second;

done_testing();
