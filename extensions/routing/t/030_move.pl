# Moves a shard while clients write to the shard. After the move of the shard, no row may be lost or repeated.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 7 ], b => [ 8 .. 15 ] }, routers => ['c']);
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
note 'from ' . $north->safe_psql('postgres', 'SHOW server_version');
note 'to ' . $south->safe_psql('postgres', 'SHOW server_version');
$fleet->control("SELECT snowflake_fleet.set_server('c', " . Snowflake::Fleet::quote($fleet->conninfo('c')) . ')');
$fleet->push_map('a', 'b', 'c');

# While a shard is moved, clients insert, update and delete rows, and record each committed change.
$north->safe_psql('postgres', 'INSERT INTO shard_5.users (name) SELECT \'old \' || n FROM generate_series(1, 20000) n');
my %rows = map { split /\|/ } split /\n/, $north->safe_psql('postgres', 'SELECT id, name FROM shard_5.users');
my @writers = map { $mover->start_writer(5, $_) } 1 .. 3;
my $others = $mover->start_writer(6, 9);
sleep 1;
my $moved = $mover->run('--shard' => 5, '--to' => 'b');
is($moved->{status}, 0, 'the shard is moved') or diag($moved->{output});
like($moved->{output}, qr/writers waited [\d.]+ ms, then were refused for [\d.]+ ms/, 'the program shows how long writers waited and were refused');
note $moved->{output};
sleep 1;
$mover->stop_writers;
my %result = map { $_->{number} => $mover->result_of($_) } @writers, $others;
is(join('', map { $_->{errors} } values %result), '', 'every error of the writers ended with a retry');
is($result{9}{refused}, 0, 'writers of another shard had no error');
cmp_ok($result{$_}{after}, '>', 10, "writer $_ wrote on the target") foreach 1 .. 3;

%rows = (%rows, %{ $result{$_}{rows} }) foreach 1 .. 3;
my %minted;
$minted{$_}++ foreach map { my $minted = $_->{minted}; map { ($_) x $minted->{$_} } keys %$minted } values %result;
is(join(' ', grep { $minted{$_} > 1 } keys %minted), '', 'ids of both servers are unique');
is($mover->differences($south, 5, \%rows), '', 'the target has exactly the committed rows, with their last values');
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_5.users WHERE snowflake.shard_of(id) <> 5'), '0', 'each row is in the schema of its shard');
is($south->safe_psql('postgres', 'SELECT count(DISTINCT snowflake.region_of(id)) FROM shard_5.users'), '2', 'the rows were minted on both servers');
is($north->safe_psql('postgres', "SELECT to_regnamespace('shard_5') IS NULL"), 't', 'the source has no schema of the moved shard');
is($south->safe_psql('postgres', "SELECT string_agg(DISTINCT pg_get_userbyid(relowner), ' ') FROM pg_class WHERE relnamespace = 'shard_5'::regnamespace"),
	$north->safe_psql('postgres', 'SELECT current_user'), 'the target\'s belongs to its owner');
foreach my $name ('a', 'b', 'c', 'control')
{
	is($fleet->node($name)->safe_psql('postgres', 'SELECT snowflake_fleet.server_of_shard(5)'), 'b', "the map of $name has the target for the shard");
}
is($mover->leftovers, '', 'no publication, slot, subscription, trigger or record of the move remains');
is($mover->run('--shard' => 5, '--to' => 'b', '--from' => 'a')->{status}, 0, 'a second run of the finished move succeeds');

