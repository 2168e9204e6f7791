# Compares text forms, UUIDs and ULIDs of ids with values that are computed in Perl, under every preset and other
# layouts. Tests functions that convert ids to text on a server that does not preload the library.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main');

my @base62 = ('0' .. '9', 'A' .. 'Z', 'a' .. 'z');
my @base32 = ('0' .. '9', grep { !/[ILOU]/ } 'A' .. 'Z');

sub digits
{
	my ($number, $width, @symbols) = @_;
	my $text = '';
	for (1 .. $width)
	{
		my $digit = $number % @symbols;
		$text = $symbols[$digit] . $text;
		$number = ($number - $digit) / @symbols;
	}
	return $text;
}

sub product { use integer; return $_[0] * $_[1]; }

# Returns the UUID of an id as text of 128 bits, composed field by field as in RFC 9562.
sub uuid_of
{
	my ($id, $below, $tick, $epoch_ms) = @_;
	my $ms = $epoch_ms + ($id >> $below) * $tick;
	my $rest = $id & (1 << $below) - 1;
	my $check = product($id, 11400714819323198485) >> 34 & (1 << 30) - 1;
	my $bits = sprintf '%048b%s%012b%s%032b%030b', $ms, '0111', $rest >> 32, '10', $rest & 0xffffffff, $check;
	return $bits;
}

my %layouts = (
	fleet => [ "snowflake.layout = 'fleet'", 41, 64, 1 ],
	instagram => [ "snowflake.layout = 'instagram'", 41, 64, 1 ],
	twitter => [ "snowflake.layout = 'twitter'", 41, 63, 1 ],
	js53 => [ "snowflake.layout = 'js53'", 38, 53, 10 ],
	regions => [ "snowflake.layout = '41/5+8/10'", 41, 64, 1 ],
	no_shards => [ "snowflake.layout = '41/0/22'", 41, 63, 1 ],
	tenths => [ "snowflake.layout = '36/10/10'\nsnowflake.tick = 100ms", 36, 56, 100 ],
	seconds => [ "snowflake.layout = '28/22/13'\nsnowflake.tick = 1s", 28, 63, 1000 ],
	much_below => [ "snowflake.layout = '28/16/20'\nsnowflake.tick = 1s", 28, 64, 1000 ],
	nothing_below => [ "snowflake.layout = '42/0/0'", 42, 42, 1 ],
	far => [ "snowflake.layout = '50/3/10'", 50, 63, 1 ]);

foreach my $database (sort keys %layouts)
{
	my ($settings, $time_bits, $bits, $tick) = @{ $layouts{$database} };
	$node->start_with($settings);
	$node->create_database($database);
	$node->add_text_forms($database);
	my $below = $bits - $time_bits;
	my $last = $bits >= 63 ? ~0 >> 1 : (1 << $bits) - 1;
	my $epoch = 1735689600000;

	# The 48 bits for the time in a UUID limit which ids can be converted to a UUID.
	my $end = int(((1 << 48) - $epoch) / $tick);
	my $last_uuid = $end < $last >> $below ? ($end << $below) - 1 : $last;
	my @ids = (0, 1, 2, (1 << $below) - 1, 1 << $below, (1 << $below) + 1, $last_uuid, $last_uuid - 1);
	push @ids, map { 1 << $_, (1 << $_) - 1 } 1 .. $bits - ($bits == 64 ? 2 : 1);
	push @ids, map { (int(rand 2**32) << 31 ^ int rand 2**31) & $last } 1 .. 300;
	@ids = grep { $_ >= 0 && $_ <= $last_uuid } @ids;

	my (@wrong, $compared);
	my @rows = $node->ids(<<~"SQL", $database);
		SELECT id, snowflake.to_base62(id), snowflake.to_base32(id), snowflake.to_uuid(id), snowflake.to_ulid(id),
		       id = ALL (ARRAY[snowflake.from_base62(snowflake.to_base62(id)), snowflake.from_base32(snowflake.to_base32(id)),
		                       snowflake.from_uuid(snowflake.to_uuid(id)), snowflake.from_ulid(snowflake.to_ulid(id))])
		  FROM unnest(ARRAY[${\ join ',', @ids}]::bigint[]) id
		SQL
	foreach (@rows)
	{
		my ($id, @got) = split /\|/;
		my $uuid = uuid_of($id, $below, $tick, $epoch);
		my $hex = join '', map { sprintf '%04x', oct "0b$_" } $uuid =~ /(.{16})/g;
		my @expected = (
			digits($id, 11, @base62), digits($id, 13, @base32), join('-', $hex =~ /(.{8})(.{4})(.{4})(.{4})(.{12})/),
			join('', map { $base32[ oct "0b$_" ] } "00$uuid" =~ /(.{5})/g), 't');
		push @wrong, "$id: @got instead of @expected" if "@got" ne "@expected";
		++$compared;
	}
	is(join("\n", @wrong), '', "$database: all forms of the ids equal those computed in Perl");
	cmp_ok($compared, '>=', 100, "$database: $compared ids were compared");
	is($node->safe_psql($database, <<~"SQL"), 't|t', "$database: UUIDs and ULIDs sort in the order of the ids");
		SELECT array_agg(id ORDER BY snowflake.to_uuid(id)) = array_agg(id ORDER BY id),
		       array_agg(id ORDER BY snowflake.to_ulid(id) COLLATE "C") = array_agg(id ORDER BY id)
		  FROM (SELECT DISTINCT unnest(ARRAY[${\ join ',', @ids}]::bigint[]) AS id) s
		SQL

	foreach my $foreign ('-1', $last < ~0 >> 1 ? $last + 1 : ())
	{
		$node->refuses("SELECT snowflake.$_($foreign)", { sqlstate => '22003', message => "$foreign is not an id of this layout" },
			"$database: $_() refuses $foreign", $database)
		  foreach qw(to_uuid to_ulid);
	}
	if ($last_uuid < $last)
	{
		$node->refuses(
			"SELECT snowflake.$_(${\ ($last_uuid + 1)})",
			{
				sqlstate => '22003',
				message => 'id ' . ($last_uuid + 1) . ' cannot be represented as a UUID',
				detail => 'The id has the time 10889-08-02 05:31:50.656\+00\. The latest time that fits into a UUID is before 10889-08-02 05:31:50.656\+00',
				hint => 'text form'
			},
			"$database: $_() refuses an id whose time does not fit a UUID", $database)
		  foreach qw(to_uuid to_ulid);
	}
}

