# Kills snowflake-move-shard at every step of a move, and runs it again. Tests moves that are aborted, and a failover
# during a move.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep);

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 7 ], b => [ 8 .. 15 ] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
$north->safe_psql('postgres', "INSERT INTO shard_$_.users (name) SELECT 'old_' || n FROM generate_series(1, 3000) n") foreach 1 .. 5;

# Opens a transaction whose lock makes snowflake-move-shard wait.
my @sessions;
sub hold
{
	my ($node, $sql) = @_;
	push @sessions, $node->session;
	$sessions[-1]->query_safe('BEGIN');
	$sessions[-1]->query_safe($sql);
	return $sessions[-1];
}
sub release { $_->quit foreach splice @sessions; return; }
sub rows_of { my ($node, $shard) = @_; return { map { split /\|/ } split /\n/, $node->safe_psql('postgres', "SELECT id, name FROM shard_$shard.users") }; }

# Lists the steps of a move. For each step, the list has a lock that delays the step, and the output of
# snowflake-move-shard at the step. The constraint trigger held_up delays only the commit of a change of the shard map.
my $map_lock = 'SELECT * FROM snowflake_fleet.map_state FOR UPDATE';
my $commit_lock = 'SELECT pg_advisory_xact_lock(1)';
$fleet->control(<<~'SQL');
	CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER held_up AFTER UPDATE ON snowflake_fleet.map_shard
	  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION held_up();
	SQL
my @moments = (
	[ 'as soon as the schema is made', undef, qr/created schema .* on the target/ ],
	[ 'while the slot is made', sub { hold($north, 'SELECT pg_current_xact_id()') }, qr/creating a replication slot on the source/ ],
	[ 'while it copies', sub { hold($north, 'SELECT pg_current_xact_id()') }, qr/creating a replication slot on the source/, undef, 'LOCK TABLE shard_1.photos IN SHARE MODE', qr/copying/ ],
	[ 'before the fence', sub { hold($north, "UPDATE shard_1.users SET name = name WHERE id = (SELECT min(id) FROM shard_1.users)") }, qr/writers or other locks did not end/, 'copied' ],
	[ 'between fence and map', sub { hold($fleet->node('control'), $commit_lock) }, undef ],
		[ 'before the subscription is dropped', sub { hold($south, 'LOCK TABLE pg_subscription IN ACCESS SHARE MODE') }, qr/is kept as/, 'copied' ],
	[ 'before the slot is dropped', sub { hold($north, 'LOCK TABLE pg_publication IN SHARE MODE') }, qr/is kept as/, 'copied' ],
	[ 'as soon as all servers have the new map', undef, qr/all servers have the new map/ ]);
my %rows = %{ rows_of($north, 1) };
my @writers = map { $mover->start_writer(1, $_) } 1 .. 2;
my ($from, $to) = ('a', 'b');
foreach my $moment (@moments)
{
	my ($name, $hold, $said, $until, $lock, $then) = @$moment;
	($north, $south) = map { $fleet->node($_) } $from, $to;
	# The creation of a replication slot waits for all transactions that have begun to write.
	$mover->run('--shard' => 1, '--to' => $to, '--until' => $until) if $until;
	$hold->() if $hold;
	my $move = $mover->start('--shard' => 1, '--to' => $to);
	if ($said) { $mover->wait_for($move, $said); }
	else { $north->poll_query_until('postgres', "SELECT snowflake_fleet.fenced('shard_1')") or die; }
	if ($lock)
	{
		# The copy of rows begins when the replication slot exists. The test locks the table on the target before the slot
		# exists.
		my $slot = pop @sessions;
		hold($south, $lock);
		$slot->quit;
		$mover->wait_for($move, $then);
	}
	sleep 0.3 if $hold;
	$mover->kill_it($move);
	release();
	my $again = $mover->run_again('--shard' => 1, '--to' => $to);
	is($again->{status}, 0, "a move that was killed $name succeeds when it is run again") or diag($again->{output});
	is($mover->leftovers, '', "a move that was killed $name leaves nothing behind");
	($from, $to) = ($to, $from);
}
# Kills snowflake-move-shard at random moments.
foreach (1 .. 8)
{
	my $move = $mover->start('--shard' => 1, '--to' => $to);
	sleep rand 3;
	$mover->kill_it($move);
	my $again = $mover->run_again('--shard' => 1, '--to' => $to);
	is($again->{status}, 0, 'a move that was killed at a random moment succeeds when it is run again') or diag($again->{output});
	($from, $to) = ($to, $from);
}
$mover->stop_writers;
my @results = map { $mover->result_of($_) } @writers;
is(join('', map { $_->{errors} } @results), '', 'every error of the writers ended with a retry');
%rows = (%rows, %{ $_->{rows} }) foreach @results;
my %minted;
$minted{$_}++ foreach map { my $minted = $_->{minted}; map { ($_) x $minted->{$_} } keys %$minted } @results;
is(join(' ', grep { $minted{$_} > 1 } keys %minted), '', 'ids of both servers are unique');
is($mover->differences($fleet->node($from), 1, \%rows), '', 'the server has exactly the committed rows, with their last values');
is($fleet->node($from)->safe_psql('postgres', 'SELECT count(*) FROM shard_1.users WHERE snowflake.shard_of(id) <> 1'), '0', 'each row is in the schema of its shard');
is($mover->leftovers, '', 'no publication, slot, subscription, trigger or record of the move remains');

