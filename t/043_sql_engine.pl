# Tests the SQL version of snowflake (SQL engine): the script that generator_sql() prints creates functions that mint
# ids without the library. A role that owns the database and has no other rights runs this SQL script. The SQL version
# of snowflake must mint and decode ids like the library, even after crashes and clock steps.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $c = Snowflake::Node->create_running('c');
$c->safe_psql('postgres', 'CREATE EXTENSION snowflake_migrate');
my $plain = Snowflake::Node->create('plain', allows_streaming => 1, has_archiving => 0,
	conf => "shared_preload_libraries = ''\nmax_connections = 20\nmax_prepared_transactions = 10\nfsync = on\nrestart_after_crash = on\n");
$plain->start;
$plain->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN');

# Makes a database that the role "owner" owns, and runs the script that generator_sql($arguments) prints.
sub make_database
{
	my ($name, $arguments) = @_;
	my $script = $c->safe_psql('postgres', "SELECT snowflake.generator_sql($arguments)");
	unlike($script, qr/\{\{/, "$name: the script contains no placeholder");
	$plain->safe_psql('postgres', "CREATE DATABASE $name OWNER owner TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'");
	# The script of generator_sql() must revoke privileges that ALTER DEFAULT PRIVILEGES grants.
	$plain->safe_psql($name, "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO app", extra_params => [ '-U', 'owner' ]) foreach qw(SEQUENCES TABLES FUNCTIONS SCHEMAS);
	$plain->safe_psql($name, 'ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC', extra_params => [ '-U', 'owner' ]);
	my ($status, undef, $err) = $plain->psql($name, $script, extra_params => [ '-U', 'owner', '-v', 'ON_ERROR_STOP=1' ]);
	is($status, 0, "$name: the owner of the database installs the script") or diag($err);
	return;
}

sub as_app { my ($sql, $database) = @_; return $plain->safe_psql($database, $sql, extra_params => [ '-U', 'app' ]); }

my %layouts = (
	fleet => "1, 'fleet'", wide => "31, 'wide'",
	js53 => "0, 'js53', epoch => '2012-02-29 05:30:00.250+05:30'",
	seconds => "3, '28/4+18/13', '1s', '1735689600000'");
foreach my $name (sort keys %layouts)
{
	make_database($name, $layouts{$name});
	my ($layout, $tick, $epoch) = $layouts{$name} =~ /'([^']+)'(?:, '(\d+m?s)')?(?:.*'(\d{4}.*|\d{13})')?$/;
	$c->start_with("snowflake.layout = '$layout'" . ($tick ? "\nsnowflake.tick = $tick" : '') . ($epoch ? "\nsnowflake.epoch = '$epoch'" : ''));
	$c->create_database($name);
	my @ids = split /\n/, as_app('SELECT snowflake.next_id(g % 7) FROM generate_series(1, 200) g UNION ALL SELECT unnest(snowflake.next_ids(3, 3000))', $name);
	my %seen = map { $_ => 1 } @ids;
	is(keys %seen, 3200, "$name: 3200 ids are unique");
	is($plain->safe_psql($name, 'SELECT count(*) FROM snowflake.health WHERE minting AND reason IS NULL'), '1', "$name: health shows that it mints");
	my $ids = join ',', 0, 1, @ids[ 0 .. 20, 3100 .. 3199 ];
	my $read = <<~"SQL";
		SELECT id, snowflake.decode(id), snowflake.to_base62(id), snowflake.to_uuid(id),
		       snowflake.from_uuid(snowflake.to_uuid(id)) = id, snowflake.shard_for(id), snowflake.shard_for(id, 1), snowflake.shard_for(id::text, (SELECT greatest(1, shards * 2 / 3) FROM snowflake.layout)), snowflake.min_id(snowflake.time_of(id)),
		       snowflake.make_id(snowflake.time_of(id), 1, 0), snowflake.id_range(tstzrange(snowflake.time_of(id), snowflake.time_of(id), '[]'))
		  FROM unnest('{$ids}'::bigint[]) AS id ORDER BY id
		SQL
	is($plain->safe_psql($name, $read), $c->safe_psql($name, $read), "$name: both engines decode the ids alike");
	is($plain->safe_psql($name, 'SELECT bits, tick_ms, epoch, shards, ids_per_second, ends_at FROM snowflake.layout'),
		$c->safe_psql($name, 'SELECT bits, tick_ms, epoch, shards, ids_per_second, ends_at FROM snowflake.layout'), "$name: the view layout is the same in both engines");
	is($plain->safe_psql($name, 'SELECT seal FROM snowflake.dumped_seal'), $c->safe_psql($name, 'SELECT seal FROM snowflake.dumped_seal'), "$name: the seal is the same in both engines");
	my ($region) = $layouts{$name} =~ /^(\d+)/;
	is($plain->safe_psql($name, "SELECT count(*) FROM unnest('{$ids}'::bigint[]) AS id WHERE id > 1 AND snowflake.region_of(id) <> $region"), '0', "$name: the ids have the region of the script");
}
$c->start_with('');

