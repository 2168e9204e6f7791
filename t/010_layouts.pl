# Tests minting and decoding under layouts other than the default, and the settings for shards and sequences.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main');

sub start_with
{
	my ($settings, $database) = @_;
	$node->start_with("snowflake.max_lead = '60s'\n$settings", 'immediate');
	$node->create_database($database), $node->add_tools($database)
	  if $node->safe_psql('postgres', "SELECT count(*) FROM pg_database WHERE datname = '$database'") eq '0';
	return;
}

# Compares the result of decode() for each id with values that are computed in Perl.
sub decodes
{
	my ($database, $layout, @ids) = @_;
	my ($bits, $tick) = @$layout{qw(bits tick)};
	my ($time_bits, $region_bits, $shard_bits, $sequence_bits) = @$bits;
	my @wrong;
	my @rows = $node->ids(<<~"SQL", $database);
		SELECT id, (extract(epoch FROM d.created_at) * 1000)::bigint, d.region, d.shard,
		       d.sequence, abs(extract(epoch FROM now() - d.created_at)) < 120,
		       id = snowflake.make_id(d.created_at, d.shard, d.sequence, d.region)
		  FROM unnest(ARRAY[${\ join ',', @ids}]) AS id, snowflake.decode(id) AS d
		SQL
	foreach (@rows)
	{
		my ($id, @fields) = split /\|/;
		my @expected = (
			1735689600000 + ($id >> $region_bits + $shard_bits + $sequence_bits) * $tick,
			$layout->{region}, $id >> $sequence_bits & (1 << $shard_bits) - 1,
			$id & (1 << $sequence_bits) - 1, 't', 't');
		push @wrong, "$id: @fields instead of @expected" if "@fields" ne "@expected";
	}
	push @wrong, 'no ids' if !@rows;
	is("@wrong", '', "$database: ids decode to what their bits say");
	return;
}

my %layouts = (
	twitter => { settings => "snowflake.layout = 'twitter'\nsnowflake.region = 31", region => 31, bits => [ 41, 5, 5, 12 ], tick => 1 },
	wide => { settings => "snowflake.layout = 'wide'\nsnowflake.region = 30", region => 30, bits => [ 41, 5, 13, 5 ], tick => 1 },
	js53 => { settings => "snowflake.layout = 'js53'", region => 0, bits => [ 38, 0, 7, 8 ], tick => 10 },
	instagram => { settings => "snowflake.layout = 'instagram'", region => 0, bits => [ 41, 0, 13, 10 ], tick => 1 },
	regions => { settings => "snowflake.layout = '41/3+10/10'\nsnowflake.region = 5", region => 5, bits => [ 41, 3, 10, 10 ], tick => 1 },
	seconds => {
		settings => "snowflake.layout = '28/22/13'\nsnowflake.tick = '1s'",
		region => 0,
		bits => [ 28, 0, 22, 13 ],
		tick => 1000 });