# A move must wait for a transaction that has written to the shard, even if the transaction is prepared in the meantime.
($north, $south) = map { $fleet->node($_) } 'a', 'b';
$mover->run('--shard' => 2, '--to' => 'b', '--until' => 'copied');
my $session = hold($north, "UPDATE shard_2.users SET name = 'begun before' WHERE name = 'old_7'");
my $move = $mover->start('--shard' => 2, '--to' => 'b');
$mover->wait_for($move, qr/writers or other locks did not end/);
$north->safe_psql('postgres', "BEGIN; UPDATE shard_2.users SET name = 'prepared' WHERE name = 'old_8'; PREPARE TRANSACTION 'p'");
$session->query_safe('COMMIT');
release();
sleep 1;
is($north->safe_psql('postgres', "SELECT snowflake_fleet.fenced('shard_2')"), 'f', 'the fence waits for a prepared transaction');
$north->safe_psql('postgres', "COMMIT PREPARED 'p'");
is($mover->finish($move)->{status}, 0, 'the move continues when the prepared transaction is committed');
is($south->safe_psql('postgres', "SELECT count(*) FROM shard_2.users WHERE name IN ('begun before', 'prepared')"), '2', 'the target has the rows of transactions that began before the fence');

# While a move has closed the schema for writers (fenced it), no role can write to tables of the schema.
hold($fleet->node('control'), $commit_lock);
$move = $mover->start('--shard' => 3, '--to' => 'b');
$north->poll_query_until('postgres', "SELECT snowflake_fleet.fenced('shard_3')") or die;
my %fence = (sqlstate => 40001, message => 'shard 3 moves to another server', detail => 'no longer accepts changes', hint => 'retry');
$north->refuses($_->[1], \%fence, "the fence refuses: $_->[0]") foreach
  [ 'INSERT', "INSERT INTO shard_3.users (name) VALUES ('late')" ],
  [ 'UPDATE of nothing', "UPDATE shard_3.users SET name = '' WHERE false" ],
  [ 'DELETE', 'DELETE FROM shard_3.photos' ],
  [ 'TRUNCATE', 'TRUNCATE shard_3.users CASCADE' ],
  [ 'COPY', "COPY shard_3.users (name) FROM PROGRAM 'echo late'" ],
  [ 'MERGE', "MERGE INTO shard_3.users u USING (SELECT 1) x ON false WHEN NOT MATCHED THEN INSERT (name) VALUES ('late')" ],
  [ 'a superuser without triggers', "SET session_replication_role = replica; INSERT INTO shard_3.users (name) VALUES ('late')" ];
is($north->safe_psql('postgres', 'SELECT count(*) FROM shard_3.users'), '3000', 'the fenced schema can be read');
release();
is($mover->finish($move)->{status}, 0, 'the move of the fenced schema continues');
is($south->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE name = 'late') FROM shard_3.users"), '3000|0', 'the target has the rows from before the fence, and no refused one');