# Sorts base32 texts and ULIDs under the collations that doc/outside.md names. Some collations treat a pair of letters
# as one letter, or order the alphabet differently.
my $page = PostgreSQL::Test::Utils::slurp_file("$FindBin::RealBin/../doc/outside.md");
my @sorted = qw(und en de fr es it nl pt sv fi);
my @unsorted = qw(et lt lv az cs sk hr hu da nb nn cy sq);
my ($good, $bad) = $page =~ /ICU\s+collations\s+(`und`.*?)\.\s+About\s+thirty\s+other\s+ICU\s+collations,\s+such\s+as\s+(`et`.*?),\s+sort/s;
my %tested = (map({ $_ => 'sorted' } @sorted), map { $_ => 'unsorted' } @unsorted);
is(join(' ', map { $tested{$_} } "$good $bad" =~ /`(\w+)`/g), 'sorted sorted sorted sorted sorted unsorted unsorted unsorted', 'the collations of the page are tested');
is($node->safe_psql('twitter', q{SELECT count(*) > 0 FROM pg_collation WHERE collprovider = 'i'}), 't', 'the server has ICU');
$node->start_with($layouts{twitter}[0]);
$node->safe_psql('twitter', <<~'SQL');
	CREATE TABLE texts AS
	  SELECT id, snowflake.to_base32(id) AS base32, snowflake.to_ulid(id) AS ulid
	    FROM (SELECT DISTINCT (((i::bigint << 5 | j) << 5 | k) << 20) AS id
	            FROM generate_series(0, 31) i, generate_series(0, 31) j, unnest(ARRAY[0, 7, 16, 17, 24, 29, 31]) k) s
	SQL
sub is_sorted
{
	my ($text, $collation) = @_;
	return $node->safe_psql('twitter',
		qq{SELECT count(*) = 0 FROM (SELECT id, lag(id) OVER (ORDER BY $text COLLATE "$collation") AS before FROM texts) s WHERE id < before});
}
foreach my $text (qw(base32 ulid))
{
	is(is_sorted($text, $_), 't', "$text sorts in the order of the ids under collation $_") foreach 'C', map { "$_-x-icu" } @sorted;
}
is(is_sorted('base32', "$_-x-icu"), 'f', "base32 does not sort in the order of the ids under collation $_-x-icu") foreach @unsorted;

$node->start_with("snowflake.layout = 'instagram'");
my @uuids = $node->ids('SELECT snowflake.to_uuid(snowflake.next_id(5)) FROM generate_series(1, 100)', 'instagram');
my $tries = sub {
	my ($database) = @_;
	return $node->safe_psql($database, <<~"SQL");
		CREATE FUNCTION outcome_of(uuid uuid) RETURNS text LANGUAGE plpgsql AS \$\$
		BEGIN
		  PERFORM snowflake.from_uuid(uuid);
		  RETURN 'an id';
		EXCEPTION WHEN invalid_parameter_value THEN
		  RETURN SQLSTATE;
		END \$\$;
		SELECT string_agg(DISTINCT outcome_of(uuid), ', ') FROM unnest(ARRAY['${\ join "','", @uuids}']::uuid[]) uuid
		SQL
};
is($tries->('instagram'), 'an id', 'from_uuid() returns the id of a UUID of the same layout');
$node->start_with($layouts{twitter}[0]);
is($tries->('twitter'), '22023', 'from_uuid() refuses a UUID of another layout');
$node->start_with("snowflake.layout = 'instagram'\nsnowflake.epoch = '2025-01-02'");
$node->create_database('later');
$node->add_text_forms('later');
is($tries->('later'), '22023', 'from_uuid() refuses a UUID of another epoch');

is($node->safe_psql('later', "SELECT snowflake.from_base62(snowflake.to_base62(1234)), snowflake.from_base32(snowflake.to_base32(1234, true), true)"),
	'1234|1234', 'text forms need no layout');

done_testing();
