# Tests that a change of the high-water mark or extension in one database neither stops nor delays other databases.
# After a high-water mark was dropped or rolled back, new ids are above this high-water mark.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Form;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	restart_after_crash = on
	snowflake.reserve = 60s
	CONF
Snowflake::Form::install($node, most_databases => 3);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my $ledger = Snowflake::Ledger->new;
$node->create_database($_) foreach qw(prod staging);

sub mint
{
	my ($database) = @_;
	$node->mint($ledger, 'SELECT snowflake.next_id(g % 5) FROM generate_series(1, 50) g', $database);
	return;
}

# Runs commands in another database, while sessions of the database "prod" must mint ids without a wait.
sub undisturbed
{
	my ($what, @sql) = @_;
	my $session = $node->session('prod');
	$session->query_safe('SET snowflake.max_wait = 0');
	$session->query_safe('SELECT snowflake.next_id(1)');
	foreach my $sql (@sql)
	{
		$node->psql(ref $sql ? @$sql : ('staging', $sql));
		$session->query('SELECT snowflake.next_id(g) FROM generate_series(0, 255) g');
		is($session->{stderr}, '', "$what in another database: an open session of prod mints in all shards after " . (ref $sql ? $sql->[1] : $sql));
		$session->{stderr} = '';
		my ($code, undef, $err) = $node->psql('prod', 'SET snowflake.max_wait = 0; SELECT snowflake.next_id(7)');
		is("$code$err", '0', "$what in another database: a new session of prod mints");
	}
	$session->quit;
	return;
}

mint('staging');
mint('prod');
my $day_ahead = "SELECT setval('snowflake.high_water', (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 86400000)";
undisturbed(
	'a mark a day ahead',
	$day_ahead,
	'SELECT snowflake.next_id(1)',
	'SELECT snowflake.observe(snowflake.min_id(clock_timestamp()))',
	'SET ROLE pg_monitor; SELECT snowflake.next_id(1)',
	'BEGIN; DROP EXTENSION snowflake; ROLLBACK',
	'SELECT snowflake.next_ids(2, 1000)');

# A superuser can correct a wrong high-water mark without a restart. After a superuser has corrected a wrong high-water
# mark, neither the disk nor the shared memory contains the wrong value.
my %behind = (
	sqlstate => '55000',
	message => 'the clock is behind the high-water mark \(sequence snowflake.high_water\)',
	detail => 'Ids may have been minted up to .* the call would wait 24.0 h\. "snowflake.max_wait"',
	hint => 'run SELECT snowflake.set_mark\(...\) with a time after every id');
$node->refuses('SELECT snowflake.next_id(1)', \%behind, 'next_id() would have to wait a day if the mark is a day ahead', 'staging');
$node->refuses('SET snowflake.max_wait = 0; SELECT snowflake.next_ids(1, 5)', { %behind, detail => '24.0 h' },
	'next_ids() would have to wait a day if the mark is a day ahead', 'staging');
$node->safe_psql('staging', "SELECT setval('snowflake.high_water', (extract(epoch FROM clock_timestamp()) * 1000)::bigint)");
mint('staging');
$node->safe_psql('staging', 'SELECT snowflake.observe(snowflake.min_id(clock_timestamp()))');
cmp_ok($node->safe_psql('staging', 'SELECT last_value - extract(epoch FROM clock_timestamp()) * 1000 FROM snowflake.high_water'),
	'<', 200_000, 'a lowered mark stays low after ids were observed and minted');
$node->crash($ledger, +61);    # with this reserve, the high-water mark can be 60 s ahead of the clock after a crash
mint('prod');
mint('staging');

# Copies a database by CREATE DATABASE with the option TEMPLATE. Calls in the copy may wait until the clock reaches the
# high-water mark, but calls in the database prod must not wait.
undisturbed(
	'a template copy',
	[ 'postgres', 'CREATE DATABASE copy TEMPLATE staging' ],
	[ 'copy', 'SET snowflake.max_wait = 0; SELECT snowflake.next_id(1)' ],
	[ 'postgres', 'DROP DATABASE copy' ]);
undisturbed('an extension that comes and goes', 'DROP EXTENSION snowflake', 'CREATE EXTENSION snowflake',
	'BEGIN; DROP EXTENSION snowflake; CREATE EXTENSION snowflake; COMMIT', 'SELECT snowflake.next_id(1)');

