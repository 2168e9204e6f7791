# Tests rows that come from partial dumps or logical replication, which do not transfer the high-water mark. After
# observe_all() new ids must be greater than the ids of all rows, even if the clock is behind.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $conf = "snowflake.max_lead = 2h\n";
my $source = Snowflake::Node->create('source', allows_streaming => 'logical', conf => $conf);
$source->start;
$source->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE DATABASE app OWNER app');
$source->safe_psql('app', <<~'SQL');
	CREATE EXTENSION snowflake_migrate CASCADE;
	SET ROLE app;
	CREATE SCHEMA app;
	CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int);
	INSERT INTO app.photos (n) SELECT g FROM generate_series(1, 100) g;
	SQL
my $max = $source->safe_psql('app', 'SELECT max(id) FROM app.photos');

my $target = Snowflake::Node->create('target', conf => $conf);
$target->clock->set(-3600);
$target->start;
$target->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE loader LOGIN');
my $table = 'CREATE SCHEMA app; CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int)';

# Makes a database whose owner is the role app. Runs SQL in the database as a superuser and as role app.
my $databases = 0;
sub make
{
	my ($by_superuser, $by_app) = @_;
	my $name = 'app_' . ++$databases;
	$target->safe_psql('postgres', "CREATE DATABASE $name OWNER app");
	$target->safe_psql($name, "$by_superuser; SET ROLE app; $by_app") if $by_superuser;
	return $name;
}
sub next_id { return $target->safe_psql($_[0], 'SET ROLE app; SELECT snowflake.next_id(5)'); }
sub observed
{
	my ($database, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($target->safe_psql($database, 'SELECT count(*), max(id) FROM app.photos'), "100|$max", "$name: the rows arrived");
	cmp_ok(next_id($database), '<', $max, "$name: without observe_all() the next id is below those of the rows");
	is($target->safe_psql($database, 'SET ROLE app; SELECT snowflake.observe_all()'), $max, "$name: observe_all() as the owner of the database returns the greatest id");
	cmp_ok(next_id($database), '>', $max, "$name: after observe_all() the next id is above those of the rows");
	return;
}

# Dumps the database "app" of the source server, and returns the name of the dump file.
sub dump_of
{
	my (@options) = @_;
	my $file = $source->basedir . '/dump' . join '', map { tr/-.a-zA-Z//cdr } @options;
	$source->command_ok([ 'pg_dump', @options, '-f', $file, '-d', $source->connstr('app') ], "pg_dump @options");
	return $file;
}
sub load
{
	my ($database, $file, @options) = @_;
	$target->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', @options, '-f', $file, '-d', $target->connstr($database) ], 'restored');
	return;
}

my $extension = 'CREATE EXTENSION snowflake_migrate CASCADE';
my $database = make($extension, 'CREATE SCHEMA app');
load($database, dump_of('-t', 'app.photos'));
observed($database, 'a table');

$database = make($extension, 'SELECT 1');
load($database, dump_of('-n', 'app'));
observed($database, 'a schema');

$database = make();
load($database, dump_of('-s'));
load($database, dump_of('-a', '-t', 'app.photos'));
observed($database, 'a dump that restores definitions first, and rows later');

foreach my $options ([ '-N', 'snowflake' ], [ '-T', 'snowflake.*' ], [ '--exclude-table-data', 'snowflake.*' ])
{
	$database = make();
	load($database, dump_of(@$options));
	observed($database, "all but the extension's, @$options");
}

$database = make($extension, 'CREATE SCHEMA app');
$target->command_ok([ 'pg_restore', '-n', 'app', '-t', 'photos', '-d', $target->connstr($database), dump_of('-Fc') ], 'pg_restore of a table');
observed($database, 'one table of a dump');

# Restores the whole dump as a role that may not set the high-water mark.
$database = make($extension, 'SELECT 1');
$target->safe_psql('postgres', "GRANT CREATE ON DATABASE $database TO loader");
my ($out, $err) = run_command([ 'psql', '-Xq', '-U', 'loader', '-f', dump_of('--no-owner'), '-d', $target->connstr($database) ]);
like($err, qr/ERROR:  permission denied for sequence high_water/, 'a role that may not set the mark: the restore shows an error');
$target->safe_psql($database, 'GRANT USAGE ON SCHEMA app TO app; GRANT SELECT ON app.photos TO app');
observed($database, 'a role that may not set the mark');

$database = make($extension, $table);
load($database, dump_of('-a'));
cmp_ok(next_id($database), '>', $max, 'pg_dump -a: the dump contains the mark, so the next id is above those of the rows');

$database = make($extension, $table);
$source->safe_psql('app', 'CREATE PUBLICATION p FOR TABLE app.photos');
$target->safe_psql($database, "CREATE SUBSCRIPTION s CONNECTION '${\$source->connstr} dbname=app' PUBLICATION p");
$target->wait_for_subscription_sync($source, 's', $database);
observed($database, 'logical replication');
$target->safe_psql($database, 'DROP SUBSCRIPTION s');

done_testing();
