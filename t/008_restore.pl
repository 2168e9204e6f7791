# Restores dumps and base backups on another server, whose settings may choose another layout of ids.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $conf = 'snowflake.max_lead = 60s';
my $source = Snowflake::Node->create('source', allows_streaming => 1, has_archiving => 1, conf => $conf);
$source->start;

# The role "app", which has no other privileges, owns the database and the table.
$source->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE DATABASE app OWNER app');
$source->safe_psql('app', 'CREATE EXTENSION snowflake');
$source->safe_psql('app', <<~'SQL');
	SET ROLE app;
	CREATE SCHEMA app;
	CREATE TABLE app.photos (
	    id bigint PRIMARY KEY DEFAULT snowflake.next_id(5),
	    shard int GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED,
	    n int);
	CREATE INDEX ON app.photos (snowflake.time_of(id));
	SQL

sub insert
{
	my ($node, $n) = @_;
	return $node->ids("INSERT INTO app.photos (n) SELECT $n FROM generate_series(1, 200) RETURNING id", 'app');
}

# Checks that all rows were restored, and that new ids are greater than the ids of the restored rows.
sub continues
{
	my ($node, $rows, $name) = @_;
	my $ledger = Snowflake::Ledger->new;
	$ledger->record('restored', $node->ids('SELECT id FROM app.photos ORDER BY id', 'app'));
	$ledger->new_server_run;
	$ledger->record('new', insert($node, 99), $node->ids('SELECT snowflake.next_id(5)', 'app'));
	$ledger->check($rows + 201, $name);
	is($node->safe_psql('app', 'SELECT count(*) = 0 FROM app.photos WHERE shard <> snowflake.shard_of(id)'),
		't', "$name: ids decode to the shard that was stored with them");
	return;
}

my $dump = $source->basedir . '/app.sql';

sub dump_app
{
	$source->command_ok([ 'pg_dump', '-U', 'app', '-d', $source->connstr('app'), '-f', $dump ], 'pg_dump works as the owner of the tables');
	return;
}

sub restore
{
	my ($node) = @_;
	$node->command_ok(
		[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('app') ],
		'the dump is restored on ' . $node->name);
	return;
}

insert($source, 1);
dump_app();
$source->backup('base');
$source->safe_psql('app', 'SELECT pg_create_restore_point(\'middle\')');
my @after = insert($source, 2);
$source->safe_psql('app', 'SELECT pg_switch_wal()');
$source->stop;

my $target = Snowflake::Node->create('target', conf => $conf);
$target->clock->set(-40);
$target->start;
$target->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE DATABASE app OWNER app');
restore($target);
continues($target, 200, 'a dump restored under a clock 40 s behind');

# Restores the dump into a database that has minted ids under another layout. After a dump with another layout was
# restored, all functions fail, even in sessions that began before the restore.
$target->stop;
$target->append_conf('postgresql.conf', "snowflake.layout = 'twitter'");
$target->start;
$target->safe_psql('postgres', 'DROP DATABASE app; CREATE DATABASE app OWNER app');
$target->safe_psql('app', 'CREATE EXTENSION snowflake');
my $pooled = $target->session('app');
my $id = $pooled->query_safe('SELECT snowflake.next_id(7)');
is($pooled->query_safe("SELECT snowflake.shard_of($id)"), '7', 'before the restore an open session decodes its id');
# The last row of a dump contains the layout of the dumped database (its seal). If the dump and the database have
# different layouts, inserting the last row of the dump must fail.
$target->command_fails_like(
	[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $target->connstr('app') ],
	qr/the restored ids have another layout than this database/,
	'restoring a dump of another layout fails with the error about the layout');
my @functions = (
	'next_id(5)', 'next_ids(5, 10)', "decode($id)", "time_of($id)", "shard_of($id)", "region_of($id)",
	"sequence_of($id)", 'min_id(now())', 'max_id(now())', "id_range('[now,infinity)')",
	"created_within($id, now(), now())", 'make_id(now(), 5, 5)', "observe($id)", 'layout()', 'shard_stats()');
my %restored = (
	sqlstate => '55000',
	message => 'the restored ids have another layout than this database',
	detail => 'CREATE EXTENSION recorded layout 41/5\+5/12, tick 1 ms, .*\. The ids in the dump have layout 41/5\+8/10, tick 1 ms, '
	  . '.*Generated columns, indexes and partitions may be wrong',
	hint => 'In a new database, create the extension with the dump.s "snowflake.layout", "snowflake.tick" and "snowflake.epoch". Then restore the dump into the new database');

