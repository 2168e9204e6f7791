# Tests a server that does not preload the library: each session loads the library with its first call. All sessions of
# the server must use the same shared memory.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Form;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => "shared_preload_libraries = ''\nrestart_after_crash = on\nfsync = on\nsnowflake.region = 3\nsnowflake.max_lead = 60s\n");
$node->start;
my $ledger = Snowflake::Ledger->new;
my $mint = 'SELECT snowflake.next_id(g % 5) FROM generate_series(1, 200) g';

my $first = $node->session;
$first->query_safe('SET client_min_messages = warning; CREATE EXTENSION snowflake');
$ledger->record('first', split /\n/, $first->query_safe($mint));
$node->mint($ledger) foreach 1 .. 3;
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 't|', 'health() shows that the database mints');
is($node->safe_psql('postgres', 'SELECT snowflake.region_of(snowflake.next_id(1)), snowflake.shard_of(snowflake.next_id(1))'), '3|1', 'ids have the configured region');
my @writers = map { $node->start_writer("$mint;\n" x 20) } 1 .. 4;
$ledger->record('first', split /\n/, $first->query_safe($mint)) foreach 1 .. 20;
foreach my $writer (@writers)
{
	my $end = $node->finish_writer($writer);
	ok($end->{well}, "$writer->{name} mints") or diag($end->{errors});
	$ledger->record($writer->{name}, @{ $end->{ids} });
}
$ledger->check(20_000, 'ids of sessions that load the library at the same time are unique');

# Sessions load the library in a transaction that is rolled back, and in a transaction that is still open when the
# session ends.
$node->mint($ledger, 'BEGIN; SELECT snowflake.next_id(1); ROLLBACK; SELECT snowflake.next_id(1)');
my $leaving = $node->session;
$ledger->record('leaving', $leaving->query_safe('BEGIN; SELECT snowflake.next_id(1)'));
$leaving->quit;
is($node->safe_psql('postgres', 'SELECT snowflake.next_id(2) > 0, (SELECT settled_before IS NOT NULL FROM snowflake.settled_before())'), 't|t',
	'a session that ended within a transaction holds back no cursor');

