# Transactions that are open when a move begins, on connections of every kind; what would have rows arrive as others; and who is
# waited for is named.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Mover;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 8 ], b => [9] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
my @tenant = (extra_params => [ '-U', 'tenant' ]);
foreach my $node ($north, $south)
{
	$node->safe_psql('postgres', 'CREATE ROLE tenant LOGIN REPLICATION; GRANT CREATE ON DATABASE postgres TO tenant');
	$node->safe_psql('postgres', <<~'SQL', @tenant);
		CREATE SCHEMA own;
		CREATE FUNCTION own.evil() RETURNS boolean LANGUAGE plpgsql AS $$
		BEGIN
		  IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
		    ALTER ROLE tenant SUPERUSER;
		  END IF;
		  RETURN true;
		END $$;
		CREATE FUNCTION own.fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM own.evil(); RETURN NEW; END $$;
		SQL
}

sub give_tenant
{
	my ($shard) = @_;
	$north->safe_psql('postgres', "GRANT USAGE, CREATE ON SCHEMA shard_$shard TO tenant");
	$north->safe_psql('postgres', "CREATE DOMAIN shard_$shard.word AS text; CREATE TABLE shard_$shard.counts (id bigint PRIMARY KEY, w shard_$shard.word)", @tenant);
	return;
}
sub arguments { my ($shard, @more) = @_; return ('--shard' => $shard, '--to' => 'b', '--not-ids' => 'counts.id', @more); }
sub run_move { return $mover->run(arguments(@_)); }
sub is_no_superuser { return is($south->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'tenant'"), 'f', $_[0]); }
sub make_beforehand
{
	my ($shard) = @_;
	my ($dump) = run_command([ 'pg_dump', '-s', '-n', "shard_$shard", '-d', $north->connstr('postgres') ]);
	$south->safe_psql('postgres', $dump =~ s/^\\(un)?restrict.*$//gmr);
	return;
}
give_tenant($_) foreach 0 .. 8;

# A schema that is there beforehand, and what is done to it and not committed: no table's lock tells of it.
make_beforehand($_) foreach 0, 1;
my $check_word = 'ALTER DOMAIN shard_%d.word ADD CHECK (own.evil()) NOT VALID';
my $open = $south->session('postgres', @tenant);
$open->query_safe($_) foreach 'BEGIN', sprintf($check_word, 0);
my $move = $mover->start(arguments(0, '--until' => 'copied'));
$mover->wait_for($move, qr/target: waiting for transactions from before the move, \d+ s: process \d+ \(tenant, since/);
$open->query_safe('COMMIT');
my $result = $mover->finish($move);
is($result->{status}, 1, 'a domain is altered by a transaction that was open');
like($result->{output}, qr/schema shard_0 was altered on the target/, '... and the move ends');
$north->safe_psql('postgres', "INSERT INTO shard_0.counts VALUES (1, 'x')");
is(run_move(0, '--abort')->{status}, 0, '... taken back');
is_no_superuser('... and nothing has run');
$south->safe_psql('postgres', 'BEGIN; ' . sprintf($check_word, 1) . "; PREPARE TRANSACTION 'word'", @tenant);
$result = run_move(1, '--check');
is($result->{status}, 1, 'a prepared transaction on the target');
like($result->{output}, qr/Prepared transaction word is open on the target: role tenant has to commit it or roll it back/, '... is named');
$south->safe_psql('postgres', "ROLLBACK PREPARED 'word'");

# A role that may replicate runs SQL on a walsender, in a snapshot of before.
my ($in, $out) = ('', '');
my $walsender = IPC::Run::start([ 'psql', '-XAtq', '-d', $south->connstr('postgres') . ' user=tenant replication=database' ], '<', \$in, '>&', \$out, IPC::Run::timeout(180));
sub send_walsender { my ($text) = @_; $in .= "$text\n\\echo done\n"; $out = ''; $walsender->pump until $out =~ /done/; return; }
send_walsender("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 1;");
$move = $mover->start(arguments(2, '--until' => 'copied'));
$mover->wait_for($move, qr/target: waiting for transactions from before the move, \d+ s: process \d+ \(tenant, since/);
send_walsender("CREATE TRIGGER evil AFTER INSERT ON shard_2.counts FOR EACH ROW EXECUTE FUNCTION own.fires();");
like($out, qr/a shard has begun to move since this transaction took its snapshot.*CREATE TRIGGER might change its schema.*its snapshot is of before transaction \d+.*in a new transaction/s,
	'DDL in a snapshot of before the move is refused');
send_walsender('ROLLBACK;');
$result = $mover->finish($move);
is($result->{status}, 0, '... and the move goes on') or diag("$result->{output} $out");
is_no_superuser('... and it has not fired');
$in .= "\\q\n";
$walsender->finish;
is(run_move(2, '--abort')->{status}, 0, '... taken back');

# What would have rows arrive as others, or not at all.
$north->safe_psql('postgres', "CREATE DOMAIN shard_3.sum AS money; ALTER TABLE shard_3.counts ADD sums shard_3.sum[]; ALTER DATABASE postgres SET lc_monetary = 'C'");
$south->safe_psql('postgres', "ALTER DATABASE postgres SET client_encoding = 'LATIN1'; ALTER DATABASE postgres SET lc_monetary = 'C.UTF-8'; ALTER DATABASE postgres SET array_nulls = off; ALTER DATABASE postgres SET default_transaction_read_only = on");
{
	local $ENV{PGOPTIONS} = '-c array_nulls=on';    # the workers have not what a client says
	$result = run_move(3, '--check');
}
is($result->{status}, 1, 'settings of the target\'s database');
like($result->{output}, qr/$_/, "... $_ is named")
  foreach 'Columns of type money \(counts.sums\) would arrive as other amounts: the source has lc_monetary = C, the target C.UTF-8', 'The target has array_nulls = off', 'The target has default_transaction_read_only = on',
  'The target has client_encoding = LATIN1 for its database or role';
$south->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER DATABASE postgres SET lc_monetary = \'C\'; ALTER DATABASE postgres RESET array_nulls; ALTER DATABASE postgres RESET default_transaction_read_only; ALTER DATABASE postgres RESET client_encoding');
is(run_move(3, '--check')->{status}, 0, '... and without them it can be moved');
$south->append_conf('postgresql.conf', 'array_nulls = off');
$south->reload;
$south->poll_query_until('postgres', "SELECT setting = 'off' FROM pg_settings WHERE name = 'array_nulls'") or die;
$south->append_conf('postgresql.conf', 'array_nulls = on');
like(run_move(3, '--check')->{output}, qr/The target has array_nulls = off/, '... nor is what the server has not read yet what the workers have');
$south->reload;
$south->poll_query_until('postgres', "SELECT setting = 'on' FROM pg_settings WHERE name = 'array_nulls'") or die;

# ... of the operator's environment, and of a database with another locale.
$north->safe_psql('postgres', "ALTER TABLE shard_3.counts DROP sums, ADD word text DEFAULT U&'\\00e9', ADD nulls text[] DEFAULT '{x,NULL}', ADD upper text GENERATED ALWAYS AS (upper(w)) STORED");
{
	local @ENV{qw(PGCLIENTENCODING PGOPTIONS)} = ('LATIN1', '-c array_nulls=off');
	is(run_move(3, '--until' => 'copied')->{status}, 0, 'copied by a client that has settings of its own');
}
my $octets = "SELECT octet_length(convert_to(pg_get_expr(adbin, adrelid), 'UTF8')) FROM pg_attrdef WHERE adrelid = 'shard_3.counts'::regclass AND pg_get_expr(adbin, adrelid) !~ 'upper'";
is($south->safe_psql('postgres', $octets), $north->safe_psql('postgres', $octets), '... a default is as it was');
is($south->safe_psql('postgres', "INSERT INTO shard_3.counts (id) VALUES (0) RETURNING nulls[2] IS NULL"), 't', '... that of an array as well');
$south->safe_psql('postgres', 'DELETE FROM shard_3.counts WHERE id = 0');
is(run_move(3, '--abort')->{status}, 0, '... taken back');
$south->safe_psql('postgres', "ALTER DATABASE postgres SET extra_float_digits = 0; ALTER DATABASE postgres SET bytea_output = 'escape'; ALTER DATABASE postgres SET quote_all_identifiers = on; "
	. "ALTER DATABASE postgres SET timezone = 'America/New_York'; ALTER DATABASE postgres SET timezone_abbreviations = 'Australia'; ALTER DATABASE postgres SET datestyle = 'SQL, DMY'; "
	. "ALTER DATABASE postgres SET intervalstyle = 'iso_8601'; ALTER DATABASE postgres SET xmlbinary = 'hex'; ALTER TEXT SEARCH CONFIGURATION pg_catalog.english ALTER MAPPING FOR asciiword WITH simple");
$result = run_move(3, '--check');
like($result->{output}, qr/Generated columns \(counts.upper\) might get other values: $_/, "... $_ is named")
  foreach 'the source has bytea_output = hex, the target escape', 'the source has extra_float_digits = 1, the target 0', 'the source has quote_all_identifiers = off, the target on',
  'the source has TimeZone = \S+, the target America/New_York', 'the source has timezone_abbreviations = Default, the target Australia', 'the source has DateStyle = .*, the target SQL, DMY',
  'the source has IntervalStyle = postgres, the target iso_8601', 'the source has xmlbinary = base64, the target hex', 'text search configuration english is not the same';
$south->safe_psql('postgres', "ALTER DATABASE postgres SET extra_float_digits = 3; ALTER DATABASE postgres RESET bytea_output; ALTER DATABASE postgres SET quote_all_identifiers = no; "
	. "ALTER DATABASE postgres SET timezone = 'Zulu'; ALTER DATABASE postgres RESET timezone_abbreviations; ALTER DATABASE postgres RESET datestyle; ALTER DATABASE postgres RESET intervalstyle; "
	. "ALTER DATABASE postgres RESET xmlbinary; ALTER TEXT SEARCH CONFIGURATION pg_catalog.english ALTER MAPPING FOR asciiword WITH english_stem");
$north->safe_psql('postgres', "ALTER DATABASE postgres SET timezone = 'UTC'");
$result = run_move(3, '--check');
is($result->{status}, 0, '... what means the same is not') or diag($result->{output});
# The file has names as somebody wrote them.
$north->append_conf('postgresql.conf', "Bytea_Output = 'escape'");
$north->reload;
$north->poll_query_until('postgres', "SELECT setting = 'escape' FROM pg_settings WHERE name = 'bytea_output'") or die;
like(run_move(3, '--check')->{output}, qr/the source has bytea_output = escape, the target hex/, 'a setting in capitals is seen');
$north->append_conf('postgresql.conf', "bytea_output = 'hex'");
$north->reload;
my $here = $north->safe_psql('postgres', "SELECT datctype FROM pg_database WHERE datname = 'postgres'");
my $other = $here eq 'C' ? 'C.UTF-8' : 'C';
my %known = (C => 'C', $here => $here =~ s/[.]UTF-?8$/.utf8/ir, 'C.UTF-8' => 'C.utf8');
$south->safe_psql('postgres', "CREATE DATABASE elsewhere TEMPLATE template0 LC_CTYPE '$other'");
$south->safe_psql('elsewhere', 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_routing CASCADE');
$result = $mover->run_without_map('--shard' => 3, '--from' => $north->connstr('postgres'), '--to' => $south->connstr('elsewhere'), '--not-ids' => 'counts.id', '--check');
like($result->{output}, qr/Generated columns \(counts.upper\) might get other values: the source's database has LC_COLLATE and LC_CTYPE \S+ and $known{$here} and encoding UTF8, the target's \S+ and $known{$other} and/, 'another locale and generated columns');

# A move back before the first has ended: as after a crash, just when the target had taken over.
is(run_move(8)->{status}, 0, 'moved');
$south->safe_psql('postgres', "INSERT INTO snowflake_fleet.moving (shard, schema, side, state, other, other_database) VALUES (8, 'shard_8', 'target', 'here', 'a', '0/0')");
$result = $mover->run('--shard' => 8, '--to' => 'a', '--not-ids' => 'counts.id');
is($result->{status}, 1, 'the way back, before the move has ended');
like($result->{output}, qr/the move of shard 8 from a to b has not ended\n  Run that one again, with --to b/, '... is refused');
is(run_move(4, '--until' => 'copied')->{status}, 0, 'copied');

# While a shard moves there: DDL after a transaction that the session has prepared.
my $session = $south->session('postgres', @tenant);
$session->query($_) foreach 'SET statement_timeout = \'60s\'', 'BEGIN', 'CREATE TABLE own.one ()', "PREPARE TRANSACTION 'one'", 'CREATE TABLE own.two ()', "COMMIT PREPARED 'one'";
is($south->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relnamespace = 'own'::regnamespace"), '2', 'DDL goes on after PREPARE TRANSACTION');

# Locks of all kinds are named, on both sides.
my $holder = $south->session('postgres', @tenant);
$holder->query_safe($_) foreach 'BEGIN', 'LOCK TABLE shard_4.counts IN ACCESS EXCLUSIVE MODE';
$move = $mover->start(arguments(4));
$mover->wait_for($move, qr/tables of the target are locked, attempt 1: waiting for process \d+ \(tenant, since/);
$holder->query_safe('ROLLBACK');
my $indexer = $north->session('postgres', @tenant);
$indexer->query_safe($_) foreach 'BEGIN', 'LOCK TABLE shard_4.counts IN SHARE MODE';
$mover->wait_for($move, qr/attempt 1; waiting for process \d+ \(tenant, since/);
$indexer->query_safe('ROLLBACK');
$result = $mover->finish($move);
is($result->{status}, 0, 'the move ends when they are gone') or diag($result->{output});
$indexer->query_safe($_) foreach 'BEGIN', 'LOCK TABLE shard_5.counts IN ACCESS EXCLUSIVE MODE';
$result = run_move(5, '--check');
is($result->{status}, 1, 'a locked table of the source');
like($result->{output}, qr/A table of schema shard_5 is locked, or vacuumed.*Locks are held by process \d+ \(tenant, since/, '... and who has it');
$indexer->query_safe('ROLLBACK');

# Names that are others' while locks are waited for, and then again the tables' own.
$north->safe_psql('postgres', 'CREATE TABLE shard_7.t1 (id int PRIMARY KEY); CREATE TABLE shard_7.t2 (id int PRIMARY KEY); CREATE SCHEMA decoy; '
	  . join '; ', map { "CREATE TABLE decoy.$_ (id int PRIMARY KEY)" } qw(counts photos t1 t2 users));
my ($swaps, $keeps) = map { $north->session('postgres') } 1, 2;
sub waits_for { return $north->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = '$_[0]'::regclass)") || die; }
$keeps->query_safe($_) foreach 'BEGIN', 'LOCK TABLE decoy.t2 IN SHARE UPDATE EXCLUSIVE MODE';
$swaps->query_safe($_) foreach 'BEGIN', 'LOCK TABLE shard_7.counts IN SHARE UPDATE EXCLUSIVE MODE', 'ALTER SCHEMA shard_7 RENAME TO real', 'ALTER SCHEMA decoy RENAME TO shard_7';
$move = $mover->start(arguments(7, '--check'));
waits_for('shard_7.counts');
$swaps->query_safe('COMMIT');
waits_for('shard_7.t2');
$swaps->query_safe($_) foreach 'BEGIN', 'ALTER SCHEMA shard_7 RENAME TO decoy', 'ALTER SCHEMA real RENAME TO shard_7', 'COMMIT';
$keeps->query_safe('ROLLBACK');
$result = $mover->finish($move);
is($result->{status}, 1, 'locks on tables that had the names meanwhile');
like($result->{output}, qr/Schema shard_7 was altered during the check: run this again/, '... are not taken for the tables\'');

# A fence whose slot is gone: writers are refused, and somebody has to know.
is(run_move(6, '--until' => 'copied')->{status}, 0, 'copied');
my $superuser = $north->session('postgres');
$superuser->query_safe($_) foreach "SELECT snowflake_fleet.hold_move(6, 'test')", "SELECT snowflake_fleet.fence('shard_6', 60000)";
$superuser->quit;
$south->safe_psql('postgres', 'ALTER SUBSCRIPTION snowflake_move_6 DISABLE');
$move = $mover->start(arguments(6));
$mover->wait_for($move, qr/the target is not level: .* behind; no worker runs for it: the subscription is disabled/);
$north->poll_query_until('postgres', "SELECT NOT active FROM pg_replication_slots WHERE slot_name ~ '_6\$'") or die;
$north->safe_psql('postgres', "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name ~ '_6\$'");
$result = $mover->finish($move);
is($result->{status}, 1, 'a fence without a slot');
like($result->{output}, qr/the slot is gone, as after a failover of the source, and the target may lack the last changes\n  Run with --abort, then again/, '... is said to be one');
is(run_move(6, '--abort')->{status}, 0, '... taken back');
is($north->safe_psql('postgres', "INSERT INTO shard_6.counts VALUES (1, 'x') RETURNING id"), '1', '... and writers go on');

done_testing();
