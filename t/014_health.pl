# Tests health() while a disk stalls or a server is read-only by default. While calls that mint ids wait or fail,
# health() returns at once and shows the reason. Tests the counters of waiting and refused calls.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Disk;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	fsync = on
	wal_writer_delay = 10s
	snowflake.reserve = 200ms
	snowflake.clock_error = 5
	CONF
my $disk = Snowflake::Disk->new($node);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my $ledger = Snowflake::Ledger->new;

# Reads health() with a timeout, as a monitoring probe does.
sub health
{
	my ($columns) = @_;
	my ($out, $timed_out) = ('', 0);
	$node->psql('postgres', "SELECT $columns FROM snowflake.health()", stdout => \$out, timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \$timed_out);
	return $timed_out ? 'no answer' : $out;
}

sub becomes
{
	my ($columns, $expected, $name) = @_;
	my $found;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$found = health($columns);
		last if $found eq $expected;
		select undef, undef, undef, 0.1;
	}
	is($found, $expected, $name);
	return;
}

$node->mint($ledger);
is(health('minting, reason'), 't|', 'health() of a new database shows that it mints');

# While the disk of the WAL stalls, a call waits for the flush of the high-water mark.
select undef, undef, undef, 0.5;
my $stalled = "SELECT longest_mark_flush > 1000, mark_flushes FROM snowflake.database_stats";
my $before = $node->safe_psql('postgres', 'SELECT mark_flushes FROM snowflake.database_stats');
$disk->stall;
my $writer = $node->start_writer('SELECT snowflake.next_id(1)');
becomes('minting, reason', 'f|waiting for the WAL to be flushed to disk', 'health() shows that a call waits for the disk of the WAL');
is($node->safe_psql('postgres', $stalled), "t|$before", 'longest_mark_flush includes a wait that still lasts');
$disk->answer;
$ledger->record('writer', @{ $node->finish_writer($writer)->{ids} });
is(health('minting, reason'), 't|', 'health() shows that the database mints when the disk answers again');
cmp_ok($node->safe_psql('postgres', 'SELECT mark_flushes FROM snowflake.database_stats'), '>', $before, 'mark_flushes counts the wait when it has ended');
like($node->log_content, qr/LOG:  a call waited \d.* for the high-water mark to be flushed/, 'the log contains the wait for the disk');

$node->safe_psql('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on');
$node->reload;
becomes('minting, reason', 'f|"default_transaction_read_only" is on', 'health() shows a server that is read-only by default');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only');
$node->reload;
becomes('minting, reason', 't|', 'health() shows that the server mints when the setting is reset');
is($node->safe_psql('postgres', 'SET default_transaction_read_only = on; SELECT minting FROM snowflake.health()'), 't', "health() ignores default_transaction_read_only of its own session");
$node->safe_psql('postgres', 'CREATE ROLE probe LOGIN; ALTER ROLE probe SET default_transaction_read_only = on');
is($node->safe_psql('postgres', 'SELECT minting FROM snowflake.health()', extra_params => [ '-U', 'probe' ]), 't', 'health() ignores default_transaction_read_only of the role that calls it');
{
	local $ENV{PGOPTIONS} = '-c default_transaction_read_only=on';
	is(health('minting, reason'), 't|', 'health() ignores default_transaction_read_only of the connection options');
}
my $older = $node->session('postgres');
my $seen = sub { $older->query_safe('SELECT minting, reason FROM snowflake.health()') };
is($seen->(), 't|', 'an open session sees that the database mints');
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET default_transaction_read_only = on');
is(health('minting, reason'), 'f|"default_transaction_read_only" is on', 'health() shows a database that is read-only by default');
is($seen->(), 'f|"default_transaction_read_only" is on', 'a session from before the change also sees that the database is read-only by default');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER DATABASE postgres SET default_transaction_read_only = off; ALTER ROLE ALL SET default_transaction_read_only = on');
is($seen->(), 't|', 'a setting of the database overrides one of ALTER ROLE ALL');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only');
is($seen->(), 'f|"default_transaction_read_only" is on', 'health() shows ALTER ROLE ALL SET default_transaction_read_only');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER ROLE ALL RESET default_transaction_read_only');
is($seen->(), 't|', 'health() shows that the database mints after ALTER ROLE ALL RESET');
$older->quit;

my $counted = sub { $node->safe_psql('postgres', "SELECT refusals FROM snowflake.refusals WHERE cause = '$_[0]'") };
$node->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET UNLOGGED');
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'would not survive a crash' }, 'next_id() fails with an unlogged mark') for 1 .. 2;
is($counted->('mark_unsafe'), '2', 'refusals because of an unlogged mark are counted');
$node->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET LOGGED');

$node->reconfigure('snowflake.clock_error' => "'500ms'", 'snowflake.max_clock_error' => "'5s'");
my $waits = $node->safe_psql('postgres', 'SELECT commit_waits FROM snowflake.database_stats');
$writer = $node->start_writer("SET snowflake.max_wait = '60s'; SET snowflake.commit_wait = on; SELECT snowflake.next_id(1)");
$node->poll_query_until('postgres', "SELECT count(pg_cancel_backend(pid)) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event IN ('Extension', 'SnowflakeClock')");
like($node->finish_writer($writer)->{errors}, qr/canceling statement/, 'a commit wait can be cancelled');
is($node->safe_psql('postgres', 'SELECT commit_waits, commit_wait_time > 0 FROM snowflake.database_stats'), ($waits + 1) . '|t', 'a cancelled commit wait is counted');
$node->reconfigure('snowflake.clock_error' => "'5ms'");

# A step of the clock does not change the rate of ids in the statistics, because the rate uses the time since boot.
$node->safe_psql('postgres', 'SELECT snowflake.reset_stats(); SELECT count(snowflake.next_id(9)) FROM generate_series(1, 1000)');
select undef, undef, undef, 1;
$node->clock->step(-3600);
cmp_ok($node->safe_psql('postgres', 'SELECT rate FROM snowflake.database_stats'), '<', 1001, 'the rate of the database is right after the clock was set back');
cmp_ok($node->safe_psql('postgres', 'SELECT max(rate) FROM snowflake.shard_stats'), '<', 1001, 'the rate of a shard is right after the clock was set back');
$node->clock->step(+3600 + 1800);
cmp_ok($node->safe_psql('postgres', 'SELECT rate FROM snowflake.database_stats'), '>', 1, 'the rate of the database is right after the clock was set ahead');
$ledger->check(300, 'ids are unique over the whole test');

done_testing();