foreach my $database (sort keys %layouts)
{
	my $layout = $layouts{$database};
	my ($time_bits, $region_bits, $shard_bits, $sequence_bits) = @{ $layout->{bits} };
	my $last = (1 << $shard_bits) - 1;
	my $ledger = Snowflake::Ledger->new(sequence_bits => $sequence_bits, shard_bits => $shard_bits);

	start_with($layout->{settings}, $database);
	my $mint = <<~"SQL";
		SELECT snowflake.next_id($last) FROM generate_series(1, 300);
		SELECT snowflake.next_id(g * 7 % $last) FROM generate_series(1, 300) g;
		SELECT unnest(snowflake.next_ids(1, 2000));
		SQL
	my @ids = $node->ids($mint, $database);
	decodes($database, $layout, @ids[ 0 .. 3, 298 .. 305, 596 .. 602, 2599 ]);
	$ledger->record('first', @ids);
	is($node->safe_psql($database, 'SELECT sum(ids), sum(batches) FROM snowflake.shard_stats'), '2600|1',
		"$database: shard_stats counts all ids of the transaction");
	$node->refuses(
		"SELECT snowflake.next_id(${\ ($last + 1)})",
		{
			sqlstate => '22023',
			message => 'shard ' . ($last + 1) . ' is out of range',
			detail => "has shards 0 to $last",
			hint => 'Pass a shard of the layout'
		},
		"$database: the shard after the last", $database);
	is($node->safe_psql($database, 'SELECT time_bits, region_bits, shard_bits, sequence_bits, tick_ms, shards, regions FROM snowflake.layout'),
		join('|', @{ $layout->{bits} }, $layout->{tick}, $last + 1, 1 << $region_bits), "$database: the view layout shows the bits, shards and regions");

	my %shards = map { ($_ >> $sequence_bits & $last) => 1 } @ids;
	my $bits = $time_bits + $region_bits + $shard_bits + $sequence_bits;
	$node->safe_psql($database, "CREATE TABLE minted AS SELECT unnest(ARRAY[${\ join ',', @ids}]) AS id");
	is($node->safe_psql($database, "SELECT count(*), sum(ids), count(finding), count(*) FILTER (WHERE minted_by = 'this server' AND region = $layout->{region}) FROM snowflake.audit('minted', 'id')"),
		join('|', scalar keys %shards, 2600, 0, scalar keys %shards), "$database: audit() has no finding for minted ids");
	if ($bits < 63)
	{
		$node->safe_psql($database, 'INSERT INTO minted VALUES (' . (1 << $bits) . '), (' . ((1 << $bits) + 5) . ')');
		like($node->safe_psql($database, "SELECT region, ids, finding FROM snowflake.audit('minted', 'id') WHERE finding IS NOT NULL"),
			qr/^\|2\|the number is greater than /, "$database: audit() reports numbers beyond the layout");
	}

	# Functions that decode ids must refuse numbers that are not ids of the layout.
	my $greatest = $bits >= 63 ? '9223372036854775807' : (1 << $bits) - 1;
	foreach my $foreign ('-1', $bits >= 63 ? '(-9223372036854775808)' : 1 << $bits)
	{
		$node->refuses(
			"SELECT snowflake.$_($foreign)",
			{
				sqlstate => '22003',
				message => ($foreign =~ /(-?\d+)/)[0] . ' is not an id of this layout',
				detail => "are numbers from 0 to $greatest",
				hint => 'Pass an id that was minted with this layout'
			},
			"$database: $_($foreign)", $database)
		  foreach qw(time_of shard_of region_of sequence_of decode observe);
	}

	my @writers = map { $node->start_writer($mint x 3, $database) } 1 .. 2;
	foreach my $writer (@writers)
	{
		my $end = $node->finish_writer($writer);
		is($end->{errors}, '', "$database: $writer->{name} minted without an error");
		$ledger->record($writer->{name}, @{ $end->{ids} });
	}
	$node->clock->step(-5);
	start_with($layout->{settings}, $database);
	$ledger->new_server_run;
	$ledger->record('second', $node->ids($mint, $database));
	$ledger->check(20_000, "$database: ids are unique over two server runs");
	next if $database ne 'js53';
	cmp_ok($ledger->highest($last), '<', 2**53, 'js53: ids are below 2^53, and so exact in JavaScript');
	is($node->safe_psql($database, 'SELECT possible, contradiction FROM snowflake.explain_id(9007199254740992)'),
		'f|the number is greater than 9007199254740991, the last id of layout 38/7/8', 'js53: explain_id() explains that 2^53 is beyond the layout');
}

