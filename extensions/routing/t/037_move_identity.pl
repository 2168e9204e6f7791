# Tests servers that were restored, promoted, created again, or lost during a move. No row may be lost in a move, and an
# operator must be able to end each move.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 15 ], b => [16] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south, $control) = map { $fleet->node($_) } 'a', 'b', 'control';
$north->safe_psql('postgres', "INSERT INTO shard_$_.users (name) VALUES ('old')") foreach 0 .. 15;

sub takes_writes { return $_[0]->safe_psql('postgres', "INSERT INTO shard_$_[1].users (name) VALUES ('on') RETURNING 1"); }
sub names { my ($node, $shard) = @_; return $node->safe_psql('postgres', "SELECT string_agg(name || ' ' || count, ' ' ORDER BY name) FROM (SELECT name, count(*) FROM shard_$shard.users GROUP BY name) s"); }
sub insert { my ($shard, $name, $count) = @_; return $north->safe_psql('postgres', "INSERT INTO shard_$shard.users (name) SELECT '$name' FROM generate_series(1, $count)"); }
sub copied { return $mover->run('--shard' => $_[0], '--to' => 'b', '--until' => 'copied')->{status} == 0 || die; }

# Copies the data files of a stopped server, so that put_back() can restore them like a snapshot of a disk.
sub snapshot
{
	my ($node) = @_;
	$node->stop;
	my $copy = $node->basedir . '/snapshot_' . time . rand;
	system_or_bail('cp', '-a', $node->data_dir, $copy);
	$node->start;
	return $copy;
}
sub put_back
{
	my ($node, $copy, $promoted) = @_;
	$node->stop('immediate');
	rename $node->data_dir, "$copy.lost" or die;
	rename $copy, $node->data_dir or die;
	append_to_file($node->data_dir . '/standby.signal', '') if $promoted;
	$node->start;
	$node->promote if $promoted;
	return;
}

# Kills snowflake-move-shard after it has changed the shard map, while it waits for a lock on the target.
sub killed_after_the_map
{
	my ($shard, @more) = @_;
	my $holder = $south->session;
	$holder->query_safe('BEGIN; SELECT 1 FROM snowflake_fleet.map_state FOR UPDATE');
	my $move = $mover->start('--shard' => $shard, '--to' => 'b', @more);
	$mover->wait_for($move, qr/taken over/);
	$mover->kill_it($move);
	$holder->quit;
	return;
}
# Kills snowflake-move-shard while it waits for the commit of a change of the shard map.
$fleet->control(<<~'SQL');
	CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER held_up AFTER UPDATE ON snowflake_fleet.map_shard DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION held_up();
	SQL
sub killed_at_the_fence
{
	my ($shard) = @_;
	my $holder = $control->session;
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	my $move = $mover->start('--shard' => $shard, '--to' => 'b');
	$control->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") or die $move->{output};
	$mover->kill_it($move);
	$fleet->control("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'snowflake-move-shard'");
	$holder->quit;
	return;
}

# Restores the source and its replication slots from a snapshot of the disk. After the move, the target must not contain
# rows that the restored source has lost.
copied(0);
my $copy = snapshot($north);
insert(0, 'undone', 300);
$south->poll_query_until('postgres', "SELECT count(*) = 300 FROM shard_0.users WHERE name = 'undone'") or die;
put_back($north, $copy);
insert(0, 'since', 200);
my $result = $mover->run('--shard' => 0, '--to' => 'b');
is($result->{status}, 0, 'a move from a restored source succeeds') or diag($result->{output});
like($result->{output}, qr/the source was restarted, promoted or restored after the copy began: the copy starts again/, 'the program detects that the source was restored');
is(names($south, 0), 'old 1 since 200', 'after the second copy the target has the rows of the source');

# The target fails over to an asynchronous standby, which lacks some rows. The source does not send changes again that
# the target confirmed before the failover.
copied(1);
$copy = snapshot($south);
copied(1);
insert(1, 'new', 100);
my $end = $north->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
$north->poll_query_until('postgres', "SELECT confirmed_flush_lsn >= '$end' FROM pg_replication_slots WHERE slot_name ~ '_1\$'") or die;
put_back($south, $copy, 'promoted');
$result = $mover->run('--shard' => 1, '--to' => 'b');
is($result->{status}, 0, 'a move to a promoted target succeeds');
like($result->{output}, qr/the target was restarted, promoted or restored after the copy began: the copy starts again/, 'the program detects that the target was promoted');
is(names($south, 1), 'new 100 old 1', 'after the second copy the target has all rows');

