# Tests unusual set-ups: shared memory of another library version, single-user mode, and an extension from which an
# object was removed.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Form;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', conf => 'snowflake.max_lead = 60s');
my $clock = $node->clock;
my $ledger = Snowflake::Ledger->new;
my $mint = 'SELECT snowflake.next_id(g % 5) FROM generate_series(1, 100) g';
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->mint($ledger, $mint);

is($node->safe_psql('postgres', "LOAD 'snowflake'; SELECT snowflake.shard_of(snowflake.next_id(77))"), '77', 'a session mints after LOAD of the preloaded library');

# If a library of another version created the shared memory, every function that uses the memory fails.
my $id = $ledger->highest(1);
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
$node->mint($ledger, $mint);
my $other = "SET dynamic_library_path = '" . Snowflake::Form::directory($node, abi => 7) . ':$libdir\'';
my %missing = (
	sqlstate => '55000',
	message => 'another version of the library snowflake created the shared memory of this server',
	detail => 'The shared memory has ABI number 1\. The library that this session loaded has ABI number 7',
	hint => 'Restart the server, or reinstall the package version that the server started with');
my @calls = (
	'next_id(5)', 'next_id()', 'next_id(NULL)', 'next_ids(5, 10)', 'next_ids(NULL, NULL)', "next_id_in('[0,3)')", "next_ids_in('[0,3)', 10)", 'last_id()', "decode($id)", "time_of($id)",
	"shard_of($id)", "region_of($id)", "sequence_of($id)", 'min_id(now())', 'max_id(now())',
	"id_range('[now,infinity)')", "created_within($id, now(), now())", 'make_id(now(), 5, 5)',
	"observe($id)", 'observe(NULL)', 'accept_clock()', 'accept_clone()', 'layout()', 'shard_stats()', 'clock_history()',
	'database_stats()', 'refusals()', "explain_id($id)", 'now_bounds()', 'reset_stats()');
my $session = $node->session;
$session->query_safe($other);
foreach my $call (@calls)
{
	$node->refuses("$other; SELECT snowflake.$call", \%missing, "another library: $call fails");
	$session->query("SELECT snowflake.$call");
	like($session->{stderr}, qr/$missing{message}/, "another library: $call also fails in a session that made the other calls");
	$session->{stderr} = '';
}
is($session->query_safe("SELECT bits, regions, shards, ids_per_second FROM snowflake.preview_layout('wide')"), '41/5+13/5|32|8192|32000',
	'another library: preview_layout() works');
is($session->query_safe('SELECT minting, reason, advice, mark FROM snowflake.health'),
	'f|another version of the library created the shared memory|Restart the server, or reinstall the package version that the server started with.|', 'another library: health shows the reason and the advice');
$session->quit;
$node->refuses("$other; CREATE EXTENSION snowflake", \%missing, 'another library: CREATE EXTENSION', 'other');
is($node->safe_psql('other', "SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake'"), '0', 'another library: CREATE EXTENSION leaves no schema');
$node->safe_psql('postgres', 'SET snowflake.max_wait = 5; SET snowflake.default_shard = 3');
pass('settings can be set before the library is loaded');
$node->command_like([ 'pg_dump', '-d', $node->connstr('postgres') ], qr/CREATE EXTENSION .*snowflake.*setval\('snowflake.high_water'/s,
	'pg_dump works without the preload');
$node->safe_psql('postgres', 'BEGIN; DROP EXTENSION snowflake; ROLLBACK');
$node->stop;

# In single-user mode the session itself must flush the high-water mark, because no WAL writer runs.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
sub single_user
{
	my ($sql) = @_;
	local %ENV = (%ENV, $clock->environment);
	my $output = '';
	IPC::Run::run([ 'postgres', '--single', '-F', '-D', $node->data_dir, 'postgres' ],
		'<', \$sql, '>&', \$output, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$ledger->record('psql', $output =~ /next_id = "(\d+)"/g);
	return $output;
}
$clock->step(-8);
$ledger->new_server_run;
my $before = $ledger->count;
my $output = single_user("SELECT snowflake.next_id(g % 5) FROM generate_series(1, 50) g\nSELECT snowflake.shard_of($id)\n");
is($ledger->count - $before, 50, 'single-user mode: 50 ids are minted');
like($output, qr/shard_of = "1"/, 'single-user mode: an id is decoded');
$clock->step(-8);
$ledger->new_server_run;
single_user("SELECT snowflake.next_id(g % 5) FROM generate_series(1, 50) g\n");
$clock->step(-8);
$ledger->new_server_run;
$node->start;
$node->mint($ledger, $mint);
$ledger->check(300, 'ids are unique over runs in single-user mode, with the clock set back before each');

# Calls fail if an object was removed from the extension, or if another extension is named snowflake.
$node->safe_psql('other', 'CREATE EXTENSION snowflake; ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water');
foreach my $call ('next_id(5)', "decode($id)")
{
	$node->refuses(
		"SELECT snowflake.$call",
		{
			sqlstate => '55000',
			message => 'extension "snowflake" in this database lacks a sequence or table',
			detail => 'A sequence or table was removed from the extension or renamed\. The extension has the sequences high_water, seal, seal_local, fleet and origin_fingerprint, and the tables dumped_seal, backfills and late_ids',
			hint => 'If it was removed from the extension, add it with ALTER EXTENSION\. .*Do not drop the extension'
		},
		"$call fails if the mark was removed from the extension", 'other');
}
$node->safe_psql('other', 'ALTER EXTENSION snowflake ADD SEQUENCE snowflake.high_water');
$node->mint($ledger, $mint, 'other');
$ledger->check(400, 'ids are unique after the mark was made a member again');

# Calls the library's next_id() through a function that DROP EXTENSION does not drop.
$node->safe_psql('other', <<~'SQL');
	CREATE FUNCTION orphan(int) RETURNS bigint AS 'snowflake', 'snowflake_next_id' LANGUAGE C;
	DROP EXTENSION snowflake;
	SQL
$node->refuses(
	'SELECT orphan(5)',
	{
		sqlstate => '55000',
		message => 'extension "snowflake" is not installed in this database',
		hint => 'Run CREATE EXTENSION snowflake'
	},
	'a function that remains after DROP EXTENSION does not mint', 'other');

done_testing();