# Runs the library's regression tests with functions that generator_sql() has created.
make_database('regress', "3, 'fleet', max_lead => '100 ms'");
my $suite = "$FindBin::RealBin/..";
foreach my $file (qw(burst decode observe plans text_forms uuid))
{
	$plain->safe_psql('postgres', "DROP DATABASE IF EXISTS $file");
	$plain->safe_psql('postgres', "CREATE DATABASE $file TEMPLATE regress");
	local %ENV = (%ENV, PGTZ => 'PST8PDT', PGDATESTYLE => 'Postgres, MDY', PGOPTIONS => '-c intervalstyle=postgres_verbose');
	my $out = '';
	IPC::Run::run([ 'psql', '-Xaq', '-v', 'SHOW_CONTEXT=never', '-d', $plain->connstr($file) ],
		'<', "$suite/sql/$file.sql", '>', \$out, '2>&1');
	my $expected = slurp_file("$suite/expected/$file.out");
	ok($out eq $expected, "sql/$file.sql has the expected output with the SQL engine") or diag(join "\n", grep { index($expected, $_) < 0 } split /\n/, $out);
}

# The program scripts/engine-sql must print the same script as generator_sql(), but needs no server.
my $program = "$suite/scripts/engine-sql";
foreach my $of ([ 'fleet', 0 ], [ 'wide', 31 ], [ 'instagram', 0 ], [ 'twitter', 5 ], [ 'js53', 0 ])
{
	my ($layout, $region) = @$of;
	my ($out) = run_command([ $program, '--layout', $layout, '--region', $region ]);
	ok($out eq $c->safe_psql('postgres', "SELECT trim(E'\\n' FROM snowflake.generator_sql($region, '$layout'))"), "scripts/engine-sql prints the same as generator_sql() for $layout");
}
my ($package) = run_command([ $program, '--pg-tle', '--region', 7 ]);
is($package, $c->safe_psql('postgres', "SELECT trim(E'\\n' FROM snowflake.generator_sql(7, 'fleet', pg_tle => true))"), 'scripts/engine-sql --pg-tle prints the same as generator_sql() with pg_tle');

$c->refuses("SELECT snowflake.generator_sql($_->[0])", $_->[1], "generator_sql() refuses the arguments $_->[0]") foreach
  [ 'NULL', { sqlstate => '22004', message => 'does not accept null arguments' } ], [ '32', { sqlstate => '22023', message => 'region 32 is out of range', hint => 'Pass a region' } ],
  [ "0, 'nonsense'", { sqlstate => '22023', message => 'invalid id layout' } ], [ "0, '53/1+1/8'", { sqlstate => '0A000', message => 'cannot mint ids of layout', hint => 'fewer time bits' } ],
  [ "0, max_lead => '1 h'", { sqlstate => '22023', message => 'out of range', detail => '01:00:00' } ];

