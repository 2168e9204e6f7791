# Several sessions that make the same shards at a time: they wait for each other, and no one fails.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main');
$node->safe_psql('postgres', <<~'SQL');
	CREATE SCHEMA template;
	CREATE TABLE template.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), name text);
	CREATE TABLE template.photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), user_id bigint REFERENCES template.users);
	SQL

# One session holds what it has made, uncommitted, until the others wait for it.
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
		ok($result->{well}, "shards $shards, $other->{name}") or diag($result->{errors});
		is($result->{errors}, '', '... without a word');
	}
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname LIKE 'shard\_%' AND relkind = 'r'}),
		$tables, 'each table is there once');
	return;
}
side_by_side('[0,4)', 8);
$node->safe_psql('postgres', 'CREATE TABLE template.likes (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0))');
side_by_side('[0,4)', 12);

# A transaction whose snapshot is older than the schema cannot know it.
my $old = $node->session;
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', "CALL snowflake.create_shards('template', '[9,9]')");
$old->query("CALL snowflake.create_shards('template', '[9,9]')");
like($old->{stderr}, qr/schema shard_9 was made by another session/, 'a snapshot from before is told to try again');
$old->quit;

done_testing();
