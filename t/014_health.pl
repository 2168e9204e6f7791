# Tests health() while a disk stalls or a server is fenced: it waits for nothing, and does not report minting if calls
# hang or fail. Also tests what is counted. See 015 for all states.

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

# Like a probe, with a timeout.
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
is(health('minting, reason'), 't|', 'all is well');

# The disk of the WAL stalls, and a call waits for the flush of the mark.
select undef, undef, undef, 0.5;
my $stalled = "SELECT longest_mark_flush > 1000, mark_flushes FROM snowflake.database_stats";
my $before = $node->safe_psql('postgres', 'SELECT mark_flushes FROM snowflake.database_stats');
$disk->stall;
my $writer = $node->start_writer('SELECT snowflake.next_id(1)');
becomes('minting, reason', 'f|waiting for the disk of the WAL', 'health says that the disk does not answer');
is($node->safe_psql('postgres', $stalled), "t|$before", 'the wait counts while it lasts');
$disk->answer;
$ledger->record('writer', @{ $node->finish_writer($writer)->{ids} });
is(health('minting, reason'), 't|', 'it answers again');
cmp_ok($node->safe_psql('postgres', 'SELECT mark_flushes FROM snowflake.database_stats'), '>', $before, 'the wait is counted');
like($node->log_content, qr/LOG:  a call waited \d.* for the high-water mark to be flushed/, 'and told');

# Fenced by a setting: every call fails.
$node->safe_psql('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on');
$node->reload;
becomes('minting, reason', 'f|read-only by default', 'a server that is read-only by default does not mint');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only');
$node->reload;
becomes('minting, reason', 't|', 'it is over');
is($node->safe_psql('postgres', 'SET default_transaction_read_only = on; SELECT minting FROM snowflake.health()'), 't', "a session's own setting is its own");
$node->safe_psql('postgres', 'CREATE ROLE probe LOGIN; ALTER ROLE probe SET default_transaction_read_only = on');
is($node->safe_psql('postgres', 'SELECT minting FROM snowflake.health()', extra_params => [ '-U', 'probe' ]), 't', 'so is that of a role which only looks');
{
	local $ENV{PGOPTIONS} = '-c default_transaction_read_only=on';
	is(health('minting, reason'), 't|', 'and that of a connection');
}
my $older = $node->session('postgres');
my $seen = sub { $older->query_safe('SELECT minting, reason FROM snowflake.health()') };
is($seen->(), 't|', 'a session sees nothing');
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET default_transaction_read_only = on');
is(health('minting, reason'), 'f|read-only by default', "a database's is everybody's");
is($seen->(), 'f|read-only by default', '... also if asked by a session that is older, as that of an exporter');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER DATABASE postgres SET default_transaction_read_only = off; ALTER ROLE ALL SET default_transaction_read_only = on');
is($seen->(), 't|', "a database's counts more than that of all roles");
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only');
is($seen->(), 'f|read-only by default', '... which counts else');
$node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER ROLE ALL RESET default_transaction_read_only');
is($seen->(), 't|', '... and nothing is left');
$older->quit;

# Every error is counted.
my $counted = sub { $node->safe_psql('postgres', "SELECT refusals FROM snowflake.refusals WHERE cause = '$_[0]'") };
$node->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET UNLOGGED');
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'would not survive a crash' }, 'unlogged') for 1 .. 2;
is($counted->('mark_unsafe'), '2', 'refusals for a mark that a crash would lose are counted');
$node->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET LOGGED');

# A cancelled commit wait is counted as a commit wait.
$node->reconfigure('snowflake.clock_error' => "'500ms'", 'snowflake.max_clock_error' => "'5s'");
my $waits = $node->safe_psql('postgres', 'SELECT commit_waits FROM snowflake.database_stats');
$writer = $node->start_writer("SET snowflake.max_wait = '60s'; SET snowflake.commit_wait = on; SELECT snowflake.next_id(1)");
$node->poll_query_until('postgres', "SELECT count(pg_cancel_backend(pid)) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event IN ('Extension', 'SnowflakeClock')");
like($node->finish_writer($writer)->{errors}, qr/canceling statement/, 'a commit wait is cancelled');
is($node->safe_psql('postgres', 'SELECT commit_waits, commit_wait_time > 0 FROM snowflake.database_stats'), ($waits + 1) . '|t', 'and counted');
$node->reconfigure('snowflake.clock_error' => "'5ms'");

# Rates use the time since boot, not the clock.
$node->safe_psql('postgres', 'SELECT snowflake.reset_stats(); SELECT count(snowflake.next_id(9)) FROM generate_series(1, 1000)');
select undef, undef, undef, 1;
$node->clock->step(-3600);
cmp_ok($node->safe_psql('postgres', 'SELECT rate FROM snowflake.database_stats'), '<', 1001, 'the rate is not more for a clock that was set back');
cmp_ok($node->safe_psql('postgres', 'SELECT max(rate) FROM snowflake.shard_stats'), '<', 1001, 'nor that of a shard');
$node->clock->step(+3600 + 1800);
cmp_ok($node->safe_psql('postgres', 'SELECT rate FROM snowflake.database_stats'), '>', 1, 'nor less for one that was set ahead');
$ledger->check(300, 'nothing comes twice');

done_testing();
