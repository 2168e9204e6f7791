# What a superuser runs for a move is not somebody else's: heirs of its tables, objects under the names of an extension's, the
# mover's own tables. And a rehearsal changes nothing.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 5 ], b => [6] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
my @tenant = (extra_params => [ '-U', 'tenant' ]);
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE postgres TO tenant') foreach $north, $south;
$_->safe_psql('postgres', <<~'SQL', @tenant) foreach $north, $south;
	CREATE SCHEMA own;
	CREATE SCHEMA ext;
	CREATE FUNCTION own.evil(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
	  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
	    ALTER ROLE tenant SUPERUSER;
	  END IF;
	  RETURN 1;
	END $$;
	CREATE TABLE own.heir (id bigint PRIMARY KEY, n int NOT NULL);
	CREATE INDEX ON own.heir (id) WHERE own.evil(1) = 1;
	SQL

sub give_tenant
{
	my ($shard) = @_;
	$north->safe_psql('postgres', "GRANT USAGE, CREATE ON SCHEMA shard_$shard TO tenant");
	$north->safe_psql('postgres', "CREATE TABLE shard_$shard.counts (id bigint PRIMARY KEY, n int NOT NULL); INSERT INTO shard_$shard.counts SELECT g, g FROM generate_series(1, 100) AS g", @tenant);
	return;
}
sub arguments { my ($shard, @more) = @_; return ('--shard' => $shard, '--to' => 'b', '--not-ids' => 'counts.id', @more); }
sub run_move { return $mover->run(arguments(@_)); }
sub refuses_move
{
	my ($what, $message, @arguments) = @_;
	my $result = run_move(@arguments);
	is($result->{status}, 1, "$what: refused");
	like($result->{output}, $message, '... and says why');
	is($_->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'tenant'"), 'f', '... the owner is no superuser') foreach $north, $south;
	return;
}
give_tenant($_) foreach 0 .. 4;

# Heirs: a query of a table plans them, and calls what their indexes have.
my ($dump) = run_command([ 'pg_dump', '-s', '-n', 'shard_0', '-d', $north->connstr('postgres') ]);
$south->safe_psql('postgres', $dump =~ s/^\\(un)?restrict.*$//gmr);
$south->safe_psql('postgres', 'ALTER TABLE own.heir INHERIT shard_0.counts', @tenant);
my $heir = qr/Table shard_\d.counts takes part in the partitioning or inheritance of a table outside of the schema/;
refuses_move('an heir of a table that was on the target', $heir, 0, '--check');
$south->safe_psql('postgres', 'ALTER TABLE own.heir NO INHERIT shard_0.counts; ALTER TABLE own.heir ADD CONSTRAINT refers FOREIGN KEY (id) REFERENCES shard_0.counts', @tenant);
refuses_move('... or a foreign key to one', qr/Foreign key refers of table own.heir refers to the schema from outside: drop it/i, 0, '--check');
$south->safe_psql('postgres', 'ALTER TABLE own.heir DROP CONSTRAINT refers', @tenant);
is(run_move(0, '--check')->{status}, 0, '... and without it, it can be moved');
my $parent = $north->session('postgres', @tenant);
$parent->query_safe($_) foreach 'BEGIN', 'ALTER TABLE own.heir INHERIT shard_1.counts';
my $check = $mover->start(arguments(1, '--check'));
$north->poll_query_until('postgres', 'SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation IS NOT NULL)') or die;
$parent->query_safe('COMMIT');
my $result = $mover->finish($check);
is($result->{status}, 1, 'an heir that came while --check waited for the table');
like($result->{output}, $heir, '... is named');
is($north->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'tenant'"), 'f', '... and not asked');
$north->safe_psql('postgres', 'ALTER TABLE own.heir NO INHERIT shard_1.counts', @tenant);

# What the owner of an extension has added to it he may alter.
$_->safe_psql('postgres', 'CREATE EXTENSION pg_trgm SCHEMA ext; CREATE DOMAIN ext.word AS text; ALTER EXTENSION pg_trgm ADD DOMAIN ext.word', @tenant) foreach $north, $south;
$north->safe_psql('postgres', 'CREATE TYPE shard_2.span AS RANGE (subtype = int); ALTER TABLE shard_2.counts ADD w ext.word, ADD ws ext.word[], ADD s shard_2.span', @tenant);
refuses_move('a domain that an ordinary role added to an extension', qr/Column w of table shard_2.counts uses type ext.word of extension pg_trgm, which role tenant owns/i, 2, '--check');
$north->safe_psql('postgres', 'ALTER DOMAIN ext.word OWNER TO CURRENT_USER');
refuses_move('... or has on the target', qr/The target has no type ext.word of extension pg_trgm that a superuser owns/, 2, '--dry-run');
$south->safe_psql('postgres', 'ALTER DOMAIN ext.word OWNER TO CURRENT_USER');
$result = run_move(2);
is($result->{status}, 0, '... and with superusers\' ones on both it moves, the array of it and a range of the owner\'s as well') or diag($result->{output});

# What the server's own functions do besides computing, nobody's catalogue says.
foreach my $check ("database_to_xml(true, false, '') IS NOT NULL", "to_regclass('x') IS NULL", "set_config('session_replication_role', 'origin', false) IS NOT NULL", "query_to_xml('SELECT own.evil(1)', true, false, '') IS NOT NULL", "domain_in('x', ('ext.' || 'word')::regtype, -1) IS NOT NULL")
{
	$north->safe_psql('postgres', "ALTER TABLE shard_4.counts ADD CONSTRAINT calls CHECK ($check) NOT VALID", @tenant);
	refuses_move("CHECK ($check)", qr/Constraint calls of table shard_4.counts calls \w+\(.*\), which may do more than compute, and the target would call it as a superuser/, 4, '--check');
	$north->safe_psql('postgres', 'ALTER TABLE shard_4.counts DROP CONSTRAINT calls', @tenant);
}
$north->safe_psql('postgres', "ALTER TABLE shard_4.counts ADD CHECK (n < random() * 1e9 OR clock_timestamp() > now() OR date_part('day', clock_timestamp()) > 0 OR to_char(now(), 'DD') > ''"
	. " OR now() - interval '1 day' < date '2026-01-01' OR format('%s', concat_ws(' ', n, now())) > '' OR to_jsonb(n) IS NULL)", @tenant);
is(run_move(4, '--check')->{status}, 0, '... and times and numbers may be computed');

# Under the name of an extension's function there is somebody's on the target.
$north->safe_psql('postgres', "ALTER TABLE shard_3.counts ADD s real GENERATED ALWAYS AS (ext.similarity('a', 'b')) STORED", @tenant);
$south->safe_psql('postgres', 'CREATE SCHEMA aside; ALTER EXTENSION pg_trgm SET SCHEMA aside');
$south->safe_psql('postgres', "CREATE FUNCTION ext.similarity(text, text) RETURNS real LANGUAGE sql IMMUTABLE AS 'SELECT own.evil(1)::real'", @tenant);
refuses_move("$_: a function in the place of an extension's", qr/The target has no function ext.similarity\(pg_catalog.text,pg_catalog.text\) of extension pg_trgm/, 3, $_) foreach '--dry-run', '--check';
$south->safe_psql('postgres', 'DROP FUNCTION ext.similarity(text, text); ALTER EXTENSION pg_trgm SET SCHEMA ext');
$result = run_move(3, '--dry-run');
is($result->{status}, 0, '... and with the extension\'s it can be moved') or diag($result->{output});

# ... or beside it, and fits the arguments better than the extension's does.
$_->safe_psql('postgres', 'CREATE EXTENSION hstore SCHEMA ext') foreach $north, $south;
$south->safe_psql('postgres', <<~'SQL', @tenant);
	CREATE FUNCTION ext.populate_record(pg_am, ext.hstore) RETURNS pg_am LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM own.evil(1); RETURN $1; END $$;
	CREATE OPERATOR ext.#= (FUNCTION = ext.populate_record, LEFTARG = pg_am, RIGHTARG = ext.hstore);
	SQL
$north->safe_psql('postgres', <<~'SQL', @tenant);
	CREATE TABLE shard_3.parts (id bigint PRIMARY KEY, n int NOT NULL) PARTITION BY RANGE (id);
	CREATE TABLE shard_3.part PARTITION OF shard_3.parts FOR VALUES FROM (0) TO (9223372036854775807);
	SQL
foreach my $beside ([ 'function', "ext.populate_record(NULL::pg_am, 'amname=>x'::ext.hstore)", 'ext.populate_record(pg_am,ext.hstore)' ], [ 'operator', "NULL::pg_am OPERATOR(ext.#=) 'amname=>x'::ext.hstore", 'ext.#=(pg_am,ext.hstore)' ])
{
	my ($kind, $call, $there) = @$beside;
	$north->safe_psql('postgres', "ALTER TABLE shard_3.part ADD CONSTRAINT calls CHECK (($call).amname IS NOT NULL)", @tenant);
	refuses_move("$_: $kind beside an extension's", qr/The target has \Q$kind $there\E of role tenant beside that of extension hstore/, 3, $_) foreach '--check', '--dry-run';
	$north->safe_psql('postgres', 'ALTER TABLE shard_3.part DROP CONSTRAINT calls', @tenant);
}
is(run_move(3, '--check')->{status}, 0, '... which is in nobody\'s way where it is not called');

# The program's own tables, in a database of somebody's.
$north->safe_psql('postgres', 'CREATE DATABASE bare OWNER tenant');
my $bare = $north->connstr('bare');
like($mover->run_without_map('--list', '--control' => $bare)->{output}, qr/extension snowflake_routing has to be installed/, 'a database without the extension is said to be one');
$north->safe_psql('bare', 'CREATE SCHEMA snowflake_fleet; CREATE VIEW snowflake_fleet.moving AS SELECT 1 WHERE false; CREATE TABLE snowflake_fleet.map_state ()', @tenant);
like($mover->run_without_map('--list', $_ => $bare)->{output}, qr/schema snowflake_fleet has objects of role tenant, who is no superuser/, "$_: ... and objects of an ordinary role's are not asked") foreach '--control', '--from';

# Of rows that compare equal and are not the same, the target would change any.
$north->safe_psql('postgres', 'CREATE TABLE shard_5.amounts (n numeric, j json); ALTER TABLE shard_5.amounts REPLICA IDENTITY FULL');
$result = $mover->run('--shard' => 5, '--to' => 'b', '--check');
like($result->{output}, qr/Table shard_5.amounts has REPLICA IDENTITY FULL and no primary key/, 'a table without a key is refused');
$north->safe_psql('postgres', 'ALTER TABLE shard_5.amounts ADD id bigint PRIMARY KEY');
$north->safe_psql('postgres', "INSERT INTO shard_5.amounts VALUES (1.0, '{}', 1), (1.00, '{}', 2)");
my @five = ('--shard' => 5, '--to' => 'b', '--not-ids' => 'amounts.id');
is($mover->run(@five, '--until' => 'copied')->{status}, 0, '... and with one it is copied');

# A target that crashed may have forgotten that a table was copied, whose slot is gone.
$south->safe_psql('postgres', $_) foreach 'ALTER SUBSCRIPTION snowflake_move_5 DISABLE', "UPDATE pg_subscription_rel SET srsubstate = 'f' WHERE srrelid = 'shard_5.amounts'::regclass", 'ALTER SUBSCRIPTION snowflake_move_5 ENABLE';
$north->safe_psql('postgres', "DELETE FROM shard_5.amounts WHERE n::text = '1.00'; UPDATE shard_5.amounts SET n = 2");
$result = $mover->run(@five);
is($result->{status}, 0, 'a copy that cannot go on starts over') or diag($result->{output});
like($result->{output}, qr/the target has forgotten that it copied a table, as after a crash: the copy starts over/, '... it says so');
is($south->safe_psql('postgres', 'SELECT id, n FROM shard_5.amounts'), '1|2', '... with the rows as they are');

# A rehearsal changes nothing, and who is in its way is waited for.
is(run_move(4, '--until' => 'copied')->{status}, 0, 'copied');
my $holder = $south->session('postgres');
$holder->query_safe($_) foreach 'BEGIN', "SELECT state FROM snowflake_fleet.moving WHERE shard = 4 FOR UPDATE";
my $writer = $north->session('postgres', @tenant);
$writer->query_safe($_) foreach 'BEGIN', 'INSERT INTO shard_4.counts VALUES (101, 0)';
my $move = $mover->start(arguments(4));
$mover->wait_for($move, qr/what the target has to change is locked; waiting for process \d+/);
$holder->query_safe('ROLLBACK');
$mover->wait_for($move, qr/the writers were not done in \d+ ms/);
is($south->safe_psql('postgres', 'SELECT state FROM snowflake_fleet.moving WHERE shard = 4'), 'arriving', 'while writers have not ended, the target is not level');
$writer->query_safe('COMMIT');
$result = $mover->finish($move);
is($result->{status}, 0, 'the move ends') or diag($result->{output});
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_4.counts'), '101', '... with all rows');

done_testing();
