# Tests servers that crash or do not respond during a move. After a crash snowflake-move-shard must continue or end with
# a message, and must report every schema to which clients cannot write.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use File::Basename qw(dirname);
use IO::Socket::INET;
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep time);

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 9 ], b => [10] }, conf => "idle_session_timeout = 1s\nidle_in_transaction_session_timeout = 1s\n");
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south, $control) = map { $fleet->node($_) } 'a', 'b', 'control';
$control->reconfigure(statement_timeout => '20s');
$north->safe_psql('postgres', "INSERT INTO shard_$_.users (name) SELECT 'old ' || n FROM generate_series(1, 2000) n") foreach 0 .. 9;
$_->append_conf('postgresql.conf', 'max_logical_replication_workers = 8'), $_->restart foreach $north, $south;

# Opens a transaction without timeouts, and runs a statement in it.
sub hold
{
	my ($node, $sql) = @_;
	# The timeouts of the test could end the session before a SET statement is executed.
	local $ENV{PGOPTIONS} = '-c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0 -c statement_timeout=0';
	my $session = $node->session;
	$session->query_safe('BEGIN');
	$session->query_safe($sql);
	return $session;
}
sub ends_within
{
	my ($move, $seconds, $name) = @_;
	my $began = time;
	my $finished = $mover->finish($move);
	cmp_ok(time - $began, '<', $seconds, "$name: the program ends within $seconds s");
	unlike($finished->{output}, qr/Traceback/, "$name: the output has no traceback");
	return $finished;
}
sub takes_writes { return $_[0]->safe_psql('postgres', "INSERT INTO shard_$_[1].users (name) VALUES ('on') RETURNING 1"); }