# Shared memory has 65,536 counters for the 4 million shards of the layout, so shards share counters.
{
	my $ledger = Snowflake::Ledger->new(sequence_bits => 13, shard_bits => 22);
	start_with($layouts{seconds}{settings}, 'seconds');
	my $mint = <<~'SQL' x 20;
		SELECT snowflake.next_id(5 + 65536 * (g % 64)) FROM generate_series(1, 200) g;
		SELECT unnest(snowflake.next_ids(5 + 65536, 100));
		SELECT unnest(snowflake.next_ids(5, 100));
		SQL
	my @writers = map { $node->start_writer($mint, 'seconds') } 1 .. 3;
	foreach my $writer (@writers)
	{
		my $end = $node->finish_writer($writer);
		is($end->{errors}, '', "shared counters: $writer->{name} minted without an error");
		$ledger->record($writer->{name}, @{ $end->{ids} });
	}
	$ledger->check(24_000, 'ids are unique if 64 shards share a counter');
	is($node->safe_psql('seconds', 'SELECT sum(ids) FROM snowflake.shard_stats WHERE shard % 65536 = 5'),
		'24000', 'shard_stats counts the ids of all shards that share a counter');
}

# Sets the clock to the true time, because the next tests compute ids from the present time.
$node->clock->set(0);
start_with("snowflake.layout = '41/3+10/10'\nsnowflake.owned_shards = '0-9, 500'", 'regions');
is($node->safe_psql('regions', 'SELECT count(snowflake.next_id(s)) FROM unnest(ARRAY[0, 9, 500]) s'), '3', 'the server mints in shards that it owns');
foreach my $shard (10, 499, 501, 1023)
{
	my %expected = (
		sqlstate => '55000',
		message => "shard $shard is not owned by this server",
		detail => '"snowflake.owned_shards" is 0-9,500',
		hint => 'Insert on the server that owns the shard');
	$node->refuses("SELECT snowflake.next_id($shard)", \%expected, "shard $shard is not owned", 'regions');
	$node->refuses("SELECT snowflake.next_ids($shard, 2)", \%expected, "shard $shard is not owned, for a batch", 'regions');
}
is($node->safe_psql('regions', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 501, 0))'), '501', 'an id of a shard that the server does not own can be decoded');

$node->refuses('SELECT snowflake.next_id()',
	{ sqlstate => '55000', message => '"snowflake.default_shard" is not set', detail => 'without an argument', hint => 'Set "snowflake.default_shard"' },
	'next_id() fails if snowflake.default_shard is not set', 'regions');
is($node->safe_psql('regions', 'SET snowflake.default_shard = 7; SELECT snowflake.shard_of(snowflake.next_id())'), '7', 'next_id() mints in the default shard');
$node->refuses('SET snowflake.default_shard = 10; SELECT snowflake.next_id()',
	{ sqlstate => '55000', message => 'shard 10 is not owned' }, 'a default shard of another server is refused', 'regions');
$node->refuses('SET snowflake.default_shard = 1024; SELECT snowflake.next_id()',
	{ sqlstate => '22023', message => 'shard 1024 is out of range', detail => 'has shards 0 to 1023' }, 'a default shard that the layout does not have is refused', 'regions');

# Tests the sequence numbers in ids of a shard that mints at most one id per time unit (tick).
my @slowly = (
	"SELECT snowflake.next_id(3) FROM (SELECT pg_sleep(0.003) FROM generate_series(1, 60) OFFSET 0) s", 'regions');
is(scalar(grep { $_ & 1023 } $node->ids(@slowly)), 0, 'if each id has its own tick, sequence numbers are 0');
$node->reconfigure('snowflake.sequence_spread' => 8);
my ($before, @spread) = map { $_ & 1023 } $node->ids(@slowly);
my @unexpected = grep { my $is_next = $_ == ($before + 1) % 8; $before = $_; !$is_next } @spread;
is("@unexpected", '', 'with sequence_spread = 8, if each id has its own tick, sequence numbers cycle from 0 to 7');
($before, @spread) = map { $_ & 1023 } $node->ids(
	'SELECT snowflake.next_id(3) FROM (SELECT pg_sleep(0.003), snowflake.settled_before() FROM generate_series(1, 60) OFFSET 0) s', 'regions');
@unexpected = grep { my $is_next = $_ == ($before + 1) % 8; $before = $_; !$is_next } @spread;
is("@unexpected", '', 'sequence numbers still cycle from 0 to 7 if settled_before() is called before each id');

done_testing();