foreach my $case ([ '-1', '--region -1' ], [ "1, 'instagram'", '--layout instagram --region 1' ], [ "0, '41/5+8/10', '7'", '--layout 41/5+8/10 --tick 7' ],
	[ "0, 'js53', '1'", '--layout js53 --tick 1' ], [ "0, 'fleet', '0', '2199023255552'", '--epoch 2199023255552' ], [ "0, 'fleet', '0', 'soon'", '--epoch soon' ],
	[ "0, max_lead => '60.1 s'", '--max-lead 60100' ], [ "0, max_lead => '-1 s'", '--max-lead -1000' ], [ "0, reserve => '99 ms'", '--reserve 99' ],
	[ "0, max_forward_jump => '999 ms'", '--max-forward-jump 999' ], map { [ "0, '$_'", "--layout $_" ] } qw(19/5+8/10 54/1/1 41/20+5/0 30/1+1/23 53/12/0 53/1+1/8 041/5+8/10 41/5+8 fleets))
{
	my ($arguments, $options) = @$case;
	isnt($c->psql('postgres', "SELECT snowflake.generator_sql($arguments)"), 0, "generator_sql() refuses the arguments $arguments");
	my ($out, $err) = run_command([ $program, split / /, $options ]);
	is($out . ($err =~ /^error: .* (is|would|cannot|has) .*$/ ? '' : $err), '', "scripts/engine-sql refuses the options $options");
}