# A move must transfer keys, sequences and privileges of the shard's schema. New ids on the target must be greater than
# all moved ids.
is($south->safe_psql('postgres', "SELECT count(*) FROM pg_constraint WHERE conrelid = 'shard_5.photos'::regclass AND contype IN ('p', 'f')"), '2', 'the target has the primary key and the foreign key');
$north->safe_psql('postgres', 'INSERT INTO shard_6.photos (user_id, caption) SELECT id, 1 FROM shard_6.users LIMIT 30; GRANT SELECT ON shard_6.photos TO PUBLIC');
my $last = $north->safe_psql('postgres', 'SELECT max(number), max(id) FROM shard_6.photos');
is($mover->run('--shard' => 6, '--to' => 'b')->{status}, 0, 'a second shard is moved');
my ($number, $id) = split /\|/, $last;
my $next = $south->safe_psql('postgres', 'INSERT INTO shard_6.photos (user_id) SELECT min(id) FROM shard_6.users RETURNING number, id > ' . $id);
is($next, ($number + 1) . '|t', 'the sequence continues on the target, and new ids are above the moved ones');
is($south->safe_psql('postgres', "SELECT has_table_privilege('public', 'shard_6.photos', 'SELECT')"), 't', 'the target has the privileges of the source');

# Moves a shard to another server and back, and compares dumps of its schema. The schema contains all kinds of objects
# that create_shards() can create.
foreach my $node ($north, $south)
{
	$node->safe_psql('postgres', <<~'SQL');
		CREATE ROLE tenant LOGIN; CREATE ROLE app; CREATE EXTENSION citext; CREATE EXTENSION pg_trgm;
		CREATE TYPE mood AS ENUM ('well', 'it''s ill'); CREATE DOMAIN short AS varchar(10) CHECK (VALUE IN ('x', 'y'));
		CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.note := coalesce(NEW.note, 'touched'); RETURN NEW; END$$;
		CREATE TABLE countries (code text PRIMARY KEY, name text); INSERT INTO countries VALUES ('de', 'Germany'), ('fr', 'France');
		GRANT USAGE ON SCHEMA snowflake TO tenant; GRANT REFERENCES ON countries TO tenant;
		CREATE SCHEMA shared AUTHORIZATION tenant; GRANT USAGE ON SCHEMA shared TO app;
		SET ROLE tenant;
		CREATE TABLE shared."Odd ""one"", {} %s" (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), status varchar NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'old')),
		  m mood, ms mood[], s short, country text REFERENCES countries, c citext COLLATE "C", n int GENERATED ALWAYS AS IDENTITY (INCREMENT 3), note text, blob bytea, parent bigint, UNIQUE (n, status));
		ALTER TABLE shared."Odd ""one"", {} %s" ADD FOREIGN KEY (parent) REFERENCES shared."Odd ""one"", {} %s" DEFERRABLE INITIALLY DEFERRED, ALTER blob SET STORAGE EXTERNAL;
		CREATE INDEX ON shared."Odd ""one"", {} %s" (lower(note)) WHERE status <> 'old'; CREATE INDEX ON shared."Odd ""one"", {} %s" USING gin (note public.gin_trgm_ops);
		CREATE TRIGGER touch BEFORE INSERT ON shared."Odd ""one"", {} %s" FOR EACH ROW WHEN (NEW.note IS NULL) EXECUTE FUNCTION touch();
		CREATE STATISTICS shared.st ON m, status FROM shared."Odd ""one"", {} %s"; COMMENT ON COLUMN shared."Odd ""one"", {} %s".m IS 'it''s'; COMMENT ON SCHEMA shared IS 'one';
		CREATE TABLE shared.plain (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), t text);
		GRANT SELECT, UPDATE (t) ON shared.plain TO app WITH GRANT OPTION; REVOKE DELETE ON shared.plain FROM tenant;
		SQL
}
$south->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO PUBLIC');
$north->safe_psql('postgres', <<~'SQL');
	CALL snowflake.create_shards('shared', '[20,20]');
	CREATE SEQUENCE shard_20.down INCREMENT -3 START 100 MINVALUE -1000 MAXVALUE 1000 CACHE 5; ALTER SEQUENCE shard_20.down OWNER TO tenant; GRANT USAGE ON SEQUENCE shard_20.down TO app;
	ALTER TABLE shard_20.plain ADD serial bigserial;
	ALTER SEQUENCE shard_20."Odd ""one"", {} %s_n_seq" RENAME TO another;
	INSERT INTO shard_20."Odd ""one"", {} %s" (m, ms, s, country, c, blob) SELECT 'it''s ill', '{well}', 'y', 'de', 'C', decode(repeat(md5(n::text), 3000), 'hex') FROM generate_series(1, 50) n;
	INSERT INTO shard_20.plain (t) VALUES ('x'), (NULL);
	SELECT nextval('shard_20.down') FROM generate_series(1, 7);
	SQL
