# Those who own tables that move get round its guard neither by old snapshots, nor by forged notes, nor by what event triggers
# do not see; and members of pg_write_all_data do not write what a superuser believes.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 6 ], b => [7] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE postgres TO tenant') foreach $north, $south;
my @tenant = (extra_params => [ '-U', 'tenant' ]);
$_->safe_psql('postgres', <<~'SQL', @tenant) foreach $north, $south;
	CREATE SCHEMA own;
	CREATE FUNCTION own.evil() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
	  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
	    ALTER ROLE tenant SUPERUSER;
	  END IF;
	  RETURN NEW;
	END $$;
	SQL
my %refused = (sqlstate => 55006, message => 'moves to another server', detail => 'would change it', hint => '--abort');
my ($trigger, $always) = ('CREATE TRIGGER evil AFTER INSERT ON SPACE.counts FOR EACH ROW EXECUTE FUNCTION own.evil()', 'ALTER TABLE SPACE.counts ENABLE ALWAYS TRIGGER evil');
my $at_truncate = 'CREATE TRIGGER evil BEFORE TRUNCATE ON SPACE.counts EXECUTE FUNCTION own.evil()';

sub in_shard { my ($shard, @sql) = @_; return map { s/SPACE/shard_$shard/gr } @sql; }
sub give_tenant
{
	my ($shard) = @_;
	$north->safe_psql('postgres', "GRANT USAGE, CREATE ON SCHEMA shard_$shard TO tenant");
	$north->safe_psql('postgres', "CREATE TYPE shard_$shard.kind AS ENUM ('x'); CREATE TABLE shard_$shard.counts (id bigint PRIMARY KEY, n int NOT NULL, k shard_$shard.kind);"
		  . "CREATE TABLE shard_$shard.others (LIKE shard_$shard.counts INCLUDING ALL); INSERT INTO shard_$shard.counts SELECT g, g FROM generate_series(1, 100) AS g", @tenant);
	return;
}
sub run_move { my ($shard, @more) = @_; return $mover->run(arguments($shard, @more)); }
sub arguments { my ($shard, @more) = @_; return ('--shard' => $shard, '--to' => 'b', '--not-ids' => 'counts.id', '--not-ids' => 'others.id', @more); }
sub is_no_superuser { return is($_[0]->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'tenant'"), 'f', $_[1]); }
give_tenant($_) foreach 0 .. 5;

# Snapshots from before the move, on both sides: it waits for them, and says for whom.
my %old = map { my $session = $_->session('postgres', @tenant); $session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ'); $session->query_safe('SELECT count(*) FROM pg_class'); ($_->name => $session) } $north, $south;
my $move = $mover->start(arguments(0));
$mover->wait_for($move, qr/source: waiting for transactions from before the move, \d+ s: process \d+ \(tenant, since/);
my $source = $old{ $north->name };
sub is_refused
{
	my ($session, $statement, $name) = @_;
	$session->query($statement);
	like($session->{stderr}, qr/a shard has begun to move since this transaction took its snapshot/, $name);
	$session->{stderr} = '';
	$session->query_safe('ROLLBACK');
	return;
}
is_refused($source, in_shard(0, 'ALTER TABLE SPACE.counts RENAME TO t'), 'on the source an old snapshot renames no table');
$mover->wait_for($move, qr/target: waiting for transactions from before the move/);
my $target = $old{ $south->name };
is_refused($target, in_shard(0, $trigger), 'on the target it makes no trigger');
my $result = $mover->finish($move);
is($result->{status}, 0, '... and the shard moves') or diag($result->{output});
is_no_superuser($south, '... and nothing has fired');
is($south->safe_psql('postgres', 'SELECT (SELECT count(*) FROM shard_0.counts), (SELECT array_agg(id) FROM shard_0.others)'), '100|', '... with each row in its table');

# A forged note, and what event triggers do not see, on the target.
run_move(1, '--until' => 'copied')->{status} == 0 or die;
my ($create, $enable) = in_shard(1, $trigger, $always);
$south->refuses("SET SESSION AUTHORIZATION tenant; DO \$\$ BEGIN PERFORM set_config('snowflake_fleet.altered', jsonb_build_object('at', statement_timestamp()::text, 'schemas', jsonb_build_array('shard_1'))::text, false); "
	  . "EXECUTE '$create'; EXECUTE '$enable'; END \$\$", \%refused, 'a forged note');
$south->refuses('SET SESSION AUTHORIZATION tenant; BEGIN; CREATE FUNCTION own.cast(shard_1.kind) RETURNS json LANGUAGE sql AS $$SELECT NULL::json$$; CREATE CAST (shard_1.kind AS json) WITH FUNCTION own.cast(shard_1.kind)',
	\%refused, 'a cast of its types');
$south->psql('postgres', 'REINDEX TABLE CONCURRENTLY shard_1.counts', @tenant);    # from 17 on it ends with an error, and has been done
$south->refuses("SET SESSION AUTHORIZATION tenant; $create", \%refused, 'after REINDEX CONCURRENTLY');
# In a superuser's session ANALYZE runs functions of a table's owner.
$south->refuses('CREATE TABLE public.elsewhere ()', { %refused, hint => '--abort' }, '... to superusers as well');
is(run_move(1, '--abort')->{status}, 0, 'taken back');
is($south->safe_psql('postgres', 'CREATE TABLE public.elsewhere (); SELECT 1'), '1', '... and then no more');

# A trigger of the owner's that fires in replication as well, when the tables are emptied.
my ($dump) = run_command([ 'pg_dump', '-s', '-n', 'shard_2', '-d', $north->connstr('postgres') ]);
$south->safe_psql('postgres', $dump =~ s/^\\(un)?restrict.*$//gmr);
run_move(2, '--until' => 'copied')->{status} == 0 or die;
$south->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard DISABLE');    # as a guard that was got round
$south->safe_psql('postgres', $_, @tenant) foreach in_shard(2, $at_truncate, $always);
$south->safe_psql('postgres', 'ALTER EVENT TRIGGER snowflake_move_guard ENABLE ALWAYS');
$result = run_move(2, '--abort');
is($result->{status}, 1, 'it is not taken back while such a trigger is there');
like($result->{output}, qr/Trigger evil of table shard_2.counts is ENABLE ALWAYS or REPLICA/, '... which it names');
is_no_superuser($south, '... and does not fire');
$south->safe_psql('postgres', 'DROP TRIGGER evil ON shard_2.counts');
is(run_move(2, '--abort')->{status}, 0, '... and is, without it');

# A view in a table's place while --check waits for the table.
$_->safe_psql('postgres', <<~'SQL', @tenant) foreach $north, $south;
	CREATE FUNCTION own.see() RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
	  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
	    ALTER ROLE tenant SUPERUSER;
	  END IF;
	  RETURN true;
	END $$;
	SQL
my $swap = $north->session('postgres', @tenant);
$swap->query_safe($_) foreach 'BEGIN', 'DROP TABLE shard_3.counts', 'CREATE VIEW shard_3.counts AS SELECT 5::bigint AS id WHERE own.see()';
$move = $mover->start('--shard' => 3, '--to' => 'b', '--check');
$north->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation IS NOT NULL)") or die;
$swap->query_safe('COMMIT');
is($mover->finish($move)->{status}, 1, 'a view in the place of a table: the check does not pass');
is_no_superuser($north, '... and does not query it');

# Who has a lock on the target holds up no writers, and nobody without a word; settings of the database's are not the program's.
$north->safe_psql('postgres', 'CREATE SEQUENCE shard_5.numbers; ALTER SEQUENCE shard_5.numbers OWNER TO tenant');
run_move(5, '--until' => 'copied')->{status} == 0 or die;
my $holder = $south->session('postgres', @tenant);
$holder->query_safe($_) foreach 'BEGIN', 'LOCK TABLE shard_5.counts IN SHARE UPDATE EXCLUSIVE MODE';
my $superuser = $south->session('postgres');
$superuser->query_safe('BEGIN');
$superuser->query_safe('SELECT snowflake_fleet.hold_move(5, \'test\')');
$superuser->query_safe('ALTER SEQUENCE shard_5.numbers CACHE 2');
$_->safe_psql('postgres', 'ALTER DATABASE postgres SET standard_conforming_strings = off; ALTER DATABASE postgres SET quote_all_identifiers = on') foreach $north, $south, $fleet->node('control');
$move = $mover->start(arguments(5));
$mover->wait_for($move, qr/table "shard_5"."counts" of the target is not analyzed, for it is locked/);
$mover->wait_for($move, qr/what the target has to change is locked: the writers go on, later again; waiting for process \d+/);
is($north->safe_psql('postgres', "INSERT INTO shard_5.counts VALUES (101, 0) RETURNING id"), '101', 'a writer goes on');
$holder->query_safe('ROLLBACK');
$superuser->query_safe('ROLLBACK');
$result = $mover->finish($move);
is($result->{status}, 0, '... and the move, when the locks are gone') or diag($result->{output});
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_5.counts'), '101', '... with all rows');
$_->safe_psql('postgres', 'ALTER DATABASE postgres RESET standard_conforming_strings; ALTER DATABASE postgres RESET quote_all_identifiers') foreach $north, $south, $fleet->node('control');

# Who may write all data.
$_->safe_psql('postgres', 'GRANT pg_write_all_data, pg_read_all_data TO tenant') foreach $north, $south;
run_move(4, '--until' => 'copied')->{status} == 0 or die;
foreach my $node ($north, $south)
{
	is($node->safe_psql('postgres', "WITH u AS (UPDATE snowflake_fleet.moving SET definition = 'SELECT 1' RETURNING 1) SELECT count(*) FROM u", @tenant), '0', 'pg_write_all_data does not write how a move stands');
	my %rows = (moving => "(shard, schema, side, state, other, other_database) VALUES (9, 'x', 'source', 'begun', '', '')", move_holder => "VALUES (4, 'x', pg_backend_pid(), now())",
		move_mark => 'VALUES (4, 1000)', move_note => "VALUES (pg_backend_pid(), now(), '{}')");
	$node->refuses("SET SESSION AUTHORIZATION tenant; INSERT INTO snowflake_fleet.$_ $rows{$_}", { sqlstate => 42501, message => 'row-level security' }, "... nor adds to $_") foreach sort keys %rows;
	cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM snowflake_fleet.moving', @tenant), '>', 0, '... but reads it, where it may');
}
is(run_move(4)->{status}, 0, 'the move goes on');

done_testing();