# Restores the target from an older snapshot of its disk after the shard map has changed. The program
# snowflake-move-shard must not drop the rows of the source.
copied(2);
$copy = snapshot($south);
insert(2, 'new', 100);
killed_after_the_map(2);
is($fleet->control('SELECT snowflake_fleet.server_of_shard(2)'), 'b', 'the map has changed before the target is restored');
put_back($south, $copy, 'promoted');
foreach my $what ([], ['--abort'])
{
	$result = $mover->run('--shard' => 2, '--to' => 'b', @$what);
	is($result->{status}, 1, "the move is not finished by another run: @$what");
}
is($mover->run('--shard' => 2, '--to' => 'b')->{output} =~ /has (the record \w+|no record) of this move, as after a restore or a failover, and may lack rows\n.*the source is left as it is/ ? 1 : 0, 1, 'the program explains that the restored target may lack rows');
is($north->safe_psql('postgres', "SELECT count(*), snowflake_fleet.fenced('shard_2') FROM shard_2.users"), '101|t', 'the source keeps its rows if the target has lost its record');
is($mover->run('--shard' => 2, '--from' => 'a', '--drop-source')->{status}, 1, '--drop-source fails if the target has lost its record');
# An operator decides that the source has the right rows, and changes the shard map back.
$fleet->control("SELECT snowflake_fleet.move(2, 'b', 'a')");
is($mover->run('--shard' => 2, '--to' => 'b', '--abort')->{status}, 0, 'when the map has the source again, --abort takes the move back');
is(takes_writes($north, 2), '1', 'the source accepts writes after the move was ended');
is($mover->leftovers, '', 'nothing of the move is left over');

# Restores the target after the end of a move, before the old schema on the source is dropped.
$copy = snapshot($south);
is($mover->run('--shard' => 3, '--to' => 'b')->{status}, 0, 'the move ends before the target is restored');
put_back($south, $copy);
$result = $mover->run('--shard' => 3, '--from' => 'a', '--drop-source');
is($result->{status}, 1, '--drop-source fails after the target was restored to a time before the move');
like($result->{output}, qr/b has no record of the take-over(?s:.*)--force/, 'the program reports that the target has no record');
$south->stop;
like($mover->run('--shard' => 3, '--from' => 'a', '--drop-source')->{output}, qr/the server that took over, b, cannot be reached/, '--drop-source fails if the target cannot be asked');
is($mover->run('--shard' => 3, '--from' => 'a', '--drop-source', '--force')->{status}, 0, '--drop-source --force succeeds although the target cannot be asked');
is($north->safe_psql('postgres', "SELECT to_regnamespace('shard_3_moved') IS NULL"), 't', 'the kept schema is dropped');
$south->start;

# snowflake-move-shard must detect that source and target have different rows.
copied(4);
$south->safe_psql('postgres', 'DELETE FROM shard_4.users');
$result = $mover->run('--shard' => 4, '--to' => 'b');
is($result->{status}, 1, 'the move fails if the target lacks a row when it takes over');
like($result->{output}, qr/the target had different rows than the source\n  Table users: 1 rows on the source, 0 rows on the target/, 'the program detects the missing row by the counts of rows');
unlike($result->{output}, qr/Run this command again to finish/, 'the program does not advise to finish');
like($mover->run('--shard' => 4, '--to' => 'b', '--check')->{output}, qr/run this command without --check to finish/, '--check does not finish the move');
foreach my $what ('again', 'and again')
{
	$result = $mover->run('--shard' => 4, '--to' => 'b');
	is($result->{status}, 1, "a later run does not finish the move: $what");
	like($result->{output}, qr/the target had different rows than the source\n  Table users: 1 rows/, 'a later run reports the same counts of rows');
}
is($north->safe_psql('postgres', "SELECT count(*), snowflake_fleet.fenced('shard_4') FROM shard_4.users"), '1|t', 'the source is unchanged if the counts of rows differ');
$fleet->control("SELECT snowflake_fleet.move(4, 'b', 'a')");
is($mover->run('--shard' => 4, '--to' => 'b', '--abort')->{status}, 0, '--abort ends a move whose counts of rows differ');