# Crashes a backend, so that PostgreSQL initializes its shared memory again, and steps the clock back or ahead.
foreach my $step (-30, +40)
{
	my $victim = $node->session;
	$node->kill_backend($victim->query_safe('SELECT pg_backend_pid()') =~ s/\s//gr);
	$node->clock->step($step);
	$ledger->new_server_run;
	$node->mint($ledger, "SET snowflake.max_wait = '60s'; $mint");
}
$first = $node->session;
$ledger->check(20_500, 'ids are unique over a crash restart with the clock stepped back');

# Tests a library of another version, which a session loads if the package is upgraded while the server runs.
my $other = Snowflake::Form::directory($node, abi => 7);
$ledger->record('old library', split /\n/, $first->query_safe($mint));
my $upgraded = "SET dynamic_library_path = '$other'; SELECT snowflake";
my %other = (
	sqlstate => '55000',
	message => 'another version of the library snowflake created the shared memory of this server',
	detail => 'The shared memory has ABI number 1\. The library that this session loaded has ABI number 7',
	hint => 'Restart the server, or reinstall the package version that the server started with');
$node->refuses("$upgraded.$_", \%other, "another library refuses: $_") foreach 'next_id(1)', 'observe(1)';
$node->refuses("SET dynamic_library_path = '$other'; DROP EXTENSION snowflake", \%other, 'another library does not drop the mark, which it could not record');
$ledger->record('old library', split /\n/, $first->query_safe($mint));
$node->mint($ledger);
$ledger->check(25_000, 'the first library continues to mint');
$node->crash($ledger, -2);
$ledger->record('new library', split /\n/, $node->safe_psql('postgres', "SET dynamic_library_path = '$other'; SET snowflake.max_wait = '60s'; $mint"));
$node->refuses('SELECT snowflake.next_id(1)', { %other, detail => 'The shared memory has ABI number 7\. The library that this session loaded has ABI number 1' }, 'after a restart the first library refuses instead');
$node->crash($ledger, -2);
$node->mint($ledger, "SET snowflake.max_wait = '60s'; $mint");
$ledger->check(25_500, 'ids are unique if servers run with one library after the other');

# If the shared memory for a database cannot be created, next_id() fails, and the next call tries again.
$node->create_database('crowded');
my $segments = $node->data_dir . '/pg_dynshmem';
chmod 0500, $segments or die $!;
like($node->error_of('SELECT snowflake.next_id(1)', 'crowded'), qr/could not open shared memory segment/, 'next_id() fails without room for shared memory');
is($node->safe_psql('postgres', "SELECT count(*) FROM snowflake.databases WHERE database = 'crowded'"), '0', 'a call that failed leaves no state of its database');
chmod 0700, $segments or die $!;
$node->mint($ledger, $mint, 'crowded');
$ledger->of('crowded')->check(200, 'the next call succeeds when there is room for shared memory');

# An event trigger loads the library into a session before a command that the library may refuse.
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE photos (id bigint) PARTITION BY HASH (id snowflake.by_shard);
	CREATE TABLE photos_0 PARTITION OF photos FOR VALUES WITH (MODULUS 1, REMAINDER 0);
	CREATE ROLE plain;
	GRANT CREATE ON SCHEMA public TO plain;
	GRANT CREATE ON DATABASE postgres TO plain;
	SQL
$node->refuses('DROP EXTENSION snowflake CASCADE', { sqlstate => '2BP01', message => 'partitioned by it' }, 'DROP EXTENSION ... CASCADE is refused');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'photos_0'"), '1', 'after the refused DROP EXTENSION the partition exists');
$first = $node->session;
$first->query_safe('BEGIN; LOCK TABLE snowflake.dumped_seal IN ROW SHARE MODE');
$node->refuses("SET ROLE plain; SET lock_timeout = '5s'; $_", { sqlstate => '42501', message => 'must be owner' }, "a plain role is refused before it waits: $_")
  foreach 'CREATE RULE r AS ON INSERT TO snowflake.dumped_seal DO INSTEAD NOTHING',
  'CREATE TRIGGER t BEFORE INSERT ON snowflake.dumped_seal EXECUTE FUNCTION suppress_redundant_updates_trigger()',
  'CREATE TABLE child (seal bigint) INHERITS (snowflake.dumped_seal)', 'CREATE SCHEMA own CREATE TABLE child (seal bigint REFERENCES snowflake.dumped_seal)';
$first->query_safe('ROLLBACK');
# A session that has not loaded the library drops the extension while the newest ids are ahead of the clock.
$node->safe_psql('postgres', "DROP TABLE photos; ALTER DATABASE crowded SET snowflake.max_wait = '60s'");
my @burst = $node->mint($ledger, 'SELECT id FROM (SELECT unnest(snowflake.next_ids(3, 1000000)) ORDER BY 1 DESC LIMIT 10) AS last (id) ORDER BY id', 'crowded');
$node->safe_psql('crowded', 'DROP EXTENSION snowflake');
$node->safe_psql('crowded', 'CREATE EXTENSION snowflake');
$node->mint($ledger, 'SELECT snowflake.next_id(3)', 'crowded');
$ledger->of('crowded')->check(211, 'the mark that another session dropped is recorded');

# If an extension's setting is invalid, PostgreSQL itself only writes a warning and uses the default.
is($node->safe_psql('postgres', 'SET snowflake.region = 7; SELECT snowflake.region_of(snowflake.next_id(1))'), '3', 'a session cannot choose its region before it loads the library');
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE many AS SELECT snowflake.next_id(1) AS id FROM generate_series(1, 2000);
	ANALYZE many;
	CREATE FUNCTION shard(id bigint) RETURNS integer LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN snowflake.shard_of(id); END';
	SQL
is($node->safe_psql('postgres', <<~'SQL'), "2000\n3", 'a parallel query loads the library with the configured values');
	SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0;
	SET min_parallel_table_scan_size = 0;
	SELECT count(*) FROM many WHERE shard(id) = 1;
	SELECT snowflake.region_of(snowflake.next_id(1));
	SQL
foreach my $option ([ 'snowflake.reserve', '5s' ], [ 'snowflake.region', '9' ], [ 'snowflake.owned_shards', '1' ])
{
	my ($setting, $value) = @$option;
	local $ENV{PGOPTIONS} = "-c $setting=$value";
	$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => "the configured value of \"$setting\" was rejected", detail => "The configured value is \"$value\"" },
		"connection options do not replace the configuration: $setting");
}
foreach my $case (
	[ "snowflake.region = 'x'", 'the configured value of "snowflake.region" was rejected', 'a setting was rejected' ],
	[ 'snowflake.reserve = 1', 'the configured value of "snowflake.reserve" was rejected', 'a setting was rejected' ],
	[ "snowflake.owned_shard = '0-3'", 'the configured value of "snowflake.owned_shard" was rejected', 'a setting was rejected' ],
	[ "snowflake.leased_regions = '4'", 'setting "snowflake.leased_regions" requires the library snowflake to be preloaded', 'a setting requires the library to be preloaded' ])
{
	my ($setting, $message, $reason) = @$case;
	$node->start_with($setting);
	$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => $message }, "refused: $setting");
	is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), "f|$reason", "health() shows the reason: $setting");
}

# Many locks fill PostgreSQL's shared memory, so that no memory is left when a session loads the library.
$node->start_with('');
like($node->error_of('SELECT pg_advisory_lock(g) FROM generate_series(1, 1000000) g'), qr/53200: out of shared memory/, 'locks fill the shared memory');
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '53200', message => "PostgreSQL's shared memory has no room for snowflake", hint => 'Add snowflake to "shared_preload_libraries" and restart' },
	'next_id() fails if locks have filled the shared memory');
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), "f|no room in PostgreSQL's shared memory", 'health() shows that the shared memory has no room');

foreach my $preload ('snowflake', '', 'snowflake')
{
	$node->clock->step(-5);
	$ledger->new_server_run;
	$node->start_with("shared_preload_libraries = '$preload'", 'immediate');
	$node->mint($ledger, "SET snowflake.max_wait = '60s'; $mint");
	$node->mint($ledger);
}
$ledger->check(40_000, 'ids are unique over server runs with and without the preload');
unlike($node->log_content, qr/terminated by signal (?!9)/, 'no session that minted ended in a crash');

done_testing();
