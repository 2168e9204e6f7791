# Tests the script of decoder_sql(): on a server without the extension it reads every id as the extension does.

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
	seconds => "snowflake.layout = '28/4+18/13'\nsnowflake.tick = 1s\nsnowflake.max_databases = 2",
	tenths => "snowflake.layout = '36/10/10'\nsnowflake.tick = 100ms\nsnowflake.epoch = '1325376000000'",
	no_shards => "snowflake.layout = '41/2+0/20'",
	no_sequence => "snowflake.layout = '42/4+4/0'",
	far => "snowflake.layout = '50/3/10'");
my @time_calls = map { "snowflake.$_(at)" } qw(min_id max_id last_id_before);
foreach my $layout (sort keys %layouts)
{
	$node->start_with($layouts{$layout});
	$node->create_database($layout);
	$plain->safe_psql('postgres', "CREATE DATABASE $layout");
	my $script = $node->safe_psql($layout, 'SELECT snowflake.decoder_sql()');
	my ($status, undef, $err) = $plain->psql($layout, $script);
	is($status, 0, "$layout: the script runs") or diag($err);

	my ($bits, $last_id, $end, $tick, $epoch_ms) = split /\|/, $node->safe_psql($layout, <<~'SQL');
		SELECT time_bits + region_bits + shard_bits + sequence_bits, snowflake.last_id_before('infinity'), ends_at, tick_ms, (extract(epoch FROM epoch) * 1000)::bigint
		  FROM snowflake.layout
		SQL
	my %ids = map { $_ => 1 } 0, 1, 2, $last_id, $last_id - 1, $node->ids("SELECT snowflake.next_id(0) FROM generate_series(1, 20)", $layout);
	$ids{$_} = 1 foreach map { 1 << $_, (1 << $_) - 1 } 1 .. ($bits == 64 ? 62 : $bits - 1);
	$ids{ (int(rand 2**32) << 31 ^ int rand 2**31) & $last_id } = 1 foreach 1 .. 700;
	my $ids = join ',', keys %ids;
	my $read = <<~"SQL";
		SELECT id, snowflake.time_of(id), snowflake.region_of(id), snowflake.shard_of(id), snowflake.sequence_of(id),
		       snowflake.to_base62(id), snowflake.from_base62(snowflake.to_base62(id)),
		       snowflake.shard_for(id), snowflake.shard_for(id::text || 'ä'), snowflake.shard_for(md5(id::text)::uuid)
		  FROM unnest('{$ids}'::bigint[]) AS id ORDER BY id
		SQL
	is($plain->safe_psql($layout, $read), $node->safe_psql($layout, $read), "$layout: " . keys(%ids) . ' ids read the same');

	# Times of these ids, on their ticks and as close to them as possible.
	my $times = <<~"SQL";
		SELECT at, %s FROM unnest('{$ids}'::bigint[]) AS id, unnest(ARRAY['0', '1 us', '-1 us', '0.0005 s', '0.999 s']::interval[]) AS i,
		       LATERAL (SELECT snowflake.time_of(id) + i) AS t (at)
		 WHERE at >= to_timestamp($epoch_ms / 1000.0) AND at <= timestamptz '$end' - interval '$tick ms' ORDER BY id, i
		SQL
	my $calls = sprintf $times, join ', ', @time_calls;
	my $got = $plain->safe_psql($layout, $calls);
	is($got, $node->safe_psql($layout, $calls), "$layout: bounds are the same");
	cmp_ok(($got =~ tr/\n//), '>', 2500, "$layout: of thousands of times");
	my $edges = <<~"SQL";
		SELECT at, snowflake.last_id_before(at), snowflake.created_within(0, at, 'infinity'), snowflake.created_within($last_id, '-infinity', at), snowflake.created_within(NULL, at, at)
		  FROM unnest(ARRAY['-infinity', 'infinity', '1960-01-01', '4714-11-24 00:00:00+00 BC', '294276-12-31 23:59:59.999999+00', '$end', '$end'::timestamptz - '1 us'::interval, '$end'::timestamptz + '1 us'::interval,
		                    to_timestamp($epoch_ms / 1000.0), to_timestamp($epoch_ms / 1000.0) + '1 us'::interval]::timestamptz[]) AS at
		SQL
	is($plain->safe_psql($layout, $edges), $node->safe_psql($layout, $edges), "$layout: so are those at its ends");

	# Invalid ids are NULL here; the extension raises an error.
	my @foreign = ('-1', '-9223372036854775808', $bits < 63 ? $last_id + 1 : ());
	my $nulls = join ', ', map { my $id = $_; map { "snowflake.$_($id)" } qw(time_of region_of shard_of sequence_of) } @foreign;
	like($plain->safe_psql($layout, "SELECT num_nonnulls($nulls), num_nonnulls(snowflake.to_base62(-1), snowflake.min_id('1960-01-01'), snowflake.max_id('infinity'), snowflake.min_id('$end'), snowflake.max_id('$end'))"),
		qr/^0\|0$/, "$layout: what is no id is null");
}
is($plain->safe_psql('fleet', "SELECT count(*) FROM unnest(ARRAY['', '0', '00000000000x', 'AzL8n0Y58m8', 'zzzzzzzzzzz', '0000000000-', '0000000000é', E'0000000000\\n', '00000000000 ']) AS t WHERE snowflake.from_base62(t) IS NOT NULL"),
	'0', 'what is no base62 is null');
is($plain->safe_psql('fleet', "SELECT snowflake.from_base62('AzL8n0Y58m7')"), '9223372036854775807', 'the greatest is read');

# Under any time zone and style of the printing session, and any search_path of the reading one.
$node->start_with('');
is($node->safe_psql('fleet', "SET timezone = 'Asia/Tokyo'; SET datestyle = 'German'; SELECT md5(snowflake.decoder_sql())"), $node->safe_psql('fleet', 'SELECT md5(snowflake.decoder_sql())'),
	'the session that asks has no say');
is($plain->safe_psql('fleet', "CREATE SCHEMA odd; CREATE FUNCTION odd.strpos(text, text) RETURNS integer LANGUAGE sql AS 'SELECT 1'; SET search_path = odd, pg_catalog; SET timezone = 'Asia/Tokyo';
	SELECT snowflake.from_base62('0augYQesYgy'), snowflake.time_of(499712025023222784) = '2026-11-21 11:18:35.483+00'"), '499712025023222784|t', 'nor has the one that reads');

# A range of time is a range of the primary key.
$plain->safe_psql('fleet', 'CREATE TABLE photos (id bigint PRIMARY KEY)');
like($plain->safe_psql('fleet', "SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN SELECT * FROM photos WHERE snowflake.created_within(id, '2026-01-01', now())"),
	qr/Index Cond: \(\(id > '?\d+'?(?:::bigint)?\) AND \(id <= /, 'created_within() uses an index');

# Another name for the schema; a reader without privileges; no object is replaced.
my $script = $node->safe_psql('fleet', q{SELECT snowflake.decoder_sql('Ids "of" us')});
$plain->safe_psql('postgres', $script);
$plain->safe_psql('postgres', 'CREATE ROLE reader');
is($plain->safe_psql('postgres', q{SET ROLE reader; SELECT "Ids ""of"" us".shard_of(499712025023222784)}), '5', 'a schema of another name, open to all');
$plain->refuses($script, { sqlstate => '42P06', message => 'schema "Ids "of" us" already exists' }, 'run again, it replaces nothing');
is($plain->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE pronamespace = to_regnamespace('"Ids ""of"" us"') AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'sql')}), '0', 'all of it is plain SQL');
$node->refuses("SELECT snowflake.decoder_sql('$_')", { sqlstate => '3F000', message => qq{there can be no schema "$_"}, detail => 'begin with "pg_"', hint => 'Pass another name' }, "no schema '$_'", 'fleet')
	foreach '', 'pg_ids', 'information_schema';
$node->refuses('SELECT snowflake.decoder_sql(NULL)', { sqlstate => '22004', message => 'decoder_sql\(\) takes no null' }, 'no null', 'fleet');
$node->start_with("snowflake.layout = 'wide'");
$node->refuses('SELECT snowflake.decoder_sql()', { sqlstate => '55000', message => 'the settings contradict the layout' }, 'settings that contradict the seal print nothing', 'fleet');

done_testing();