# snowflake-move-shard must detect DDL on the source after writers were stopped.
my $pushed = $south->session;
$pushed->query_safe('BEGIN; SELECT 1 FROM snowflake_fleet.map_state FOR UPDATE');
my $altered = $mover->start('--shard' => 4, '--to' => 'b');
$mover->wait_for($altered, qr/taken over/);
$north->safe_psql('postgres', ($north->pg_version >= 17 ? 'SET event_triggers = off; ' : '') . 'REINDEX TABLE CONCURRENTLY shard_4.users');
$pushed->quit;
foreach my $run ($mover->finish($altered), $mover->run('--shard' => 4, '--to' => 'b'))
{
	is($run->{status}, 1, 'the move fails if the fenced schema was altered');
	like($run->{output}, qr/the schema of the source was altered during the take-over\n.*the source is unchanged/, 'the program detects that the schema was altered');
}
is($mover->run('--shard' => 4, '--to' => 'b', '--force')->{status}, 0, '--force finishes a move after the source\'s schema was altered');

# Tests the permanent loss of a server at each step of a move. After --forget, the schema on the remaining server must
# accept DDL and keep its rows.
my %make = (copying => \&copied, fenced => \&killed_at_the_fence, flipped => \&killed_after_the_map);
sub clean
{
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', q{SELECT (SELECT count(*) FROM pg_subscription), (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots),
	  (SELECT count(*) FROM pg_roles AS r WHERE rolname ~ '^snowflake_move' AND NOT EXISTS (SELECT FROM pg_namespace WHERE nspowner = r.oid)), (SELECT count(*) FROM snowflake_fleet.moving WHERE state NOT IN ('kept', 'here'))}), '0|0|0|0|0', "nothing of the move is left: $what");
	return;
}
my @missing = (
	[ 5, 'copying', 'target', [ '--forget' => 'source', '--from' => 'a' ], qr/the source no longer has a record of the move of shard 5$/m, 'ALTER TABLE shard_5.users ADD x int' ],
	[ 6, 'copying', 'source', [ '--forget' => 'target', '--to' => 'b' ], qr/schema shard_6 contains the copied rows, and belongs to role/, 'ALTER TABLE shard_6.users ADD x int' ],
	[ 7, 'fenced', 'target', [ '--forget' => 'source', '--from' => 'a' ], qr/the fence is removed, and the source accepts writes/, "INSERT INTO shard_7.users (name) VALUES ('on'); ALTER TABLE shard_7.users ADD x int" ],
	[ 8, 'fenced', 'source', [ '--forget' => 'target', '--to' => 'b' ], qr/schema shard_8 is kept as it was after the take-over/, "INSERT INTO shard_8.users (name) VALUES ('on'); ALTER TABLE shard_8.users ADD x int" ],
	[ 9, 'flipped', 'source', [ '--forget' => 'target', '--to' => 'b' ], qr/schema shard_9 is kept as it was after the take-over/, "INSERT INTO shard_9.users (name) VALUES ('on'); ALTER TABLE shard_9.users ADD x int" ],
	[ 10, 'flipped', 'target', [ '--forget' => 'source', '--from' => 'a' ], qr/the schema of the source is kept as shard_10_moved/, 'SELECT 1 FROM shard_10_moved.users' ]);