# idle_session_timeout must not end sessions of snowflake-move-shard, although creating the replication slot takes
# longer.
my $writer = hold($north, "UPDATE shard_0.users SET name = name WHERE name = 'old 1'");
my $move = $mover->start('--shard' => 0, '--to' => 'b');
$mover->wait_for($move, qr/waiting for transactions that have written, \d+ s: process \d+ \(\w+ of database postgres/);
$writer->quit;
is(ends_within($move, 100, 'idle_session_timeout')->{status}, 0, 'the shard moves although idle_session_timeout is set');

# The source, the target or the control database crashes while snowflake-move-shard waits for a writer.
foreach my $case ([ 'source', $north, 1 ], [ 'target', $south, 2 ], [ 'control database', $control, 3 ])
{
	my ($name, $node, $shard) = @$case;
	$mover->run('--shard' => $shard, '--to' => 'b', '--until' => 'copied');
	$writer = hold($north, "UPDATE shard_$shard.users SET name = 'begun before' WHERE name = 'old 1'");
	$move = $mover->start('--shard' => $shard, '--to' => 'b', '--wait' => 3);
	$mover->wait_for($move, qr/writers or other locks did not end/);
	$node->stop('immediate');
	if ($node != $north) { $writer->query_safe('COMMIT'); }
	$writer->quit;
	my $finished = ends_within($move, 60, "the $name crashes");
	is($finished->{status}, 1, 'the program exits with status 1');
	like($finished->{output}, qr/^snowflake-move-shard: $name: |$name does not answer|snowflake-move-shard: .*(connection|server closed)/m, 'the program names the server that failed');
	$node->start;
	is(takes_writes($north, $shard), '1', 'the source accepts writes after the failure');
	my $again = $mover->run('--shard' => $shard, '--to' => 'b');
	is($again->{status}, 0, 'if the program is run again, the shard moves') or diag($again->{output});
}

# The control database crashes after writers were stopped, and before the shard map is changed. After a crash of the
# control database, snowflake-move-shard must let writers continue.
$fleet->control(<<~'SQL');
	CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
	CREATE TRIGGER held_up AFTER UPDATE ON snowflake_fleet.map_shard FOR EACH STATEMENT EXECUTE FUNCTION held_up();
	ALTER TABLE snowflake_fleet.map_shard DISABLE TRIGGER held_up;
	SQL
sub fenced { my ($shard) = @_; return $north->poll_query_until('postgres', "SELECT snowflake_fleet.fenced('shard_$shard')"); }
my $again;
foreach my $back ('', 'soon')
{
	my $shard = $back ? 5 : 4;
	$mover->run('--shard' => $shard, '--to' => 'b', '--until' => 'copied');
	# The trigger is enabled after the trial change of the shard map, so that only the real change waits.
	$writer = hold($north, "UPDATE shard_$shard.users SET name = 'begun before' WHERE name = 'old 1'");
	$move = $mover->start('--shard' => $shard, '--to' => 'b', '--wait' => $back ? 30 : 2);
	$mover->wait_for($move, qr/writers or other locks did not end/);
	$fleet->control('ALTER TABLE snowflake_fleet.map_shard ENABLE TRIGGER held_up');
	my $holder = hold($control, 'SELECT pg_advisory_xact_lock(1)');
	$writer->query_safe('COMMIT');
	$writer->quit;
	fenced($shard) or die;
	$control->stop('immediate');
	eval { $holder->quit };
	if ($back)
	{
		$control->start;
		$fleet->control('ALTER TABLE snowflake_fleet.map_shard DISABLE TRIGGER held_up');
	}
	my $finished = ends_within($move, 60, 'the control database crashes behind the fence' . ($back ? ', and is back' : ''));
	if ($back)
	{
		like($finished->{output}, qr/control database did not change the map, and the fence is removed: run this command again/, 'if the control database fails, the map is unchanged and the fence is lifted');
		is($mover->run('--shard' => $shard, '--to' => 'b')->{status}, 0, 'if the program is run again after the control database failed, the shard moves');
		next;
	}
	like($finished->{output}, qr/control database did not change the map, and the fence is removed/, 'if the control database fails, the fence is lifted');
	is(takes_writes($north, $shard), '1', 'the source accepts writes after the fence is lifted');
	$control->start;
	$fleet->control('ALTER TABLE snowflake_fleet.map_shard DISABLE TRIGGER held_up');
	is($mover->run('--shard' => $shard, '--to' => 'b')->{status}, 0, 'if the program is run again after the fence is lifted, the shard moves');
}

# The control database crashes while it commits a change of the shard map. The program snowflake-move-shard cannot
# detect whether the shard map has changed, and must print the command that the user runs next.
$fleet->control('DROP TRIGGER held_up ON snowflake_fleet.map_shard; CREATE CONSTRAINT TRIGGER held_up AFTER UPDATE ON snowflake_fleet.map_shard DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION held_up()');
my $holder = hold($control, 'SELECT pg_advisory_xact_lock(1)');
$move = $mover->start('--shard' => 6, '--to' => 'b', '--wait' => 1);
fenced(6) or die;
$fleet->control('SELECT 1');
sleep 1;
$control->stop('immediate');
eval { $holder->quit };
my $doubt = ends_within($move, 60, 'the control database crashes in the commit');
like($doubt->{output}, qr/may have changed the map\n.*The source refuses writes\. Run this command again to continue, or with --abort/, 'if it is not known whether the map changed, the program describes what to do');
$control->start;
$fleet->control('DROP TRIGGER held_up ON snowflake_fleet.map_shard');
is($mover->run('--shard' => 6, '--to' => 'b', '--abort')->{status}, 0, '--abort ends the move whose result is not known');
is(takes_writes($north, 6), '1', 'the source accepts writes after --abort');
is($mover->leftovers, '', 'nothing is left over');

# If one server in the shard map does not answer, the other servers must get the new shard map at once.
my $mute = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die;
$fleet->control("SELECT snowflake_fleet.set_server('0mute', 'host=127.0.0.1 port=" . $mute->sockport . " dbname=x')");
$move = $mover->start('--shard' => 7, '--to' => 'b', '--wait' => 10);
$north->poll_query_until('postgres', "SELECT server = 'b' FROM snowflake_fleet.map_shard WHERE shard = 7") or die;
is($north->safe_psql('postgres', "SELECT to_regnamespace('shard_7') IS NOT NULL"), 't', 'the other servers have the map before the schema is renamed');
$move->{run}->pump_nb;
unlike($move->{output}, qr/all servers have the new map/, 'the other servers have the map before the program gives up the silent server');
my $mute_end = ends_within($move, 90, 'a server that says nothing');
unlike($mute_end->{output}, qr/all servers have the new map/, 'the program does not report the map as pushed');
is($mute_end->{status}, 0, 'the shard is moved although a server is silent');
like($mute_end->{output}, qr/some servers do not have the new map: run snowflake-push-map(?s:.*)0mute: not reached: .*(?s:.*)2 of 3 servers have it, 1 do not/, 'the program names the server without the map');
$fleet->control("SELECT snowflake_fleet.drop_server('0mute')");

# Suspends snowflake-move-shard while writers wait. Timeouts must end the sessions of the suspended program, so that
# writers continue.
$north->safe_psql('postgres', "CALL snowflake.create_shards('template', '[11,12]'); INSERT INTO shard_11.users (name) VALUES ('old'); INSERT INTO shard_12.users (name) VALUES ('old')");
$fleet->control("SELECT snowflake_fleet.assign('[11,12]', 'a')");
$south->safe_psql('postgres', <<~'SQL');
	CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); RETURN NULL; END';
	CREATE TRIGGER slow AFTER UPDATE ON snowflake_fleet.moving FOR EACH ROW WHEN (NEW.state = 'level') EXECUTE FUNCTION slow();
	SQL