# Tests errors of the SQL version of snowflake that the regression tests do not check.
sub refuses { my ($sql, $expected, $name, $database) = @_; $plain->refuses($sql, $expected, $name, $database // 'fleet'); return; }
refuses('SELECT snowflake.next_id(256)', { sqlstate => '22023', message => 'shard 256 is out of range', detail => '0 to 255', hint => 'Pass a shard' }, 'next_id() refuses a shard out of range');
refuses('SELECT snowflake.next_id(-1)', { sqlstate => '22023', message => 'shard -1' }, 'next_id() refuses a negative shard');
refuses('SELECT snowflake.next_id(NULL)', { sqlstate => '22004', message => 'shard is null' }, 'next_id() refuses a null shard');
refuses('SELECT snowflake.next_id()', { sqlstate => '55000', message => 'default_shard" is not set' }, 'next_id() fails without a default shard');
refuses('SELECT snowflake.next_ids(5, 0)', { sqlstate => '22023', message => 'count 0' }, 'next_ids() refuses a count of 0');
refuses('SELECT snowflake.next_ids(5, 1000001)', { sqlstate => '22023', message => 'count 1000001' }, 'next_ids() refuses a count above the limit');
refuses("SELECT snowflake.next_id_in('[250,257)')", { sqlstate => '22023', message => 'shards \[250,257\) are out of range' }, 'next_id_in() refuses a range of shards beyond the layout');
refuses('SELECT snowflake.next_id_near(-5)', { sqlstate => '22003', message => '-5 is not an id' }, 'next_id_near() refuses a number that is not an id');
refuses("BEGIN READ ONLY; SELECT snowflake.next_id(5)", { sqlstate => '25006', message => 'in a read-only transaction' }, 'next_id() fails in a read-only transaction');
refuses("BEGIN READ ONLY; SELECT snowflake.next_ids(5, 2000)", { sqlstate => '25006', message => 'cannot execute next_ids\(\)', hint => 'read-write' }, 'next_ids() fails in a read-only transaction');
refuses("SET snowflake.max_wait = 'soon'; SELECT snowflake.next_ids(5, 1000000)", { sqlstate => '22023', message => 'invalid value for parameter "snowflake.max_wait"' }, 'next_ids() refuses an invalid max_wait', 'js53');
refuses("SET snowflake.max_wait = 0; SELECT snowflake.next_ids(5, 1000000)", { sqlstate => '55000', message => 'no id of shard 5 was available in time', hint => 'max_wait' }, 'next_ids() fails if the shard has no id within max_wait', 'js53');
refuses("SET snowflake.max_wait = 0; SELECT count(snowflake.next_id(5)) FROM generate_series(1, 1000000)", { sqlstate => '55000', message => 'no id of shard 5 was available in time', hint => 'max_wait' }, 'next_id() fails if the shard has no id within max_wait', 'js53');
is(as_app("SET snowflake.default_shard = 7; SELECT snowflake.shard_of(snowflake.next_id())", 'fleet'), '7', 'next_id() mints in the default shard');
is(as_app('SELECT snowflake.shard_of(snowflake.next_id_near(snowflake.next_id(9)))', 'fleet'), '9', 'next_id_near() mints in the shard of the id');
is(as_app("SELECT snowflake.shard_of(snowflake.next_id_in('[3,5)')) IN (3, 4)", 'fleet'), 't', 'next_id_in() mints in a shard of the range');
is(as_app('SELECT snowflake.next_id(5, id) > id AND (snowflake.next_ids(5, 2, id))[1] > id FROM snowflake.make_id(clock_timestamp() + interval \'20 ms\', 255, 1023, 31) AS id', 'fleet'), 't', 'after an id');

# Runs a second script of generator_sql() in the same database. A second script of generator_sql() may change the region
# number, but not the layout or the owner of the functions. The program psql reads the script from a file, because psql
# may stop at an error before it has read its standard input.
sub run_again
{
	my ($user, $arguments) = @_;
	my $file = $plain->basedir . '/again.sql';
	unlink $file;
	PostgreSQL::Test::Utils::append_to_file($file, $c->safe_psql('postgres', "SELECT snowflake.generator_sql($arguments)"));
	return ($plain->psql('fleet', "\\i $file", extra_params => [ '-U', $user, '-v', 'ON_ERROR_STOP=1' ]))[2];
}
my $before = as_app('SELECT snowflake.next_id(5)', 'fleet');
$plain->safe_psql('fleet', 'GRANT EXECUTE ON FUNCTION snowflake.set_mark(timestamptz) TO app');
is(run_again('owner', "2, 'fleet'"), '', 'the script can be run again with another region');
is(as_app("SELECT id > $before, snowflake.region_of(id) FROM snowflake.next_id(5) AS id", 'fleet'), 't|2', 'after the script was run again, ids are greater and have the new region');
like(run_again('owner', "1, 'wide'"), qr/this script has another layout than the ids.*HINT:  Pass the layout of the ids/s, 'the script cannot be run again with another layout');
like(run_again($_, "1, 'fleet'"), qr/belongs to another role.*role "owner"; the current role is "$_".*HINT/s, "the script cannot be run again by $_") foreach 'app', $plain->safe_psql('postgres', 'SELECT current_user');
is(run_again('owner', "1, 'fleet'"), '', 'the script can be run again with the first region');

# Tests the setting snowflake.max_wait. Tests that lastval() fails after next_id() has returned an id.
is(as_app("SET escape_string_warning = off; SET standard_conforming_strings = off; SET snowflake.max_wait = ' 500'; SELECT snowflake_sql.max_wait(); SET snowflake.max_wait = '1.5min'; SELECT snowflake_sql.max_wait()", 'fleet'),
	"500\n90000", 'snowflake_sql.max_wait() reads the setting with and without a unit');
refuses("SET snowflake.max_wait = '$_'; SELECT snowflake_sql.max_wait()", { sqlstate => '22023', message => 'invalid value for parameter', detail => '0 to 2147483647 ms' }, "snowflake_sql.max_wait() refuses the setting '$_'")
	foreach '-1', '2147483648', '1.5.1', '300000000000 years', '5 parsecs';
refuses('SET ROLE app; SELECT snowflake.next_id(5); SELECT lastval()', { sqlstate => '42501', message => 'permission denied for sequence counter_0' }, 'lastval() fails after an id, as doc/managed.md describes');

# From PostgreSQL 18 on, the planner sees the arguments of an SQL function and evaluates constant parts of its body. The
# planner must not evaluate the branch of an SQL function that raises an error for invalid arguments.
my @calls = ("from_base62('0000000000F')", "last_id_before('2026-01-01')", "max_id('2026-01-01')", "min_id('2026-01-01')", 'to_base62(5)');
is($plain->safe_psql('fleet', "SET plan_cache_mode = force_custom_plan;\n" . <<~'SQL' . 'SELECT ' . join(', ', map { "snowflake.$_ = pg_temp.$_" } @calls)), scalar(@calls) . "\n" . join('|', map { 't' } @calls), 'the planner does not evaluate the branch of a function that raises an error');
	DO $do$
	DECLARE
	  f record;
	BEGIN
	  FOR f IN SELECT proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, pg_get_function_sqlbody(oid) AS body
	             FROM pg_proc WHERE pronamespace = 'snowflake'::regnamespace AND pg_get_function_sqlbody(oid) ~ '^RETURN .* FROM ' LOOP
	    EXECUTE format('CREATE FUNCTION pg_temp.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.proname, f.arguments, f.result, 'BEGIN ' || f.body || '; END');
	  END LOOP;
	END $do$;
	SELECT count(*) FROM pg_proc WHERE pronamespace = pg_my_temp_schema();
	SQL

# A caller of a SECURITY DEFINER function must not be able to run own code with the owner's rights.
is(as_app(<<~'SQL', 'fleet'), '5', 'next_id() runs no operator of the caller');
	CREATE TEMP TABLE run (who name);
	GRANT ALL ON run TO PUBLIC;
	SELECT set_config('search_path', 'pg_temp, pg_catalog', false) IS NULL \g /dev/null
	CREATE FUNCTION pg_temp.trap(bigint, integer) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN INSERT INTO run VALUES (current_user); RETURN 0; END';
	CREATE OPERATOR pg_temp.>> (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = pg_temp.trap);
	CREATE OPERATOR pg_temp.<< (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = pg_temp.trap);
	CREATE OPERATOR pg_temp.& (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = pg_temp.trap);
	SELECT snowflake.shard_of(snowflake.next_id(5)) FROM (SELECT snowflake.next_ids(5, 2000), pg_sleep(0.002)) AS s WHERE NOT EXISTS (SELECT FROM run);
	SQL
foreach my $call ("setval('snowflake.high_water', 1)", "nextval('snowflake_sql.counter_0')", "setval('snowflake_sql.published', 1)", 'snowflake.observe(0)',
	"snowflake.set_mark(now())", 'snowflake.accept_clock()', "snowflake_sql.open_tick(5, 0, '', 0)", 'snowflake_sql.write_mark(1)')
{
	$plain->refuses("SET ROLE app; SELECT $call", { sqlstate => '42501', message => 'permission denied' }, "an ordinary role may not call $call", 'fleet');
}
$plain->refuses('BEGIN; SET ROLE app; LOCK TABLE snowflake_sql.gate', { sqlstate => '42501', message => 'permission denied' }, 'an ordinary role may not lock snowflake_sql.gate', 'fleet');
is($plain->safe_psql('fleet', "SELECT count(*) FROM pg_proc AS p WHERE pronamespace = 'snowflake'::regnamespace AND prosecdef AND proconfig IS NULL AND prosrc ~ '(?<!OPERATOR\\(pg_catalog\\.)[<>=&|+*/]=?(?![^\\n]*--)' AND prosrc !~ ':=|=>'"), '0', 'SECURITY DEFINER functions without a search_path name the schema of every operator');

$plain->refuses("SET statement_timeout = '1min'; BEGIN; ALTER SEQUENCE snowflake.high_water RESTART; ALTER SEQUENCE snowflake_sql.published RESTART; SELECT snowflake.next_id(5)",
	{ sqlstate => '55000', message => 'high-water mark \(sequence snowflake\.high_water\) of this database is lost' }, 'next_id() fails if both values of the mark were reset', 'fleet');

# Checks that ids stay unique if SIGKILL ends the server several times, and if the clock steps between the server runs.
my $ledger = Snowflake::Ledger->new(shard_bits => 8);
sub mint { $plain->mint($ledger, undef, 'fleet'); $plain->mint($ledger, 'SELECT snowflake.next_id(7) FROM generate_series(1, 5000)', 'fleet'); return; }
mint();
foreach my $step (0, -0.5, -30, -600, 2)
{
	$ledger->of('fleet')->new_server_run;
	$plain->kill_all;
	$plain->clock->step($step);
	$plain->start;
	if ($step < -2)
	{
		refuses('SELECT snowflake.next_id(7)', { sqlstate => '55000', message => 'clock is behind the high-water mark', detail => 'With "snowflake.max_lead" 1000 ms', hint => 'time synchronization' }, "next_id() fails after SIGKILL and a step of $step s");
		is($plain->safe_psql('fleet', 'SELECT minting, reason FROM snowflake.health'), 'f|high-water mark (sequence snowflake.high_water) ahead of the clock', "health shows a mark ahead of the clock after a step of $step s");
		$plain->clock->step(-$step);
	}
	mint();
}
my $victim = $plain->session('fleet');
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
mint();
$ledger->of('fleet')->new_server_run;
$plain->clock->step(-0.5);
$plain->kill_backend($pid);
is($plain->safe_psql('fleet', "SELECT pg_sequence_last_value('snowflake_sql.counter_0') IS NULL"), 't', 'a crash restart resets the counters');
mint();
$plain->clock->step(0.5);
# After a clean restart the sequences that count ids have the same values as before.
$plain->restart;
mint();
$plain->clock->step(-0.8);
mint();
$plain->clock->step(0.8);
$plain->clock->step(86400 * 400);
refuses('SELECT snowflake.next_id(7)', { sqlstate => '55000', message => 'the clock jumped ahead by 4\d\d\.\d days', hint => 'accept_clock' }, 'next_id() fails if the clock jumped ahead by more than a year');
is($plain->safe_psql('fleet', 'SELECT minting, reason FROM snowflake.health'), 'f|clock jumped ahead', 'health shows that the clock jumped ahead');
$plain->clock->step(-86400 * 400);
mint();
$plain->clock->step(86400 * 366 * 60);
refuses('SELECT snowflake.next_id(7)', { sqlstate => '2200H', message => 'the id layout has no time values left', hint => 'Move the database' }, 'next_id() fails past the end of the layout');
$plain->clock->step(-86400 * 366 * 120);
refuses('SELECT snowflake.next_id(7)', { sqlstate => '55000', message => 'the clock is before the epoch of the ids' }, 'next_id() fails before the epoch');
$plain->clock->step(86400 * 366 * 60);
mint();
# Raises and lowers the high-water mark by setval().
my $mark = $plain->mark('fleet');
$plain->safe_psql('fleet', "SELECT setval('snowflake.high_water', $mark + 700)");
cmp_ok(as_app('SELECT (extract(epoch FROM snowflake.time_of(max(snowflake.next_id(7)))) * 1000)::bigint FROM generate_series(1, 3000)', 'fleet'), '>=', $mark + 700, 'ids are above a mark that was raised');
$plain->safe_psql('fleet', "SELECT setval('snowflake.high_water', $mark - 86400000)");
mint();
cmp_ok($plain->mark('fleet'), '>=', $mark + 700, 'a mark that was lowered is raised again');

# Sets the high-water mark to a time that is too late to be stored in an id. Corrects the high-water mark by set_mark().
$mark = $plain->mark('fleet');
$plain->safe_psql('fleet', "SELECT setval('snowflake.high_water', 9223372036854775807)");
refuses('SELECT snowflake.next_ids(7, 2000)', { sqlstate => '2200H', message => 'the id layout has no time values left' }, 'next_ids() fails if the mark is past the end of the layout');
is($plain->safe_psql('fleet', 'SELECT minting, reason FROM snowflake.health'), 'f|id layout has no time values left', 'health shows a mark past the end of the layout');
$plain->safe_psql('fleet', "SELECT snowflake.set_mark(to_timestamp($mark / 1000.0))", extra_params => [ '-U', 'owner' ]);
mint();

# Eight sessions mint ids at the same time while the clock steps. Some statements time out, and some transactions are
# prepared or rolled back to a savepoint.
my $script = $plain->basedir . '/crowd.sql';
append_to_file($script, <<~'SQL');
	SELECT id FROM (SELECT snowflake.next_id(7) AS id FROM generate_series(1, 30)) AS s;
	BEGIN;
	SELECT snowflake.next_id(7);
	SAVEPOINT s;
	SELECT unnest(snowflake.next_ids(7, 3));
	ROLLBACK TO s;
	SELECT snowflake.next_id(7);
	COMMIT;
	SELECT unnest(snowflake.next_ids(7, 1500));
	SQL
my (@crowd, @timed);
foreach my $n (1 .. 8)
{
	my $loop = join "\n", map { ($n > 5 ? 'SET statement_timeout = ' . (1 + $_ % 15) . ';' : '') . slurp_file($script)
		. ($n == 1 ? "BEGIN; SELECT snowflake.next_id(7); PREPARE TRANSACTION 'p$_';\n" : '') } 1 .. 25;
	append_to_file($plain->basedir . "/crowd_$n.sql", $loop);
	my $out = $plain->basedir . "/crowd_$n.out";
	push @crowd, IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=0', '-f', $plain->basedir . "/crowd_$n.sql", '-d', $plain->connstr('fleet') . ' user=' . ($n > 5 ? 'app' : 'postgres') ],
		'<', \undef, '>', $out, '2>', "$out.err");
}
foreach my $step (map { (-0.05, 0.05, -0.4, 0.4, 0.01, -0.01) } 1 .. 4) { $plain->clock->step($step); select undef, undef, undef, 0.05; }
is(run_again('owner', "1, 'fleet'"), '', 'the script can be run again while eight sessions mint');
$_->finish foreach @crowd;
my (%given, $twice, $down) = ();
($twice, $down) = (0, 0);
foreach my $n (1 .. 8)
{
	my $last = 0;
	foreach my $id (grep { /^\d+$/ } split /\n/, slurp_file($plain->basedir . "/crowd_$n.out"))
	{
		$twice++ if $given{$id}++;
		$down++ if $id <= $last;
		$last = $id;
	}
	unlike(slurp_file($plain->basedir . "/crowd_$n.out.err"), qr/ERROR:  (?!canceling|no id of shard|current transaction is aborted|savepoint "s" does not exist|maximum number of prepared)/, "session $n has only expected errors");
}
cmp_ok(scalar keys %given, '>', 50_000, 'eight sessions minted ' . keys(%given) . ' ids');
is("$twice $down", '0 0', 'ids of eight sessions are unique and ascend within each session');
$ledger->of('fleet')->record($ledger->anonymous, sort { $a <=> $b } keys %given);
is($plain->safe_psql('fleet', "SELECT count(*) FROM pg_locks WHERE relation = 'snowflake_sql.gate'::regclass"), '0', 'prepared transactions hold no lock on snowflake_sql.gate');

# A promoted standby must mint ids above all earlier ids.
$plain->backup('base');
my $standby = Snowflake::Node->create_from_backup('standby', $plain, 'base', has_streaming => 1);
$standby->clock->set($plain->clock->offset - 0.5);
$standby->start;
$standby->refuses('SELECT snowflake.next_id(7)', { sqlstate => '25006', message => 'cannot execute next_id\(\) during recovery', hint => 'primary' }, 'next_id() fails on a standby', 'fleet');
is($standby->safe_psql('fleet', 'SELECT minting, reason FROM snowflake.health'), 'f|standby', 'health shows that the server is a standby');
mint();
$plain->wait_for_catchup($standby, 'replay', $plain->lsn('write'));
$ledger->of('fleet')->new_server_run;
$plain->stop('immediate');
$standby->promote;
$standby->mint($ledger, undef, 'fleet');
$standby->stop;
$ledger->check(50_000, 'ids of the SQL engine are unique over all server runs');

done_testing();