foreach my $case (@missing)
{
	my ($shard, $state, $gone, $options, $said, $passes) = @$case;
	my ($lost, $stays) = $gone eq 'target' ? ($south, $north) : ($north, $south);
	$make{$state}->($shard);
	$lost->stop('immediate');
	isnt($mover->run('--shard' => $shard, '--to' => 'b', '--wait' => 2, @$_)->{status}, 0, "the program fails if the $gone is lost in state $state: @$_") foreach [], ['--abort'];
	$result = $mover->run('--shard' => $shard, @$options);
	is($result->{status}, 0, "the remaining server ends the move with @$options") or diag($result->{output});
	like($result->{output}, $said, '--forget reports what remains');
	clean($stays, $stays->name);
	lives_ok($stays, $passes);
	$lost->start;
	# If the lost server runs again, --forget must remove objects of the move from this server.
	$result = $mover->run('--shard' => $shard, $gone eq 'target' ? ('--forget' => 'target', '--to' => 'b') : ('--forget' => 'source', '--from' => 'a'));
	is($result->{status}, 0, '--forget of the other server succeeds when the server is back') or diag($result->{output});
	clean($lost, $lost->name);
}
sub lives_ok { my ($node, $sql) = @_; is(($node->psql('postgres', $sql))[0], 0, "the remaining schema accepts: $sql"); return; }
is($mover->run('--shard' => 9, '--to' => 'a', '--check')->{output} =~ /can be moved|a schema shard_9/ ? 1 : 0, 1, 'a shard whose source was lost can be moved to another server');

# The control database is lost. If the move has already stopped writers, an operator must decide which server keeps the
# shard before --forget.
copied(11);
killed_at_the_fence(12);
$control->stop;
my @alone = ('--from' => $fleet->conninfo('a'), '--forget' => 'source');
is($mover->run_without_map('--shard' => 11, @alone)->{status}, 0, 'without the control database the source can forget a move that only copied');
$result = $mover->run_without_map('--shard' => 12, @alone);
is($result->{status}, 1, 'the program fails if the schema is fenced');
like($result->{output}, qr/shard 12 is fenced in this database, and the target may have taken over the shard(?s:.*)release_shard\(12\), and repeat this call/, 'the program describes how to lift a fence of an earlier move');
$north->safe_psql('postgres', 'SELECT snowflake_fleet.release_shard(12)');
is(takes_writes($north, 12), '1', 'the fence can be lifted by hand');
is($mover->run_without_map('--shard' => 12, @alone)->{status}, 0, 'after the fence is lifted the move can be forgotten');
is($mover->run_without_map('--shard' => $_, '--to' => $fleet->conninfo('b'), '--forget' => 'target')->{status}, 0, "the target forgets the move of shard $_") foreach 11, 12;
$control->start;
is($mover->leftovers, '', 'nothing is left over');

# The option --forget must succeed although an operator has dropped the role that owns the moved tables on the target.
copied(13);
my $role = $south->safe_psql('postgres', "SELECT rolname FROM pg_roles WHERE rolname ~ '^snowflake_move_.*_13\$'");
$south->safe_psql('postgres', "REASSIGN OWNED BY $role TO CURRENT_USER; DROP ROLE $role");
$result = $mover->run('--shard' => 13, '--to' => 'b', '--forget' => 'target');
is($result->{status}, 0, '--forget target succeeds although the role of the move was dropped') or diag($result->{output});
like($result->{output}, qr/schema shard_13 contains the copied rows/, 'the program reports that a schema has the rows that had arrived');
$south->safe_psql('postgres', 'DROP SCHEMA shard_13 CASCADE');
is($mover->run('--shard' => 13, '--to' => 'b', '--abort')->{status}, 0, '--abort ends the move that the target has forgotten');
is($mover->leftovers, '', 'nothing of the forgotten move is left over');

# The target is created again under the same name, so that it has no record of the move.
copied(13);
$south->safe_psql('postgres', "CREATE DATABASE again");
$south->safe_psql('again', 'CREATE EXTENSION snowflake_shards CASCADE; CREATE EXTENSION snowflake_routing CASCADE');
$fleet->control("SELECT snowflake_fleet.set_server('b', " . Snowflake::Fleet::quote($fleet->conninfo('b') =~ s/dbname=postgres/dbname=again/r) . ')');
like($mover->run('--shard' => 13, '--to' => 'b')->{output}, qr/A move of shard 13 to another server, b, has not ended\. Finish that move, or run it with --abort\. If that server is permanently lost, run --forget source/, 'the program refuses a target that was created again');
is($mover->run('--shard' => 13, '--to' => 'b', '--abort')->{status}, 0, '--abort takes the move to the former target back');
clean($north, 'a');
$fleet->control("SELECT snowflake_fleet.set_server('b', " . Snowflake::Fleet::quote($fleet->conninfo('b')) . ')');
is($mover->run('--shard' => 13, '--to' => 'b', '--forget' => 'target')->{status}, 0, '--forget removes the move from the former target');

