# Tests pg_partman with one partition for each day, in which the ids are the partition key. The test runs the commands
# of doc/clients.md, and a wrong variant that uses p_epoch.

use strict;
use warnings FATAL => 'all';

use DBI;
use Test::More;

my $db = DBI->connect('dbi:Pg:', undef, undef, { RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoCommit => 1 });
$db->do('CREATE SCHEMA partman');
$db->do('CREATE EXTENSION pg_partman SCHEMA partman');
my ($version) = $db->selectrow_array(q{SELECT split_part(extversion, '.', 1) FROM pg_extension WHERE extname = 'pg_partman'});
sub rows_of { return scalar $db->selectrow_array("SELECT count(*) FROM $_[0]"); }
sub events
{
	my ($name, $create_parent) = @_;
	# Removes the parameter p_type for pg_partman 5, which has only one kind of partitioning.
	$create_parent =~ s/p_type => 'native', *// if $version >= 5;
	$db->do("CREATE TABLE $name (id bigint NOT NULL DEFAULT snowflake.next_id(1), what text) PARTITION BY RANGE (id)");
	$db->do($create_parent);
	$db->do("INSERT INTO $name (what) SELECT 'now' FROM generate_series(1, 1000)");
	return;
}

# For pg_partman, the length of a day is the difference of two ids whose times are a day apart. In the default layout,
# the ids of a day span the milliseconds of a day, shifted by the 23 bits of region, shard and sequence.
events('events', <<~'SQL');
	SELECT partman.create_parent(p_parent_table => 'public.events', p_control => 'id', p_type => 'native',
	  p_interval => (86400000::bigint << 23)::text,
	  p_start_partition => snowflake.min_id(date_trunc('day', now(), 'UTC'))::text);
	SQL
is(rows_of('ONLY events_default'), 0, 'no row in the default partition');
is(rows_of('events'), 1000, 'every row is stored');
my ($bounds) = $db->selectrow_array(<<~'SQL');
	SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = (SELECT DISTINCT tableoid FROM events)
	SQL
my ($today) = $db->selectrow_array(q{SELECT format('FOR VALUES FROM (''%s'') TO (''%s'')',
	snowflake.min_id(date_trunc('day', max(snowflake.time_of(id)), 'UTC')),
	snowflake.min_id(date_trunc('day', max(snowflake.time_of(id)), 'UTC') + interval '1 day')) FROM events});
is($bounds, $today, 'today\'s rows are in the partition of today, of midnight to midnight in UTC');

# pg_partman counts future partitions from the partition of the greatest id. If enough partitions follow the partition
# of the greatest id, pg_partman makes no more partitions.
$db->do('INSERT INTO events (id) SELECT snowflake.make_id(now() + interval \'3 days\', 1, 0)');
$db->do(q{CALL partman.run_maintenance_proc()});
my ($ahead) = $db->selectrow_array(<<~'SQL');
	SELECT count(*) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
	 WHERE inhparent = 'events'::regclass AND pg_get_expr(c.relpartbound, c.oid)
	       LIKE format('FOR VALUES FROM (''%s'')%%', snowflake.min_id(date_trunc('day', now() + interval '6 days', 'UTC')))
	SQL
is($ahead, 1, 'maintenance makes partitions ahead of the greatest id');

$db->do(<<~'SQL');
	UPDATE partman.part_config SET retention = (2 * 86400000::bigint << 23)::text, retention_keep_table = false
	 WHERE parent_table = 'public.events';
	SQL
$db->do(q{CALL partman.run_maintenance_proc()});
is(rows_of('events'), 1, 'what is older than two days before the greatest id is dropped');

events('by_epoch', <<~'SQL');
	SELECT partman.create_parent(p_parent_table => 'public.by_epoch', p_control => 'id', p_type => 'native',
	  p_interval => '1 day', p_epoch => 'milliseconds');
	SQL
is(rows_of('ONLY by_epoch_default'), 1000, 'trap: p_epoch sends every row to the default partition');

done_testing();
