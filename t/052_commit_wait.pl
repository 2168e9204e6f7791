# Tests commit wait with two servers whose clocks are wrong by the allowed maximum, in opposite directions.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(time);

# 0.9 s ahead and 0.9 s behind, both within their bounds: so far apart that no delay of the test can make up for it.
my $conf = <<'CONF';
snowflake.clock_error = '910ms'
snowflake.max_clock_error = '910ms'
snowflake.max_wait = '30s'
max_prepared_transactions = 3
CONF
my $ahead = Snowflake::Node->create_running('ahead', conf => "snowflake.region = 1\n$conf", clock => 0.9);
my $behind = Snowflake::Node->create_running('behind', conf => "snowflake.region = 2\n$conf", clock => -0.9);
$_->safe_psql('postgres', 'CREATE TABLE t (id bigint)') foreach $ahead, $behind;

# One server commits an id. Then a client that has seen the commit mints on the other one.
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
	cmp_ok(time - $start, '>=', 1.82, 'for which both errors were waited for');
}
cmp_ok(pair("BEGIN; SELECT snowflake.next_ids(1, 30000) IS NULL; $insert; SELECT snowflake.next_id(7) IS NULL; COMMIT"), '>', 0, 'also after a batch that ran ahead');
cmp_ok(pair("BEGIN; $insert; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'"), '>', 0, 'also of a transaction that was prepared');
cmp_ok(pair("BEGIN; SAVEPOINT s; $insert; RELEASE s; COMMIT"), '>', 0, 'also of a subtransaction');

# In the other direction the wait changes nothing.
$second->query_safe('SET snowflake.commit_wait = on');
cmp_ok(-pair('SELECT snowflake.next_id(9)'), '<', 0, 'both with commit wait');

# The wait can be interrupted, and the session continues.
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
pass('the wait shows as one for the clock');
my $rows = $ahead->safe_psql('postgres', 'SELECT count(*) FROM t');
is($ahead->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $waits"), 't', 'it can be cancelled');
my $end = $ahead->finish_writer($waiter);
like($end->{errors}, qr/canceling statement due to user request/, 'which is what the client is told');
is_deeply($end->{ids}, [4711], 'the session goes on');
is($ahead->safe_psql('postgres', 'SELECT count(*) FROM t'), $rows, 'what was cancelled is not committed');
$ahead->reconfigure('snowflake.max_clock_error' => "'910ms'");

# Errors: a wait longer than max_wait, and a clock that is not synchronized.
$ahead->refuses(
	"SET snowflake.commit_wait = on; SET snowflake.max_wait = '1s'; $insert",
	{
		sqlstate => '55000',
		message => 'the commit would wait too long for the clock',
		detail => 'The transaction\'s last id is of \d.*, the clock shows \d.* and may be wrong by 910\.000 ms, other servers\' by 910 ms: '
		  . 'after 0 ms the commit would wait \d+ ms more, and "snowflake.max_wait" is 1000 ms\.',
		hint => 'Raise "snowflake.max_wait", or lower "snowflake.max_clock_error" on all servers'
	},
	'a wait beyond max_wait');
$ahead->refuses(
	"SET snowflake.clock_error = '911ms'; SET snowflake.commit_wait = on; $insert",
	{
		sqlstate => '55000',
		message => 'the clock is not synchronized',
		detail => '"snowflake.clock_error" is 911 ms, "snowflake.max_clock_error" is 910 ms\.',
		hint => 'Check the time synchronization, or set "snowflake.clock_error"'
	},
	'a clock that is not synchronized');
is($ahead->safe_psql('postgres', "SELECT refusals FROM snowflake.refusals WHERE cause = 'commit_wait'"), '2', 'both are counted');

# If that holds for every session, or for those of a role, health shows it.
$ahead->safe_psql('postgres', "ALTER DATABASE postgres SET snowflake.clock_error = '911ms'");
is($ahead->safe_psql('postgres', 'SELECT minting FROM snowflake.health()'), 't', 'without commit_wait it mints');
foreach my $where ('SYSTEM', 'DATABASE postgres', 'ROLE ' . $ahead->safe_psql('postgres', 'SELECT current_user'))
{
	$ahead->safe_psql('postgres', "ALTER $where SET snowflake.commit_wait = on");
	$ahead->reload;
	$ahead->poll_query_until('postgres', "SELECT current_setting('snowflake.commit_wait') = 'on'");
	is($ahead->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health()'), 'f|commits that mint are refused: clock not synchronized', "health shows it: $where");
	$ahead->safe_psql('postgres', "ALTER $where RESET snowflake.commit_wait");
	$ahead->reload;
	$ahead->poll_query_until('postgres', "SELECT current_setting('snowflake.commit_wait') = 'off'");
}
is($ahead->safe_psql('postgres', 'SET snowflake.commit_wait = on; SELECT minting FROM snowflake.health()'), 't', 'the setting of a session says nothing of others');
$ahead->safe_psql('postgres', 'ALTER DATABASE postgres RESET snowflake.clock_error');

# The clock is corrected during the wait, which then uses the new time.
$ahead->clock->step(-0.9);
cmp_ok(pair($insert), '>', 0, 'after a correction of the clock');
$_->quit foreach $first, $second;

done_testing();
