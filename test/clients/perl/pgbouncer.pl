# Tests minting through pgbouncer in transaction mode, in which each transaction of a client may use another server
# session. The test shows which values SET and last_id() leave for the next client.

use strict;
use warnings FATAL => 'all';

use DBI;
use File::Temp;
use IPC::Run;
use Test::More;
use Time::HiRes qw(sleep);

my $directory = File::Temp->newdir('snowflake-pgbouncer-XXXXXX', TMPDIR => 1);
my $port = 6432;    # PgBouncer listens only on a socket in a new directory
open my $config, '>', "$directory/pgbouncer.ini" or die $!;
print $config <<"END";
[databases]
$ENV{PGDATABASE} = host=$ENV{PGHOST} port=$ENV{PGPORT} user=$ENV{PGUSER}
tenant_12 = host=$ENV{PGHOST} port=$ENV{PGPORT} user=$ENV{PGUSER} dbname=$ENV{PGDATABASE} connect_query='SET snowflake.default_shard = 12'
[pgbouncer]
unix_socket_dir = $directory
listen_port = $port
auth_type = any
pool_mode = transaction
default_pool_size = 1
END
close $config;
my $log = '';
my $pgbouncer = IPC::Run::start([ 'pgbouncer', "$directory/pgbouncer.ini" ], '<', \undef, '>', \$log, '2>', \$log);

END { local $?; $pgbouncer->kill_kill if $pgbouncer; }

my $tries = 600;
until (-S "$directory/.s.PGSQL.$port")
{
	$pgbouncer->pump_nb;
	die "pgbouncer did not start: $log" if !$pgbouncer->pumpable || --$tries == 0;
	sleep 0.1;
}

sub client
{
	my $database = $_[0] // $ENV{PGDATABASE};
	return DBI->connect("dbi:Pg:dbname=$database;host=$directory;port=$port", $ENV{PGUSER}, undef,
		{ RaiseError => 1, PrintError => 0, AutoCommit => 1, pg_server_prepare => 0 });
}
sub value { return $_[0]->selectrow_array($_[1]); }

# Two clients use the same server session in turn, because pgbouncer has only one server session.
my ($one, $other) = (client(), client());
my $mine = value($one, 'SELECT snowflake.next_id(5)::text');
my $theirs = value($other, 'SELECT snowflake.next_id(6)::text');
is(value($one, 'SELECT snowflake.last_id()::text'), $theirs, 'trap: last_id() is another client\'s');
$one->do('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)');
my $id = value($one, q{INSERT INTO photos (caption) VALUES ('first light') RETURNING id});
is(value($other, 'SELECT id::text FROM photos'), $id, 'RETURNING id is one\'s own');

my $unset = value($other, 'SHOW snowflake.default_shard');
$one->begin_work;
$one->do('SET LOCAL snowflake.default_shard = 77');
is(value($one, 'SELECT snowflake.shard_of(snowflake.next_id())'), 77, 'SET LOCAL has an effect in its transaction');
$one->commit;
is(value($other, 'SHOW snowflake.default_shard'), $unset, 'SET LOCAL ends with the transaction');
is(value($other, 'SELECT snowflake.shard_of(snowflake.next_id(8))'), 8, 'the shard as an argument');

my $tenant = client('tenant_12');
is(value($tenant, 'SELECT snowflake.shard_of(snowflake.next_id())'), 12, 'connect_query: a shard for a pool');

$one->do('SET snowflake.default_shard = 77');
is(value($other, 'SELECT snowflake.shard_of(snowflake.next_id())'), 77, 'trap: SET decides where another client mints');

done_testing();