$move = $mover->start('--shard' => 11, '--to' => 'b');
$north->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = 'snowflake-move-shard'
  AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'shard_11.users'::regclass AND mode = 'ExclusiveLock')}) or die $move->{output};
$move->{run}->signal('STOP');
is(($north->psql('postgres', "SET statement_timeout = '50s'; INSERT INTO shard_11.users (name) VALUES ('on') RETURNING 1"))[1], '1', 'a writer continues although the suspended program holds locks');
$move->{run}->signal('CONT');
is(ends_within($move, 100, 'its session is gone')->{status}, 1, 'the program fails if its session is gone');
$south->safe_psql('postgres', 'DROP FUNCTION slow CASCADE');
is($mover->run('--shard' => 11, '--to' => 'b', '--verify')->{status}, 0, 'if the program is run again with --verify, the shard moves');
is($south->safe_psql('postgres', "SELECT string_agg(name, ', ' ORDER BY name) FROM shard_11.users"), 'old, on', 'all rows are moved');

# snowflake-move-shard must not wait forever for a suspended backend or for a program that it has started.
sub backend
{
	my ($node, $which) = @_;
	my $query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'snowflake-move-shard' AND $which";
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM ($query) AS s") or die $move->{output};
	return $node->safe_psql('postgres', $query);
}
$_->safe_psql('postgres', q{CREATE TABLE looked_up (id int PRIMARY KEY, t text); INSERT INTO looked_up SELECT n, repeat(md5(n::text), 1000) FROM generate_series(1, 200) n}) foreach $north, $south;
$north->safe_psql('postgres', "CALL snowflake.create_shards('template', '[13,14]'); ALTER TABLE shard_13.users ADD l int REFERENCES looked_up; INSERT INTO shard_13.users (name) VALUES ('old'); INSERT INTO shard_14.users (name) VALUES ('old')");
$fleet->control("SELECT snowflake_fleet.assign('[13,14]', 'a')");
my $lock = hold($north, 'LOCK TABLE looked_up');
like($mover->run('--shard' => 13, '--to' => 'b', '--check', '--shared-timeout' => 1)->{output}, qr/source: the rows of table public.looked_up could not be compared within 1 s\n  Run the program with a larger --shared-timeout/, 'a shared table that takes longer than the limit');
$move = $mover->start('--shard' => 13, '--to' => 'b', '--check', '--shared-timeout' => 4);
my $pid = backend($north, "wait_event_type = 'Lock' AND query LIKE 'COPY%'");
$move->{run}->signal('STOP');
$lock->quit;
backend($north, "pid = $pid AND wait_event = 'ClientWrite'");
kill 'STOP', $pid;
$move->{run}->signal('CONT');
like(ends_within($move, 60, 'the source falls silent within COPY')->{output}, qr/source does not answer/, 'the program reports that the source does not answer');
kill 'CONT', $pid;
is($mover->run('--shard' => 13, '--to' => 'b', '--check')->{status}, 0, 'the shard can be moved when the source responds again');

$mover->run('--shard' => 14, '--to' => 'b', '--until' => 'copied');
$writer = hold($north, "UPDATE shard_14.users SET name = name");
$move = $mover->start('--shard' => 14, '--to' => 'b', '--lock-timeout' => 60_000);
backend($north, "wait_event_type = 'Lock' AND query LIKE '%fence_shard%'");
$pid = backend($south, "query = 'SELECT 1'");
kill 'STOP', $pid;
$writer->quit;
like(ends_within($move, 60, 'the target falls silent when the snapshot is opened')->{output}, qr/target does not answer/, 'the program reports that the target does not answer');
kill 'CONT', $pid;
is(takes_writes($north, 14), '1', 'the source accepts writes if the target did not answer');