# To end a move, snowflake-move-shard must not use a copy of the shard map, or the shard map of a restored control
# database.
$fleet->push_map('a', 'b');
killed_after_the_map(14);
is(takes_writes($south, 14), '1', 'the target has taken over before the program was killed');
like($mover->run_without_map('--control' => $fleet->conninfo('a'), '--shard' => 14, '--to' => 'b', '--abort')->{output}, qr/has only a copy of the shard map/, 'a copy of the map does not decide');
like($mover->run_without_map('--shard' => 14, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('b'), '--abort')->{output},
	qr/shard 14 is fenced(?s:.*)not known whether the target has taken over(?s:.*)release_shard\(14\)/, 'without a map --abort refuses to discard the rows of the target');
my $state = $fleet->control('SELECT system_identifier FROM snowflake_fleet.map_state');
$fleet->control("ALTER TABLE snowflake_fleet.map_shard DISABLE TRIGGER held_up; UPDATE snowflake_fleet.map_shard SET server = 'a' WHERE shard = 14; UPDATE snowflake_fleet.map_state SET system_identifier = 1");
like($mover->run('--shard' => 14, '--to' => 'b', $_)->{output}, qr/the shard map in this database may be older than its copies/, "a control database that was restored does not decide: $_") foreach '--abort', '--verify';
$fleet->control("UPDATE snowflake_fleet.map_shard SET server = 'b' WHERE shard = 14; UPDATE snowflake_fleet.map_state SET system_identifier = $state");
$result = $mover->run('--shard' => 14, '--to' => 'b', '--force');
is($result->{status}, 1, '--force does not finish a move before another run has reported that the rows were not counted');
like($result->{output}, qr/the program ended before it had counted the rows of source and target at the time of the fence\n.*\n  If the target has all rows, finish the move with --force/, 'the program explains that the rows were not counted');
is($mover->run_again('--shard' => 14, '--to' => 'b')->{status}, 0, 'after this report --force finishes the move');
is(names($south, 14), 'old 1 on 1', 'the finished move has lost no row');

# snowflake-move-shard must detect that the trigger which refuses writes on the source was disabled.
killed_after_the_map(15);
$north->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard DISABLE; ALTER TABLE shard_15.users DISABLE TRIGGER snowflake_move; ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS');
like($mover->run('--shard' => 15, '--to' => 'b')->{output}, qr/schema shard_15 of the source is not fenced, and was not changed/, 'the program refuses a source that is not fenced');
$north->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard DISABLE; ALTER TABLE shard_15.users ENABLE ALWAYS TRIGGER snowflake_move; ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS');
is($mover->run_again('--shard' => 15, '--to' => 'b')->{status}, 0, 'when the source is fenced again, the move is finished');
$north->safe_psql('postgres', ($north->pg_version >= 17 ? 'SET event_triggers = off; ' : '') . 'REINDEX TABLE CONCURRENTLY shard_15_moved.users');
like($mover->run('--shard' => 15, '--from' => 'a', '--drop-source')->{output}, qr/was changed after the move: check its contents, and drop it yourself/, '--drop-source does not drop a kept schema that was altered');
$north->safe_psql('postgres', 'DROP SCHEMA shard_15_moved CASCADE');
is($mover->run('--shard' => 15, '--from' => 'a', '--drop-source')->{status}, 0, '--drop-source succeeds when the altered schema was dropped by hand');

# In a move without a shard map, the names of the publication and of other objects contain the schema name. Long schema
# names must be shortened.
my $long = "\xc3\xbc" x 31;
$north->safe_psql('postgres', qq{CREATE SCHEMA "$long"; CREATE TABLE "$long".t (id int PRIMARY KEY)});
foreach my $way ([ 'a', 'b' ], [ 'b', 'a' ], [ 'a', 'b' ])
{
	my ($from, $to) = map { $fleet->conninfo($_) } @$way;
	$result = $mover->run_without_map('--shard' => 200, '--schema' => $long, '--from' => $from, '--to' => $to);
	is($result->{status}, 0, 'a long name moves from ' . join ' to ', @$way) or diag($result->{output});
}

done_testing();