# If the high-water mark is lowered while two sessions mint ids, the sessions must not write it again in turn.
$node->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.reserve = 1000');
$node->reload;
$node->clock->step(+120);
my @sessions = map { $node->session('prod') } 1 .. 2;
$_->query_safe('SELECT snowflake.next_id(1)') foreach @sessions;
$node->safe_psql('prod', "SELECT setval('snowflake.high_water', 1800000000000 - 86400000000)");
my $from = $node->safe_psql('prod', 'SELECT pg_current_wal_insert_lsn()');
foreach my $round (1 .. 20)
{
	$ledger->of('prod')->record('a', split /\n/, $sessions[0]->query_safe('SELECT snowflake.next_id(1)'));
	$ledger->of('prod')->record('b', split /\n/, $sessions[1]->query_safe('SELECT snowflake.next_id(1)'));
	mint('prod');
}
$_->quit foreach @sessions;
my $bytes = $node->safe_psql('prod', "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$from')");
cmp_ok($bytes, '<', 15 * 8192, "after the mark was lowered, sessions do not write it again in turn ($bytes bytes of WAL)");

# After DROP EXTENSION a preloaded library still keeps the high-water mark, even if a backend is killed.
$node->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.max_lead = 30000');
$node->set_preload(1);
$node->restart;
$node->safe_psql('postgres', 'CREATE DATABASE fickle');
$node->safe_psql('postgres', 'DROP DATABASE staging');
my $burst = 'SELECT id FROM (SELECT unnest(snowflake.next_ids(3, 1000000)) ORDER BY 1 DESC LIMIT 10) AS last (id) ORDER BY id';

sub kill_a_backend
{
	my $victim = $node->session;
	$node->kill_backend($victim->query_safe('SELECT pg_backend_pid()') =~ s/\s//gr);
	return;
}

foreach my $way (
	[ 'dropped', 'CREATE EXTENSION snowflake', 'DROP EXTENSION snowflake' ],
	[ 'created and rolled back', 'BEGIN; CREATE EXTENSION snowflake', 'ROLLBACK' ])
{
	my ($name, $before, $after) = @$way;
	foreach my $round (1, 2)
	{
		$node->mint($ledger, "$before; " . join('; ', ($burst) x 9) . "; $after;", 'fickle');
		kill_a_backend() if $round == 2;
		$node->safe_psql('fickle', 'CREATE EXTENSION snowflake');
		$ledger->new_server_run;
		mint('fickle');
		$node->safe_psql('fickle', 'DROP EXTENSION snowflake');
		$node->clock->step(+60);
	}
	$ledger->check(100, "ids are unique if the extension was $name, with and without a crash restart");
}

# Drops the extension in a database for which "snowflake.max_databases" leaves no room in shared memory. The library
# must keep the high-water mark of the dropped extension.
$node->clock->step(+60);
$node->create_database($_) foreach qw(third fourth);
$node->mint($ledger, "CREATE EXTENSION snowflake; $burst; $burst; $burst; DROP EXTENSION snowflake", 'fickle');
kill_a_backend();
mint($_) foreach qw(prod third fourth);
$node->refuses('CREATE EXTENSION snowflake; SELECT snowflake.next_id(3)',
	{ sqlstate => '53400', message => 'too many databases' }, 'next_id() fails if no slot for a database is left', 'fickle');
$node->safe_psql('fickle', 'DROP EXTENSION snowflake');
kill_a_backend();
$node->safe_psql('postgres', 'DROP DATABASE third');
$node->safe_psql('fickle', 'CREATE EXTENSION snowflake');
$ledger->new_server_run;
mint('fickle');
mint('prod');
$ledger->check(300, 'ids are unique if the extension was dropped in a database without a slot');

# The extension uses a segment of dynamic shared memory for each database. A server with a small max_connections has few
# segments of dynamic shared memory, and parallel queries need some of them.
my $small = Snowflake::Node->create('small', conf => <<~'CONF');
	max_connections = 4
	superuser_reserved_connections = 1
	autovacuum_max_workers = 1
	max_worker_processes = 1
	max_logical_replication_workers = 0
	max_wal_senders = 0
	CONF
$small->start;
$small->create_database('model');
my ($error, $count) = ('', 0);
while ($error eq '' && $count < 100)
{
	$small->safe_psql('postgres', 'CREATE DATABASE copy' . ++$count . ' TEMPLATE model STRATEGY file_copy');
	(undef, undef, $error) = $small->psql("copy$count", 'SELECT snowflake.next_id(1)');
}
$small->refuses('SELECT snowflake.next_id(1)',
	{ sqlstate => '53400', message => 'too many databases', detail => ($count - 1) . ' databases have minted' }, 'a server with few processes has fewer slots', "copy$count");
is($small->safe_psql("copy$count", 'SELECT minting, reason FROM snowflake.health'), 'f|too many databases', 'health of the refused database shows the reason');
my $parallel = (PostgreSQL::Version->new($small->safe_psql('postgres', 'SHOW server_version')) < 16) ? 'force_parallel_mode' : 'debug_parallel_query';
like($small->safe_psql('postgres', "SET $parallel = on; EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT count(*) FROM pg_class"),
	qr/Workers Launched: 1/, 'a parallel query still starts a worker');

done_testing();