my $bin = PostgreSQL::Test::Utils::tempdir();
mkdir "$bin/bin";
system_or_bail('cp', $mover->{program}, "$bin/bin/");
symlink dirname($mover->{program}) . '/../mover', "$bin/mover" or die;
append_to_file("$bin/bin/snowflake-push-map", "import time\ntime.sleep(1000)\n");
{
	local $mover->{program} = "$bin/bin/snowflake-move-shard";
	$move = $mover->start('--shard' => 14, '--to' => 'b', '--wait' => 2);
	like(ends_within($move, 60, 'a program for the map that does not end')->{output}, qr/snowflake-push-map does not end/, 'the program reports that snowflake-push-map does not end');
}
is($mover->run_again('--shard' => 14, '--to' => 'b')->{status}, 0, 'the move succeeds when it is run again');

# If a copy of rows stops, snowflake-move-shard must print what each table waits for.
$south->safe_psql('postgres', <<~'SQL');
	CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
	CREATE TRIGGER held_up AFTER INSERT ON snowflake_fleet.moving FOR EACH ROW WHEN (NEW.state = 'arriving') EXECUTE FUNCTION held_up();
	SQL
my $holds = hold($south, 'SELECT pg_advisory_lock(1)');
$move = $mover->start('--shard' => 12, '--to' => 'b');
$south->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") or die $move->{output};
$south->reconfigure(max_sync_workers_per_subscription => 0);
$holds->quit;
$mover->wait_for($move, qr/no progress for \d+ s; table shard_12.photos has not begun: no worker copies it \(max_sync_workers_per_subscription = 0\)/);
pass('the program reports a table that no worker copies');
$south->reconfigure(max_sync_workers_per_subscription => 2);
is(ends_within($move, 100, 'with workers')->{status}, 0, 'the shard moves with parallel workers');

# Locking all tables together must take no longer than --lock-timeout, because writers wait in the meantime.
$north->safe_psql('postgres', join ';', map { "CREATE TABLE shard_8.t$_ (id int PRIMARY KEY)" } 1 .. 20);
$mover->run('--shard' => 8, '--to' => 'b', '--until' => 'copied');
my @writers = map { hold($north, "LOCK TABLE shard_8.t$_ IN ROW EXCLUSIVE MODE") } 5, 9;
$move = $mover->start('--shard' => 8, '--to' => 'b', '--lock-timeout' => 400);
my $longest = 0;
$mover->wait_for($move, qr/attempt 1;/);
for (1 .. 12)
{
	my $began = time;
	$north->safe_psql('postgres', "INSERT INTO shard_8.photos (user_id) SELECT id FROM shard_8.users LIMIT 1");
	$longest = time - $began if time - $began > $longest;
	sleep 0.1;
}
$_->quit foreach @writers;
is(ends_within($move, 100, 'many tables')->{status}, 0, 'a shard with many tables moves');
note "a writer waited $longest s at most";

# Calls nextval() for a sequence of the schema while writers are stopped, and after the move.
$north->safe_psql('postgres', "CREATE SEQUENCE shard_9.jobs CACHE 10; SELECT nextval('shard_9.jobs')");
$fleet->control('CREATE CONSTRAINT TRIGGER held_up AFTER UPDATE ON snowflake_fleet.map_shard DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION held_up()');
my $stock = hold($north, "SELECT nextval('shard_9.jobs')");
$stock->query_safe('COMMIT');
$holder = hold($control, 'SELECT pg_advisory_xact_lock(1)');
$move = $mover->start('--shard' => 9, '--to' => 'b');
fenced(9) or die;
$north->refuses("SELECT nextval('shard_9.jobs')", { sqlstate => '2200H', message => 'reached maximum value' }, 'nextval() fails while the schema is fenced');
my $taken = $stock->query("SELECT nextval('shard_9.jobs')");
is($taken // '', '', 'nextval() fails in a session with cached numbers while the schema is fenced');
$holder->quit;
is($mover->finish($move)->{status}, 0, 'it moves');
cmp_ok($south->safe_psql('postgres', "SELECT nextval('shard_9.jobs')"), '>', 20, 'nextval() on the target is above the cached numbers');
$stock->quit;
is($mover->run('--shard' => 9, '--to' => 'a')->{status}, 0, 'the shard is moved back');

done_testing();
