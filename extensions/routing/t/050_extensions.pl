# Tests all extensions together. Every order of CREATE EXTENSION must create the same objects, and every order of DROP
# EXTENSION must remove them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Catalogue;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => "snowflake.region = 1\n");
$node->start;

sub orders
{
	my (@items) = @_;
	return [] if !@items;
	my @all;
	foreach my $at (0 .. $#items)
	{
		my @rest = @items;
		my ($first) = splice @rest, $at, 1;
		push @all, map { [ $first, @$_ ] } orders(@rest);
	}
	return @all;
}

# Returns all orders in which each extension comes after the extensions that it requires.
my %requires = (map({ ("snowflake_$_" => 'snowflake') } qw(alias migrate shards)), snowflake_routing => 'snowflake_fleet');
my @names = sort 'snowflake', 'snowflake_fleet', keys %requires;
my @creations;
foreach my $order (orders(@names))
{
	my %at = map { $order->[$_] => $_ } 0 .. $#$order;
	push @creations, $order if !grep { $at{$_} < $at{ $requires{$_} } } keys %requires;
}
is(scalar(@creations), 90, 'there are 90 orders of CREATE EXTENSION');

# The second query lists objects that remain after DROP EXTENSION.
my $objects = q{SELECT 'objects ' || md5(string_agg(format('%s %s %s', e.extname, o.type, o.identity), ',' ORDER BY e.extname, o.type, o.identity COLLATE "C"))
	FROM pg_extension AS e JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e',
	pg_identify_object(d.classid, d.objid, d.objsubid) AS o WHERE e.extname ~ '^snowflake'};
my $remaining = join ' UNION ALL ', map { "SELECT 'remains $_ ' || oid FROM $_ WHERE oid >= 16384" }
  qw(pg_class pg_proc pg_namespace pg_type pg_opclass pg_event_trigger pg_extension pg_trigger pg_rewrite);

# Combines each order of CREATE EXTENSION with another order of DROP EXTENSION.
my @script = 'SET client_min_messages = error';
foreach my $number (0 .. $#creations)
{
	my $drops = $creations[ ($number * 37 + 11) % @creations ];
	push @script, map({ "CREATE EXTENSION $_" } @{ $creations[$number] }), $objects, map({ "DROP EXTENSION $_" } reverse @$drops), $remaining;
}
my %results;
$results{$_}++ foreach split /\n/, $node->safe_psql('postgres', join(";\n", @script) . ';');
my ($same) = keys %results;
is_deeply(\%results, { $same => 90 }, 'each order makes the same objects, and DROP EXTENSION leaves none');
like($same, qr/^objects /, 'the comparison includes objects');

$node->safe_psql('postgres', "CREATE EXTENSION $_ CASCADE") foreach qw(snowflake_shards snowflake_routing);
$node->safe_psql('postgres', "CREATE EXTENSION $_") foreach qw(snowflake_migrate snowflake_alias);
foreach my $name ('snowflake', 'snowflake_fleet')
{
	$node->refuses("DROP EXTENSION $name", { sqlstate => '2BP01', message => "cannot drop extension $name because other objects depend on it", detail => "extension snowflake_\\w+ depends on extension $name" },
		"$name is not dropped while another extension requires it");
}

# Dumps and restores a database with all extensions.
$node->safe_psql('postgres', <<~'SQL');
	CREATE SCHEMA template;
	CREATE TABLE template.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(0), name text);
	CALL snowflake.create_shards('template', '[0,2]');
	INSERT INTO shard_2.users (name) SELECT 'user ' || n FROM generate_series(1, 5) AS n;
	SELECT snowflake_fleet.set_server('north', 'host=north.example');
	SELECT snowflake_fleet.assign('[0,2]', 'north');
	SQL
$node->safe_psql('postgres', 'CREATE DATABASE restored');
my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, 'postgres' ], 'pg_dump');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'restored', $dump ], 'pg_restore');
foreach my $name (@names)
{
	is(Snowflake::Catalogue::differences(map { Snowflake::Catalogue::snapshot($node, $_, $name) } 'restored', 'postgres'), '', "$name: the catalogue of the restored database is the same");
}
my $rows = 'SELECT string_agg(id::text, chr(32) ORDER BY id) FROM shard_2.users';
is($node->safe_psql('restored', $rows), $node->safe_psql('postgres', $rows), 'the restored database has the same rows');
is($node->safe_psql('restored', 'SELECT shard, server FROM snowflake_fleet.map ORDER BY shard'), "0|north\n1|north\n2|north", 'the restored database has the same map');
my $newest = $node->safe_psql('restored', 'SELECT max(id) FROM shard_2.users');
cmp_ok($node->safe_psql('restored', "INSERT INTO shard_2.users (name) VALUES ('new') RETURNING id") =~ /(\d+)/ && $1, '>', $newest, 'ids of the restored database are above those of the dump');
is($node->safe_psql('restored', 'SELECT minting FROM snowflake.health()'), 't', 'the restored database mints');

done_testing();