sub all_refuse
{
	my ($error, $name) = @_;
	my $pattern = Snowflake::Node::error_pattern($error);
	my @others = grep { $target->error_of("SELECT snowflake.$_", 'app') !~ $pattern } @functions;
	is("@others", '', $name);
	return;
}
foreach my $function (@functions)
{
	$pooled->query("SELECT snowflake.$function");
	like($pooled->{stderr}, qr/restored ids have another layout than this database/, "restored under another layout: $function fails in a session from before");
	$pooled->{stderr} = '';
}
$pooled->quit;
all_refuse(\%restored, 'restored under another layout: every function fails with detail and hint');

# Changing "snowflake.layout" after the restore does not correct values that the restore computed under another layout.
$target->append_conf('postgresql.conf', "snowflake.layout = 'fleet'");
$target->restart;
all_refuse(\%restored, 'restored under another layout: every function still fails after the setting was changed');
$target->safe_psql('postgres', q{ALTER SYSTEM SET snowflake.layout = 'twitter'});
$target->restart;
$target->safe_psql('postgres', 'DROP DATABASE app; CREATE DATABASE app OWNER app');
$target->safe_psql('app', q{SET snowflake.layout = 'fleet'; CREATE EXTENSION snowflake});
restore($target);
continues($target, 200, 'the dump can be restored into a new database as the hint describes');
$target->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.layout');
$target->restart;

# Restores a dump as a role that owns the database, but not the existing extension.
sub restore_as_app
{
	$target->safe_psql('postgres', 'DROP DATABASE app');
	$target->safe_psql('postgres', 'CREATE DATABASE app OWNER app');
	$target->safe_psql('app', 'CREATE EXTENSION snowflake');
	my ($out, $err) = run_command([ 'psql', '-Xq', '-U', 'app', '-f', $dump, '-d', $target->connstr('app') ]);
	unlike($err, qr/permission denied for sequence high_water/, 'the owner of the database may restore the mark');
	return $err;
}
unlike(restore_as_app(), qr/another layout/, 'same layout: the seal of the dump causes no error');
is($target->safe_psql('app', "SELECT count(*) FROM app.photos WHERE shard = 5"), '200', 'same layout: the rows are restored');
cmp_ok(scalar(insert($target, 1)), '==', 200, 'same layout: the restored database mints');
$target->append_conf('postgresql.conf', "snowflake.epoch = '2020-01-01'");
$target->restart;
like(restore_as_app(), qr/restored ids have another layout than this database/, 'another epoch: the restore shows the error about the layout');
all_refuse({ %restored, detail => 'epoch 2020-01-01 .*\. The ids in the dump have layout .* epoch 2025-01-01' },
	'another epoch, restored by a role that does not own the extension: every function fails');
$target->append_conf('postgresql.conf', "snowflake.epoch = '2025-01-01'");
$target->restart;
$target->safe_psql('postgres', 'DROP DATABASE app; CREATE DATABASE app OWNER app');
restore($target);

$target->append_conf('postgresql.conf', "snowflake.layout = '41/5+5/12'\nsnowflake.tick = 10\nsnowflake.epoch = '2024-06-01'");
$target->restart;
continues($target, 200, 'a changed setting for the layout does not affect this database');
$target->stop;

# Recovers base backups on servers whose clocks are behind the clock of the original server.
my $recovered = Snowflake::Node->create_from_backup('recovered', $source, 'base', has_restoring => 1, standby => 0);
$recovered->clock->set(-40);
$recovered->start;
$recovered->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($recovered->safe_psql('app', 'SELECT count(*) FROM app.photos WHERE id = ' . $after[-1]),
	'1', 'the base backup is recovered to the end of the archive');
continues($recovered, 400, 'after a full recovery ids are above all restored ids');
$recovered->stop;

my $middle = Snowflake::Node->create_from_backup('middle', $source, 'base', has_restoring => 1, standby => 0,
	conf => "recovery_target_name = 'middle'\nrecovery_target_action = 'promote'\n");
$middle->clock->set(-40);
$middle->start;
$middle->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($middle->safe_psql('app', 'SELECT count(*) FROM app.photos'), '200', 'the base backup is recovered to a point before the last insert');
continues($middle, 200, 'after a point-in-time recovery ids are above all restored ids');

done_testing();
