# Those who own tables that move, and may make schemas: they become no superusers by it, what they do meanwhile is not lost,
# and they hold up nobody without a word.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 6 ], b => [7], c => [8] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE postgres TO tenant') foreach $north, $south, $fleet->node('c');
my @tenant = (extra_params => [ '-U', 'tenant' ]);

# A table of the tenant's in a shard, whose triggers make him a superuser when a superuser fires them.
my $evil = <<~'SQL';
	CREATE FUNCTION SPACE.evil() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
	  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
	    ALTER ROLE tenant SUPERUSER;
	  END IF;
	  RETURN NEW;
	END $$;
	CREATE TRIGGER evil BEFORE TRUNCATE ON SPACE.counts EXECUTE FUNCTION SPACE.evil();
	SQL
sub give_tenant
{
	my ($shard) = @_;
	$north->safe_psql('postgres', "GRANT USAGE, CREATE ON SCHEMA shard_$shard TO tenant");
	$north->safe_psql('postgres', "CREATE TABLE shard_$shard.counts (id bigint PRIMARY KEY, n int NOT NULL); INSERT INTO shard_$shard.counts SELECT g, g FROM generate_series(1, 100) AS g;"
		  . $evil =~ s/SPACE/shard_$shard/gr, @tenant);
	return;
}
sub run_move { my ($shard, @more) = @_; return $mover->run('--shard' => $shard, '--to' => 'b', '--not-ids' => 'counts.id', @more); }
sub is_no_superuser { return is($south->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'tenant'"), 'f', $_[0]); }
sub sum { my ($node, $shard) = @_; return $node->safe_psql('postgres', "SELECT count(*), sum(n) FROM shard_$shard.counts"); }

# A copy that starts over truncates.
give_tenant($_) foreach 0 .. 5;
run_move(0, '--until' => 'copied')->{status} == 0 or die;
$south->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_0 DISABLE');
$north->poll_query_until('postgres', 'SELECT bool_and(NOT active) FROM pg_replication_slots') or die;
$north->safe_psql('postgres', 'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
$south->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_0 ENABLE');
my $result = run_move(0);
is($result->{status}, 0, 'a move whose slot was lost') or diag($result->{output});
like($result->{output}, qr/the copy starts over/, '... starts over');
is(sum($south, 0), '100|5050', '... with all rows, and no other');
is_no_superuser('... and fires no trigger of the owner\'s');
is($south->safe_psql('postgres', q{SELECT tgenabled FROM pg_trigger WHERE tgname = 'evil' AND tgrelid = 'shard_0.counts'::regclass}), 'O', '... which is there');

# A move that is taken back truncates what was made beforehand.
my ($dump, $error) = run_command([ 'pg_dump', '-s', '-n', 'shard_1', '-d', $north->connstr('postgres') ]);
$south->safe_psql('postgres', $dump =~ s/^\\(un)?restrict.*$//gmr);
run_move(1, '--until' => 'copied')->{status} == 0 or die;
is(sum($south, 1), '100|5050', 'copied into a schema that was made beforehand');
is(run_move(1, '--abort')->{status}, 0, '... taken back');
is(sum($south, 1), '0|', '... which empties it');
is_no_superuser('... and fires no trigger of the owner\'s');

# The tenant makes the schema on the target while the slot waits for his transaction.
my $writer = $north->session('postgres', @tenant);
$writer->query_safe('BEGIN');
$writer->query_safe('INSERT INTO shard_2.counts VALUES (101, 0)');
my $move = $mover->start('--shard' => 2, '--to' => 'b', '--not-ids' => 'counts.id');
$mover->wait_for($move, qr/the source makes a slot/);
my $made = <<~'SQL' . $evil =~ s/TRUNCATE ON SPACE.counts/INSERT ON SPACE.counts FOR EACH ROW/r . 'ALTER TABLE SPACE.counts ENABLE ALWAYS TRIGGER evil;';
	CREATE SCHEMA SPACE;
	CREATE TABLE SPACE.counts (id bigint PRIMARY KEY, n int NOT NULL);
	CREATE TABLE SPACE.users (id bigint PRIMARY KEY, name text NOT NULL);
	CREATE TABLE SPACE.photos (id bigint PRIMARY KEY, user_id bigint NOT NULL, number int, caption text);
	SQL
$south->safe_psql('postgres', $made =~ s/SPACE/shard_2/gr, @tenant);
$writer->query_safe('COMMIT');
$result = $mover->finish($move);
is($result->{status}, 1, 'a schema that appears on the target meanwhile is not taken');
like($result->{output}, qr/The target has a schema shard_2 that is not as that of the source: drop it there/, '... it says so');
is_no_superuser('... and no row was copied into it');
is(run_move(2, '--check')->{status}, 1, '... nor is it later');
$south->safe_psql('postgres', 'DROP SCHEMA shard_2 CASCADE');
is(run_move(2)->{status}, 0, '... without it the move goes on');
is(sum($south, 2), '101|5050', '... with all rows');

# The same where it appears after all checks, by an operator who means well, with a row of his own.
$north->safe_psql('postgres', <<~'SQL');
	CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
	CREATE TRIGGER held_up AFTER UPDATE ON snowflake_fleet.moving FOR EACH ROW WHEN (NEW.state = 'copying') EXECUTE FUNCTION held_up();
	SQL
my $holder = $north->session;
$holder->query_safe('SELECT pg_advisory_lock(1)');
$move = $mover->start('--shard' => 3, '--to' => 'b', '--not-ids' => 'counts.id');
$north->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) or die $move->{output};
($dump) = run_command([ 'pg_dump', '-s', '-n', 'shard_3', '-d', $north->connstr('postgres') ]);
$south->safe_psql('postgres', ($dump =~ s/^\\(un)?restrict.*$//gmr) . 'INSERT INTO shard_3.counts VALUES (999, 999)');
$holder->quit;
$result = $mover->finish($move);
is($result->{status}, 1, 'a row that appears on the target behind the checks');
like($result->{output}, qr/The target has rows in table shard_3.counts: truncate it/, '... is not taken for one of the source\'s');
$north->safe_psql('postgres', 'DROP FUNCTION held_up CASCADE');
$south->safe_psql('postgres', 'ALTER TABLE shard_3.counts DISABLE TRIGGER evil; TRUNCATE shard_3.counts; ALTER TABLE shard_3.counts ENABLE TRIGGER evil');

# A rewrite changes rows, and no row's change is sent.
run_move(3, '--until' => 'copied')->{status} == 0 or die;
my $rewrite = 'ALTER TABLE shard_3.counts ALTER n TYPE int USING n + 1000';
my %refusal = (sqlstate => 55006, message => 'schema shard_3 moves to another server', detail => 'ALTER TABLE would change it', hint => '--abort');
foreach my $node ($north, $south)
{
	# By that guard alone, for some minor versions leave traces in the catalogues.
	$node->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard DISABLE');
	$node->refuses($rewrite, \%refusal, 'a rewrite is refused on the ' . ($node == $north ? 'source' : 'target'));
	$node->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS');
	$node->safe_psql('postgres', $_) foreach 'CREATE TABLE public.other (n int)', 'ALTER TABLE public.other ALTER n TYPE int USING n + 1', 'DROP TABLE public.other';
}
is(run_move(3)->{status}, 0, '... and the move goes on');
is(sum($south, 3), '100|5050', '... with the rows that the source has');
$south->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard_rewrite ENABLE');
like($mover->run('--shard' => 3, '--to' => 'a', '--check')->{output}, qr/one of the event triggers .* is missing, or not ENABLE ALWAYS/, 'without the guard nothing moves');
$south->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard_rewrite ENABLE ALWAYS');

# A lock that no writer waits behind, held for as long as somebody likes; and the name of what is rehearsed.
$north->safe_psql('postgres', 'CREATE SCHEMA snowflake_move_4_rehearsal', @tenant);
run_move(4, '--until' => 'copied')->{status} == 0 or die;
my $idle = $north->session('postgres', @tenant);
$idle->query_safe('BEGIN');
$idle->query_safe('LOCK TABLE shard_4.counts IN SHARE UPDATE EXCLUSIVE MODE');
$move = $mover->start('--shard' => 4, '--to' => 'b', '--not-ids' => 'counts.id');
$mover->wait_for($move, qr/no lock on the tables in 5000 ms: attempt 1; waiting for process \d+ \(tenant/);
$idle->query_safe('COMMIT');
is($mover->finish($move)->{status}, 0, 'who holds a lock is named, and waited for');

# The map is locked by somebody else while what the fence does is rehearsed.
my $lock = $fleet->node('control')->session;
$lock->query_safe('BEGIN; SELECT 1 FROM snowflake_fleet.map_state FOR UPDATE');
$move = $mover->start('--shard' => 6, '--to' => 'b');
$mover->wait_for($move, qr/somebody else changes the map: the writers go on, later again/);
$lock->query_safe('COMMIT');
is($mover->finish($move)->{status}, 0, 'a map that somebody else changes is waited for');

# A server that refuses the map has not taken it.
my $third = $fleet->node('c');
$third->safe_psql('postgres', 'UPDATE snowflake_fleet.map_state SET version = version - 1');
$result = run_move(5);
is($result->{status}, 0, 'the shard has moved');
like($result->{output}, qr/server c refuses the map: the map that arrives does not follow(?s:.*)pushed to 2 of 3 servers: run snowflake-push-map/, '... and it is said who refuses the map');

# Where nothing is known of a move, the map alone says nothing.
is(run_move(5)->{status}, 0, 'a move that has ended has ended');
$result = run_move(5, '--abort');
is($result->{status}, 1, '... and cannot be taken back');
like($result->{output}, qr/on the target already/, '... it says so');
$fleet->control(q{SELECT snowflake_fleet.assign('[20,20]', 'b')});
foreach my $what ([], ['--check'])
{
	$result = run_move(20, @$what);
	is($result->{status}, 1, "a shard that only the map has: @$what");
	like($result->{output}, qr/the map has shard 20 on b, which has no schema shard_20/, '... it says so');
}

done_testing();