# A move can be aborted at any step before the shard map is changed.
my $stopped = $mover->run('--shard' => 4, '--to' => 'b', '--until' => 'copied');
like($stopped->{output}, qr/target has caught up/, 'the program stops before the fence');
is($mover->run('--shard' => 4, '--to' => 'b', '--abort')->{status}, 0, '--abort succeeds before the fence');
is($mover->leftovers, '', 'no publication, slot, subscription, trigger or record of the move remains');
is($south->safe_psql('postgres', "SELECT to_regnamespace('shard_4') IS NULL"), 't', 'after --abort the target has no schema of the shard');
hold($fleet->node('control'), $commit_lock);
$move = $mover->start('--shard' => 4, '--to' => 'b');
$north->poll_query_until('postgres', "SELECT snowflake_fleet.fenced('shard_4')") or die;
$mover->kill_it($move);
$fleet->control("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'snowflake-move-shard'");
release();
$north->stop('immediate');
$north->start;
is($north->safe_psql('postgres', "SELECT snowflake_fleet.fenced('shard_4')"), 't', 'after a crash of the source the schema is still fenced');
is($mover->run('--shard' => 4, '--to' => 'b', '--abort')->{status}, 0, '--abort succeeds while the schema is fenced');
is($mover->leftovers, '', 'no publication, slot, subscription, trigger or record of the move remains');
is($north->safe_psql('postgres', "INSERT INTO shard_4.users (name) VALUES ('again') RETURNING name"), 'again', 'after --abort the source accepts writes');
is($mover->run('--shard' => 3, '--to' => 'b', '--from' => 'a', '--abort')->{status}, 1, '--abort fails after the map has changed');
# Kills snowflake-move-shard while the control database still executes its change of the shard map. The next run of
# snowflake-move-shard must wait until the control database has ended the statement of the killed run.
$mover->run('--shard' => 7, '--to' => 'b', '--until' => 'copied');
hold($fleet->node('control'), $commit_lock);
$move = $mover->start('--shard' => 7, '--to' => 'b');
$north->poll_query_until('postgres', "SELECT snowflake_fleet.fenced('shard_7')") or die;
$fleet->node('control')->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") or die;
$mover->kill_it($move);
is($mover->run('--shard' => 7, '--from' => 'a', '--to' => 'b', '--abort')->{status}, 0, '--abort succeeds when the server has ended the statement of the killed program');
release();
is($fleet->control('SELECT snowflake_fleet.server_of_shard(7)'), 'a', 'the map has not changed after --abort');
is($north->safe_psql('postgres', "INSERT INTO shard_7.users (name) VALUES ('on') RETURNING name"), 'on', 'the source accepts writes after --abort');

# After a failover of the source all rows must be copied again, because the replication slot was lost.
$mover->run('--shard' => 4, '--to' => 'b', '--until' => 'copied');
$south->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_4 DISABLE');
$north->poll_query_until('postgres', "SELECT NOT active FROM pg_replication_slots WHERE slot_name ~ '^snowflake_move_[0-9]+_4\$'");
$north->safe_psql('postgres', "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name ~ '^snowflake_move_[0-9]+_4\$'; UPDATE shard_4.users SET name = 'since' WHERE name = 'old_9'");
my $over = $mover->run('--shard' => 4, '--to' => 'b');
is($over->{status}, 0, 'a move whose slot was lost succeeds') or diag($over->{output});
like($over->{output}, qr/copy starts again/, 'the output shows that the copy starts again');
is($south->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE name = 'since') FROM shard_4.users"), '3001|1', 'the target has all rows after the copy started again');

# Runs snowflake-move-shard twice at the same time for the same shard.
hold($fleet->node('control'), $commit_lock);
$move = $mover->start('--shard' => 5, '--to' => 'b');
$north->poll_query_until('postgres', "SELECT snowflake_fleet.fenced('shard_5')") or die;
like($mover->run('--shard' => 5, '--to' => 'b', '--wait' => 1)->{output}, qr/another snowflake-move-shard moves/, 'a second program for the same shard is refused');
release();
is($mover->finish($move)->{status}, 0, 'the first program moves the shard');

# If logical replication is late when writers are stopped, the target must not take over, and writers must continue.
$mover->run('--shard' => 6, '--to' => 'b', '--until' => 'copied');
$session = hold($north, "INSERT INTO shard_6.users (name) VALUES ('begun before')");
# The trial change of the shard map may take longer than --lock-timeout, because writers do not wait for the trial.
$move = $mover->start('--shard' => 6, '--to' => 'b', '--lock-timeout' => 1);
$mover->wait_for($move, qr/writers or other locks did not end within 1 ms/);
$move->{run}->signal('TERM');
is($mover->finish($move)->{status}, 1, 'a slow rehearsal does not stop the move');
$move = $mover->start('--shard' => 6, '--to' => 'b', '--level-timeout' => 1000);
$mover->wait_for($move, qr/writers or other locks did not end/);
my $behind = hold($south, 'LOCK TABLE shard_6.users IN SHARE MODE');
$session->query_safe('COMMIT');
$mover->wait_for($move, qr/did not catch up within 1000 ms|has taken over/);
is($fleet->control('SELECT snowflake_fleet.server_of_shard(6)'), 'a', 'the map does not change while the target is behind');
is($north->safe_psql('postgres', "SET lock_timeout = '100s'; INSERT INTO shard_6.users (name) VALUES ('meanwhile') RETURNING name"), 'meanwhile', 'the source accepts writes while the target is behind');
$mover->wait_for($move, qr/catching up/);
$behind->query_safe('COMMIT');
release();
is($mover->finish($move)->{status}, 0, 'the move succeeds when the target has applied all changes');
is($south->safe_psql('postgres', "SELECT count(*) FROM shard_6.users WHERE name IN ('begun before', 'meanwhile')"), '2', 'the target has the rows that it had not applied before');

done_testing();