$fleet->control("SELECT snowflake_fleet.assign('[20,20]', 'a')");

sub dump_of
{
	my ($node) = @_;
	my ($out, $err);
	IPC::Run::run([ 'pg_dump', '-s', '-n', 'shard_20', '-d', $node->connstr('postgres') ], '>', \$out, '2>', \$err) or die $err;
	# Removes parts of a dump that may differ, such as names of identity sequences.
	return join "\n", sort grep { !/^--|^$/ } split /\n/, $out =~ s/^\\(un)?restrict .*\n//mgr =~ s/^REVOKE [A-Z,]+ ON TABLE/REVOKE ALL ON TABLE/mgr =~ s/another|"Odd ""one"", \{\} %s_n_seq"/SEQUENCE/gr;
}
sub rows_of { return join "\n", map { $_[0]->safe_psql('postgres', "SELECT count(*), md5(string_agg(t::text, ',' ORDER BY id)) FROM shard_20.$_ AS t") } 'plain', '"Odd ""one"", {} %s"'; }
my ($dump, $all_rows) = (dump_of($north), rows_of($north));
my $there = $mover->run('--shard' => 20, '--to' => 'b', '--verify');
is($there->{status}, 0, 'a shard of a template with shared things moves') or diag($there->{output});
like($there->{output}, qr/source and target had the same rows/, 'the program has verified the rows of both sides');
is(rows_of($south), $all_rows, 'the target has the same rows');
my $second = dump_of($south);
my $only = sub { my %one = map { $_ => 1 } split /\n/, $_[0]; return join "\n", grep { !$one{$_} } split /\n/, $_[1]; };
# PostgreSQL prints some expressions in another form after the first dump and restore.
unlike($only->($dump, $second), qr/^(?!.*status)./m, 'the target has the same definitions, owners and privileges') or diag($only->($dump, $second));
is($only->($second, $dump) =~ s/^.*status.*$//mgr =~ s/\n//gr, '', 'no definition of the source is missing on the target');
is($south->safe_psql('postgres', q{SELECT nextval('shard_20.down'), has_schema_privilege('public', 'shard_20', 'USAGE'), has_column_privilege('app', 'shard_20.plain', 't', 'UPDATE')}), '70|f|t', 'a sequence continues on the target, with the privileges of the source');
is($south->safe_psql('postgres', q{INSERT INTO shard_20."Odd ""one"", {} %s" DEFAULT VALUES RETURNING n, note; INSERT INTO shard_20.plain (t) VALUES ('y') RETURNING serial}), "151|touched\n3", 'identity and serial columns continue on the target');
is($south->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'shard_20'"), 't', 'the target has statistics at once');
$all_rows = rows_of($south);
is($mover->run('--shard' => 20, '--to' => 'a', '--verify')->{status}, 0, 'the shard is moved back');
is(rows_of($north), $all_rows, 'after the move back the rows are the same');
is($only->($second, dump_of($north)), '', 'after the move back the definitions are the same');
like($mover->run('--shard' => 20, '--from' => 'a', '--drop-source')->{output}, qr/rows of shard_20_moved|schema shard_20_moved is dropped/, '--drop-source drops the kept schema');
is($mover->run('--shard' => 20, '--from' => 'b', '--drop-source')->{status}, 0, '--drop-source also succeeds on the other server');

# Tests settings of the source or target that prevent a move, such as wal_level.
$north->append_conf('postgresql.conf', 'wal_level = replica');
$north->restart;
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/On the source, wal_level is replica\. Set it to logical/, 'a move is refused if the source has wal_level = replica');
$north->append_conf('postgresql.conf', 'wal_level = logical');
$north->restart;
$south->append_conf('postgresql.conf', 'snowflake.region = 2');
$south->restart;
like($mover->run('--shard' => 1, '--to' => 'b')->{output}, qr/Both servers mint ids of shard 1 in region 2/, 'a move is refused if both servers mint in the same region');
$south->append_conf('postgresql.conf', 'snowflake.region = 3');
$south->restart;
is($mover->run('--shard' => 1, '--to' => 'b')->{status}, 0, 'the shard is moved when the target has another region');
is($mover->run('--shard' => 1)->{status}, 2, 'without a target the exit status is 2');
my $other = Snowflake::Node->create('other', conf => "snowflake.layout = 'instagram'\n");
$other->start;
$other->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my @to_other = ('--shard' => 2, '--from' => $fleet->conninfo('a'), '--to' => 'host=' . $other->host . ' port=' . $other->port . ' dbname=postgres');
like($mover->run_without_map(@to_other)->{output}, qr/target: extension snowflake_routing is not installed/, 'a move is refused if the target lacks the extension');
$other->safe_psql('postgres', 'CREATE EXTENSION snowflake_routing CASCADE');
like($mover->run_without_map(@to_other)->{output}, qr/The layouts differ: the source has .*fleet|41.*, and the target has .*\./, 'a move is refused if the target has another layout');
$other->stop;
$north->safe_psql('postgres', 'CREATE ROLE mover LOGIN');
like($mover->run_without_map('--shard' => 2, '--from' => $fleet->conninfo('a') . ' user=mover', '--to' => $fleet->conninfo('b'))->{output},
	qr/source: the role is not a superuser/, 'a move is refused if the role is not a superuser');
like($mover->run_without_map('--shard' => 2, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('a'))->{output},
	qr/source and target are the same database/, 'a move is refused if source and target are the same database');

# Tests two further moves: the move of a shard back to its first server, and a move without a shard map.
is($mover->run('--shard' => 1, '--to' => 'a')->{status}, 0, 'the shard is moved back to its first server');
$south->refuses("INSERT INTO shard_1_moved.users (name) VALUES ('late')",
	{ sqlstate => 40001, message => 'shard 1 moves to another server', detail => 'shard_1_moved.users no longer accepts changes', hint => 'retry' }, 'the schema that is kept on the source refuses writes');
my $alone = $mover->run_without_map('--shard' => 1, '--from' => $fleet->conninfo('a'), '--to' => $fleet->conninfo('b'));
is($alone->{status}, 0, 'a move without a map succeeds') or diag($alone->{output});
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_1.users'), '0', 'after the move without a map the target has the table');

# Moves rows whose ids have times ahead of the target's clock. New ids on the target must be greater than moved ids, or
# the move must fail.
$north->reconfigure('snowflake.max_lead' => "'1min'");
my $ahead = $north->safe_psql('postgres', "SELECT snowflake.observe(snowflake.make_id(clock_timestamp() + interval '55 s', 7, 0, 31)); INSERT INTO shard_7.users (name) VALUES ('ahead') RETURNING id") =~ s/^\n//r;
my $run = $mover->run('--shard' => 7, '--to' => 'b');
is($run->{status}, 1, 'a move is refused if an id is too far ahead of the target\'s clock');
like($run->{output}, qr/ids of shard 7 that are ahead of the target's clock, and new ids of the target would be smaller/, 'the output explains that the target would mint below such ids');
is($north->safe_psql('postgres', "INSERT INTO shard_7.users (name) VALUES ('meanwhile') RETURNING 1"), '1', 'the source accepts writes after the refused move');
$south->reconfigure('snowflake.max_lead' => "'1min'");
is($mover->run('--shard' => 7, '--to' => 'b')->{status}, 0, 'a target whose max_lead covers the id takes over');
is($south->safe_psql('postgres', "INSERT INTO shard_7.users (name) VALUES ('after') RETURNING id > $ahead"), 't', 'the target mints above the id that is ahead');

done_testing();
