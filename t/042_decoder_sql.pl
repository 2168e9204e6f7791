# Tests the SQL script that decoder_sql() prints to decode ids without the extension. The functions of decoder_sql()
# must return the same results as the functions of the extension.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main');
my $plain = Snowflake::Node->create('plain', conf => "shared_preload_libraries = ''\n");
$plain->start;

my %layouts = (
	fleet => '',
	wide => "snowflake.layout = 'wide'",
	js53 => "snowflake.layout = 'js53'\nsnowflake.epoch = '2012-02-29 05:30:00.250+05:30'",
	seconds => "snowflake.layout = '28/4+18/13'\nsnowflake.tick = 1s",
	tenths => "snowflake.layout = '36/10/10'\nsnowflake.tick = 100ms\nsnowflake.epoch = '1325376000000'",
	no_shards => "snowflake.layout = '41/2+0/20'",
	no_sequence => "snowflake.layout = '42/4+4/0'",
	far => "snowflake.layout = '50/3/10'");
my @time_calls = map { "snowflake.$_(at)" } qw(min_id max_id last_id_before);
foreach my $layout (sort keys %layouts)
{
	$node->start_with($layouts{$layout});
	$node->create_database($layout);
	$node->safe_psql($layout, 'CREATE EXTENSION snowflake_migrate');
	$node->add_text_forms($layout);
	$plain->safe_psql('postgres', "CREATE DATABASE $layout");
	my $script = $node->safe_psql($layout, 'SELECT snowflake.decoder_sql()');
	my ($status, undef, $err) = $plain->psql($layout, $script);
	is($status, 0, "$layout: the script runs without an error") or diag($err);

	my ($bits, $last_id, $end, $tick, $epoch_ms, $shards) = split /\|/, $node->safe_psql($layout, <<~'SQL');
		SELECT time_bits + region_bits + shard_bits + sequence_bits, snowflake.last_id_before('infinity'), ends_at, tick_ms, (extract(epoch FROM epoch) * 1000)::bigint, greatest(1, shards * 2 / 3)
		  FROM snowflake.layout
		SQL
	my %ids = map { $_ => 1 } 0, 1, 2, $last_id, $last_id - 1, $node->ids("SELECT snowflake.next_id(0) FROM generate_series(1, 20)", $layout);
	$ids{$_} = 1 foreach map { 1 << $_, (1 << $_) - 1 } 1 .. ($bits == 64 ? 62 : $bits - 1);
	$ids{ (int(rand 2**32) << 31 ^ int rand 2**31) & $last_id } = 1 foreach 1 .. 700;
	my $ids = join ',', keys %ids;
	my $read = <<~"SQL";
		SELECT id, snowflake.time_of(id), snowflake.region_of(id), snowflake.shard_of(id), snowflake.sequence_of(id),
		       snowflake.to_base62(id), snowflake.from_base62(snowflake.to_base62(id)),
		       snowflake.shard_for(id), snowflake.shard_for(id::text || 'ä'), snowflake.shard_for(md5(id::text)::uuid),
		       snowflake.shard_for(id, shards), snowflake.shard_for(id::text, shards), snowflake.shard_for(md5(id::text)::uuid, shards)
		  FROM unnest('{$ids}'::bigint[]) AS id, CAST($shards AS integer) AS shards ORDER BY id
		SQL
	my $got;
	is($plain->safe_psql($layout, $read), $node->safe_psql($layout, $read), "$layout: " . keys(%ids) . ' ids decode as in the extension');

	# Decodes text forms of ids, with lower-case and upper-case letters, and with one wrong symbol.
	my $texts = $node->safe_psql($layout, <<~"SQL");
		SELECT string_agg(format('(%s, %L, %L, %L::uuid, %L)', id, snowflake.to_base32(id), snowflake.to_base32(id, true), snowflake.to_uuid(id), snowflake.to_ulid(id)), ', ')
		  FROM unnest('{$ids}'::bigint[]) AS id WHERE snowflake.time_of(id) < '10889-08-02 00:00:00+00'
		SQL
	my $decode = <<~"SQL";
		SELECT id, d.*, snowflake.from_base32(base32) = id, snowflake.from_base32(translate(lower(checked), '01', 'ol') || '--', true) = id, snowflake.from_uuid(uuid) = id, snowflake.from_ulid('-' || translate(lower(ulid), '01', 'oi')) = id
		  FROM (VALUES $texts) AS v (id, base32, checked, uuid, ulid), snowflake.decode(id) AS d ORDER BY id
		SQL
	$got = $plain->safe_psql($layout, $decode);
	is($got, $node->safe_psql($layout, $decode), "$layout: texts of ids decode as in the extension");
	is(scalar(grep { !/(\|t){4}$/ } split /\n/, $got), 0, "$layout: each text decodes to its id");
	is($plain->safe_psql($layout, <<~"SQL"), '0|0|0|0|0', "$layout: a text that is not of an id decodes to NULL");
		SELECT count(snowflake.from_base32(overlay(checked placing substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~\$=U', n + 1, 1) FROM 14), true)) - count(DISTINCT id), count(snowflake.from_base32(checked)) + count(snowflake.from_base32(base32, true)),
		       count(snowflake.from_base32(overlay(base32 placing substr('89AZU?', n % 6 + 1, 1) FROM 1))) + count(snowflake.from_base32(overlay(base32 placing substr('U?*\$=~', n % 6 + 1, 1) FROM 13))),
		       count(snowflake.from_uuid(overlay(uuid::text placing translate(substr(uuid::text, place, 1), '0123456789abcdef', '123456789abcdef0') FROM place)::uuid)),
		       count(snowflake.from_ulid(overlay(ulid placing '8' FROM 1))) + count(snowflake.from_ulid(left(ulid, 25)))
		  FROM (SELECT * FROM (VALUES $texts) AS t (id, base32, checked, uuid, ulid) LIMIT 20) AS v, generate_series(0, 36) AS n, CAST((ARRAY[1,2,3,4,5,6,7,8,10,11,12,13,15,16,17,18,20,21,22,23,25,26,27,28,29,30,31,32,33,34,35,36])[n % 32 + 1] AS integer) AS place
		SQL

	# Compares the functions min_id(), max_id() and last_id_before() of decoder_sql() with the functions of the extension.
	# The times are less than a second from the time of an id.
	my $times = <<~"SQL";
		SELECT at, %s FROM unnest('{$ids}'::bigint[]) AS id, unnest(ARRAY['0', '1 us', '-1 us', '0.0005 s', '0.999 s']::interval[]) AS i,
		       LATERAL (SELECT snowflake.time_of(id) + i) AS t (at)
		 WHERE at >= to_timestamp($epoch_ms / 1000.0) AND at <= timestamptz '$end' - interval '$tick ms' ORDER BY id, i
		SQL
	my $calls = sprintf $times, join ', ', @time_calls;
	$got = $plain->safe_psql($layout, $calls);
	is($got, $node->safe_psql($layout, $calls), "$layout: min_id(), max_id() and last_id_before() return the same as in the extension");
	cmp_ok(($got =~ tr/\n//), '>', 2500, "$layout: bounds of more than 2500 times were compared");
	my $edges = <<~"SQL";
		SELECT at, snowflake.last_id_before(at), snowflake.created_within(0, at, 'infinity'), snowflake.created_within($last_id, '-infinity', at), snowflake.created_within(NULL, at, at)
		  FROM unnest(ARRAY['-infinity', 'infinity', '1960-01-01', '4714-11-24 00:00:00+00 BC', '294276-12-31 23:59:59.999999+00', '$end', '$end'::timestamptz - '1 us'::interval, '$end'::timestamptz + '1 us'::interval,
		                    to_timestamp($epoch_ms / 1000.0), to_timestamp($epoch_ms / 1000.0) + '1 us'::interval]::timestamptz[]) AS at
		SQL
	is($plain->safe_psql($layout, $edges), $node->safe_psql($layout, $edges), "$layout: bounds at the ends of the layout are the same as in the extension");

	# For an invalid id the functions made by decoder_sql() return NULL, but the functions of the extension raise an
	# error.
	my @foreign = ('-1', '-9223372036854775808', $bits < 63 ? $last_id + 1 : ());
	my $nulls = join ', ', map { my $id = $_; map { "snowflake.$_($id)" } qw(time_of region_of shard_of sequence_of) } @foreign;
	like($plain->safe_psql($layout, "SELECT num_nonnulls($nulls), num_nonnulls(snowflake.to_base62(-1), snowflake.min_id('1960-01-01'), snowflake.max_id('infinity'), snowflake.min_id('$end'), snowflake.max_id('$end'))"),
		qr/^0\|0$/, "$layout: functions return NULL for numbers and times outside the layout");
}
is($plain->safe_psql('fleet', "SELECT count(*) FROM unnest(ARRAY['', '0', '00000000000x', 'AzL8n0Y58m8', 'zzzzzzzzzzz', '0000000000-', '0000000000é', E'0000000000\\n', '00000000000 ']) AS t WHERE snowflake.from_base62(t) IS NOT NULL"),
	'0', 'from_base62() returns NULL for an invalid text');
is($plain->safe_psql('fleet', "SELECT num_nonnulls(snowflake.shard_for(1, 0), snowflake.shard_for(1, 257), snowflake.shard_for('1', -1))"), '0', 'shard_for() returns NULL for an invalid number of shards');
is($plain->safe_psql('fleet', "SELECT snowflake.from_base62('AzL8n0Y58m7')"), '9223372036854775807', 'from_base62() decodes the greatest bigint');

# The settings of the session, such as search_path, must not change the result of decoder_sql() and of its functions.
$node->start_with('');
is($node->safe_psql('fleet', "SET timezone = 'Asia/Tokyo'; SET datestyle = 'German'; SELECT md5(snowflake.decoder_sql())"), $node->safe_psql('fleet', 'SELECT md5(snowflake.decoder_sql())'),
	'decoder_sql() prints the same under another time zone and date style');
is($plain->safe_psql('fleet', "CREATE SCHEMA odd; CREATE FUNCTION odd.strpos(text, text) RETURNS integer LANGUAGE sql AS 'SELECT 1'; SET search_path = odd, pg_catalog; SET timezone = 'Asia/Tokyo';
	SELECT snowflake.from_base62('0augYQesYgy'), snowflake.time_of(499712025023222784) = '2026-11-21 11:18:35.483+00'"), '499712025023222784|t', 'the functions decode correctly under another search_path and time zone');

$plain->safe_psql('fleet', 'CREATE TABLE photos (id bigint PRIMARY KEY)');
like($plain->safe_psql('fleet', "SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN SELECT * FROM photos WHERE snowflake.created_within(id, '2026-01-01', now())"),
	qr/Index Cond: \(\(id > '?\d+'?(?:::bigint)?\) AND \(id <= /, 'created_within() uses the index of the primary key');

my $script = $node->safe_psql('fleet', q{SELECT snowflake.decoder_sql('Ids "of" us')});
$plain->safe_psql('postgres', $script);
$plain->safe_psql('postgres', 'CREATE ROLE reader');
is($plain->safe_psql('postgres', q{SET ROLE reader; SELECT "Ids ""of"" us".shard_of(499712025023222784)}), '5', 'every role can use the functions in a schema of another name');
$plain->refuses($script, { sqlstate => '42P06', message => 'schema "Ids "of" us" already exists' }, 'the script fails if the schema exists already');
is($plain->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE pronamespace = to_regnamespace('"Ids ""of"" us"') AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'sql')}), '0', 'all functions of the script are in language sql');
$node->refuses("SELECT snowflake.decoder_sql('$_')", { sqlstate => '3F000', message => qq{schema name "$_" is not allowed}, detail => 'begin with "pg_"', hint => 'Pass another schema name' }, "decoder_sql() refuses the schema name '$_'", 'fleet')
	foreach '', 'pg_ids', 'information_schema';
$node->refuses('SELECT snowflake.decoder_sql(NULL)', { sqlstate => '22004', message => 'decoder_sql\(\) does not accept null arguments' }, 'decoder_sql() refuses NULL', 'fleet');
$node->safe_psql('fleet', "SELECT setval('snowflake.seal', 1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4), pg_sleep(1.1)");
$node->refuses('SELECT snowflake.decoder_sql()', { sqlstate => '55000', message => 'the restored ids have another layout than this database' }, 'decoder_sql() fails in a database with another seal', 'fleet');

done_testing();
