# Tests several sessions that call create_shards() for the same shards at the same time. Tests alter_shards() while
# another session has locked a table.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main');
$node->add_tools;
$node->safe_psql('postgres', <<~'SQL');
	CREATE SCHEMA template;
	CREATE TABLE template.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), name text);
	CREATE TABLE template.photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), user_id bigint REFERENCES template.users);
	SQL

sub side_by_side
{
	my ($shards, $tables) = @_;
	my $first = $node->session;
	$first->query_safe('BEGIN');
	$first->query_safe("CALL snowflake.create_shards('template', '$shards')");
	my @others = map { $node->start_writer("SET client_min_messages = warning; CALL snowflake.create_shards('template', '$shards'$_)") }
	  '', ', commit_each => true', '';
	$node->poll_query_until('postgres', q{SELECT count(*) = 3 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event_type = 'Lock'})
	  or die 'they do not wait';
	$first->query_safe('COMMIT');
	$first->quit;
	foreach my $other (@others)
	{
		my $result = $node->finish_writer($other);
		ok($result->{well}, "$other->{name} creates shards $shards after it has waited") or diag($result->{errors});
		is($result->{errors}, '', "$other->{name} gets no message");
	}
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname LIKE 'shard\_%' AND relkind = 'r'}),
		$tables, "shards $shards have each table once");
	return;
}
side_by_side('[0,4)', 8);
$node->safe_psql('postgres', 'CREATE TABLE template.likes (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0))');
side_by_side('[0,4)', 12);

my $old = $node->session;
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', "CALL snowflake.create_shards('template', '[9,9]')");
$old->query("CALL snowflake.create_shards('template', '[9,9]')");
like($old->{stderr}, qr/another session has created schema shard_9/, 'create_shards() fails if its snapshot is older than the schema');
$old->quit;

# If another session has locked a table, alter_shards() fails with an error that names the schema of the table. The next
# call of alter_shards() continues with the schema that contains the locked table.
my $holder = $node->session;
$holder->query_safe('BEGIN; SELECT FROM shard_2.users');
my $add = q{CALL snowflake.alter_shards('ALTER TABLE users ADD COLUMN born date', '[%s,4)')};
my $added = q{SELECT string_agg(relnamespace::regnamespace::text, ' ' ORDER BY 1) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE attname = 'born'};
my $session = $node->session;
$session->query_safe('SET client_min_messages = warning');
foreach my $lock_limit ('', "SET lock_timeout = '10ms'; ")
{
	$session->query($lock_limit . sprintf($add, $lock_limit eq '' ? 0 : 2));
	like($session->{stderr}, qr/ERROR:  in schema shard_2: canceling statement due to lock timeout\n.*DETAIL:  Nothing has changed in schema shard_2\.\n.*HINT:  .*lock_timeout.*continue with shards => '\[2,4\)'/s,
		"alter_shards() fails at a locked table and names its schema ($lock_limit)");
	$session->{stderr} = '';
	is($node->safe_psql('postgres', $added), 'shard_0 shard_1', 'alter_shards() has altered the schemas before the locked one');
}
is($session->query_safe('SHOW lock_timeout'), '10ms', 'alter_shards() restores lock_timeout of the session');
$holder->query_safe('COMMIT');
$holder->quit;
$session->query_safe('RESET lock_timeout; ' . sprintf $add, 2);
is($node->safe_psql('postgres', $added), 'shard_0 shard_1 shard_2 shard_3', 'alter_shards() alters the remaining schemas when it is called again');
is($session->query_safe('BEGIN; ' . (sprintf($add, 0) =~ s/ADD COLUMN/DROP COLUMN/r =~ s/born date/born/r =~ s/\)$/, commit_each => false)/r) . '; SHOW lock_timeout; ROLLBACK'), '0',
	'alter_shards() restores lock_timeout in a transaction of the caller');
$session->quit;

done_testing();
