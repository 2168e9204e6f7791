# Tests that shard_for() uses the same hash of a key under every layout and encoding.

use strict;
use warnings FATAL => 'all';

use Digest::SHA qw(sha256_hex);
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main');
my @keys = ((map { $_ * $_ * 7919 } 1 .. 400), '', 'Ann', "M\xc3\xbcller", "\xe6\x97\xa5\xe6\x9c\xac", 'x' x 55, 'x' x 56, 'x' x 1000);
my %shards = (fleet => 256, wide => 8192, instagram => 8192, js53 => 128, '41/2+0/20' => 1, '41/16/5' => 65536, '40/24/0' => 1 << 24);
foreach my $layout (sort keys %shards)
{
	(my $database = "of_$layout") =~ tr{/+}{__};
	$node->start_with("snowflake.layout = '$layout'");
	$node->create_database($database);
	my @got = split /\n/, $node->safe_psql($database, "SELECT snowflake.shard_for(key) FROM unnest(ARRAY['${\ join \"','\", @keys}']) WITH ORDINALITY AS k (key, n) ORDER BY n");
	my @expected = map { hex(substr sha256_hex($_), 0, 8) * $shards{$layout} >> 32 } @keys;
	is("@got", "@expected", "$layout: shard_for() returns the shards that are computed in Perl");
}

# Compares the table of keys, hashes and shards in doc/routing.md with results of shard_for().
my %shard_of_key;
my $page = slurp_file("$FindBin::RealBin/../doc/routing.md");
foreach my $row ($page =~ /^(\| `[^`]*` \| `[0-9a-f]{8}` \|.*)$/mg)
{
	my (undef, $key, $hash, $of_256, $of_8192) = map { s/^[ `]+|[ `]+$//gr } split /\|/, $row;
	is(substr(sha256_hex($key), 0, 8), $hash, "routing.md: the hash of $key");
	$shard_of_key{fleet}{$key} = $of_256;
	$shard_of_key{wide}{$key} = $of_8192;
}
is(scalar keys %{ $shard_of_key{fleet} }, 8, 'routing.md: the table has eight keys');
foreach my $layout ('fleet', 'wide')
{
	$node->start_with("snowflake.layout = '$layout'");
	is($node->safe_psql("of_$layout", "SELECT snowflake.shard_for('$_')"), $shard_of_key{$layout}{$_}, "routing.md: key $_ has the shard of the table under layout $layout") foreach sort keys %{ $shard_of_key{$layout} };
}

$node->start_with("snowflake.layout = 'wide'");
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0 ENCODING '$_' LOCALE 'C'") foreach qw(latin1 euc_jp sql_ascii);
$node->safe_psql($_, 'CREATE EXTENSION snowflake') foreach qw(latin1 euc_jp sql_ascii);
my $mueller = hex(substr sha256_hex("M\xc3\xbcller"), 0, 8) * 8192 >> 32;
is($node->safe_psql('latin1', "SET client_encoding = 'UTF8'; SELECT snowflake.shard_for('M\xc3\xbcller'), octet_length('M\xc3\xbcller')"), "$mueller|6", 'the shard of a text is the same in a database with encoding latin1');
is($node->safe_psql('latin1', "SET client_encoding = 'LATIN1'; SELECT snowflake.shard_for('M\xfcller')"), $mueller, 'the shard of a text is the same if the client also uses latin1');
is($node->safe_psql('euc_jp', "SET client_encoding = 'UTF8'; SELECT snowflake.shard_for('\xe6\x97\xa5\xe6\x9c\xac'), octet_length('\xe6\x97\xa5\xe6\x9c\xac')"),
	(hex(substr sha256_hex("\xe6\x97\xa5\xe6\x9c\xac"), 0, 8) * 8192 >> 32) . '|4', 'the shard of a text is the same in a database with encoding euc_jp');
is($node->safe_psql('sql_ascii', "SELECT snowflake.shard_for('M\xc3\xbcller')"), $mueller, 'a database with encoding SQL_ASCII accepts text in UTF-8');
$node->refuses("SELECT snowflake.shard_for('M\xfcller')", { sqlstate => '22021', message => 'invalid byte sequence for encoding "UTF8"' },
	'a database with encoding SQL_ASCII refuses text that is not UTF-8', 'sql_ascii');

# shard_for() fails after a dump with another layout was restored.
$node->safe_psql('of_wide', "SELECT setval('snowflake.seal', 1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4), pg_sleep(1.1)");
$node->refuses($_, { sqlstate => '55000', message => 'the restored ids have another layout than this database' }, $_, 'of_wide')
  foreach "SELECT snowflake.shard_for('Ann')", 'SELECT snowflake.shard_for(5)', 'SELECT snowflake.shard_for(5, 200)', "SELECT snowflake.shard_for('00000000-0000-0000-0000-000000000000'::uuid)";

done_testing();
