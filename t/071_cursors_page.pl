# Runs doc/cursors.md: each of its ways to read, while a transaction that began first commits last. Also tests the
# heartbeat in places that the page cannot show: on a standby, and for regions that merge by logical replication.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Snowflake::Page;
use Test::More;

my %page = Snowflake::Page::blocks("$FindBin::RealBin/../doc/cursors.md");
my $node = Snowflake::Node->create_running('main', allows_streaming => 'logical', conf => "snowflake.region = 1\n");
my $late = $node->session;

# Runs a block as the page has it. Returns the ids at the beginning of its lines.
sub say_block
{
	my ($section, $number) = @_;
	my $block = $page{$section}[$number] // BAIL_OUT("the page has no block $number in \"$section\"");
	my ($status, $out, $err) = $node->psql('postgres', $block, on_error_stop => 1);
	is($status, 0, "$section, block $number") or diag($err);
	return map { /^(\d{10,})/ ? $1 : () } split /\n/, $out;
}
sub sql { return $node->safe_psql('postgres', $_[0]); }
sub everything_settles
{
	$node->poll_query_until('postgres', "SELECT snowflake.settled_before() > (SELECT max(id) FROM $_[0])") or BAIL_OUT('nothing settles');
	return;
}

# A row that is minted first and committed last, and a reader that is called around it: every row arrives exactly once.
sub follows
{
	my ($table, $column, $name, $read) = @_;
	my @there;
	my $insert = sub { return "INSERT INTO $table ($column) VALUES ('$name') RETURNING id" };
	push @there, sql($insert->());
	everything_settles($table);
	my @seen = $read->();
	is_deeply(\@seen, \@there, "$name: what is there") or diag("@seen, not @there");
	my $first = $late->query_safe('BEGIN; ' . $insert->());
	my $second = sql($insert->());
	cmp_ok($first, '<', $second, "$name: two rows, of which the first");
	push @seen, $read->();
	ok(!(grep { $_ >= $first } @seen), "$name: none is read while the first is open");
	$late->query_safe('COMMIT');
	everything_settles($table);
	push @seen, $read->();
	is_deeply(\@seen, [ @there, $first, $second ], "$name: then both are") or diag("@seen");
	is(scalar(my @again = $read->()), 0, "$name: and not again");
	return;
}

say_block('Following a table', 0);
follows('orders', 'what', 'followed', sub { return say_block('Following a table', 1) });
say_block('Following a table', 2);
follows('orders', 'what', 'taken', sub { return $node->ids(q{SELECT id FROM take_orders('export', 100)}) });
sql(q{INSERT INTO orders (what) SELECT 'many' FROM generate_series(1, 25)});
everything_settles('orders');
my @portions = map { scalar(my @ids = $node->ids(q{SELECT id FROM take_orders('export', 10)})) } 1 .. 4;
is("@portions", '10 10 5 0', 'taken in portions');

say_block('An outbox', 0);
follows('outbox', 'message', 'sent', sub { return say_block('An outbox', 1) });

my @pages = say_block('Pages', 0);
is_deeply(\@pages, [ $node->ids('SELECT id FROM orders ORDER BY id DESC LIMIT 20') ], 'the first page');

say_block('A heartbeat', 0);
say_block('A heartbeat', 1);
everything_settles('orders');
say_block('A heartbeat', 1);
is(scalar(my @all = say_block('A heartbeat', 2)), sql('SELECT count(*) FROM orders'), 'up to the heartbeat: all');
like(join("\n", say_block('What holds it back', 0)), qr/^\d+$/, 'the view');
is($node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM orders WHERE id < (SELECT min(settled) FROM heartbeat)'),
	scalar(@all), 'also in one snapshot');

# An idle region continues with each heartbeat, because the heartbeat mints.
my $before = sql('SELECT settled FROM heartbeat');
$node->clock->step(10);
say_block('A heartbeat', 1);
$node->poll_query_until('postgres', "SELECT snowflake.settled_before() > snowflake.min_id(now() - interval '5 s')") or BAIL_OUT('the mark stands still');
say_block('A heartbeat', 1);
cmp_ok(sql('SELECT settled FROM heartbeat') - $before, '>', 5000 << 23, 'the beat of a server that mints nothing else moves on');

# Readers with one snapshot in other places, while 4 writers commit in any order: all rows that the heartbeat covers are
# visible.
my ($beats, $writes) = ($page{'A heartbeat'}[1], <<~'SQL');
	BEGIN;
	INSERT INTO orders (what) VALUES ('merged');
	SELECT pg_sleep(random() * 0.02);
	INSERT INTO orders (what) VALUES ('merged');
	COMMIT;
	SQL
sub write_and_read
{
	my ($servers, $reader, $name) = @_;
	# Each heartbeat that the reader saw, and the number of rows that it saw below. Repeats until the numbers have
	# differed, which takes longer on a busy machine.
	my (@seen, %counts);
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	while (@seen < 15 || (keys %counts < 4 && time < $until))
	{
		$_->safe_psql('postgres', $_->{beats}) foreach @$servers;
		push @seen, [ split /\|/, $reader->safe_psql('postgres', <<~'SQL') ];
			BEGIN ISOLATION LEVEL REPEATABLE READ;
			SELECT beat, count(o.id) FROM (SELECT min(settled) AS beat FROM heartbeat) AS h LEFT JOIN orders AS o ON o.id < beat GROUP BY 1;
			SQL
		$counts{ $seen[-1][1] } = 1;
	}
	$_->{writers}->kill_kill foreach @$servers;
	my $wrong = 0;
	foreach my $beat (@seen)
	{
		my $there = 0;
		$there += $_->safe_psql('postgres', "SELECT count(*) FROM orders WHERE id < $beat->[0]") foreach @$servers;
		$wrong++ if $there != $beat->[1];
	}
	is($wrong, 0, "$name: all rows below the beat were there") or diag(join "\n", map { "@$_" } @seen);
	cmp_ok(scalar(keys %counts), '>', 3, "$name: and more with time");
	return;
}
sub start_writing
{
	my ($server, $region) = @_;
	$server->{beats} = $beats =~ s/SELECT 0,/SELECT $region,/r;
	my $script = $server->basedir . '/writes.sql';
	PostgreSQL::Test::Utils::append_to_file($script, $writes);
	$server->{writers} = IPC::Run::start([ qw(pgbench -n -c 4 -T 3600 -f), $script, '-h', $server->host, '-p', $server->port, 'postgres' ],
		'<', \undef, '>', \my $out, '2>', \my $err);
	return;
}

$node->backup('standby');
my $standby = Snowflake::Node->create_from_backup('standby', $node, 'standby', has_streaming => 1);
$standby->clock->set($node->clock->offset);
$standby->start;
is($standby->safe_psql('postgres', 'SELECT snowflake.settled_before() IS NULL, held_back_by FROM snowflake.settled'), 't|the server is a standby', 'a standby does not know');
start_writing($node, 0);
write_and_read([$node], $standby, 'a standby');
$standby->stop;

my $other = Snowflake::Node->create_running('other', allows_streaming => 'logical', conf => "snowflake.region = 2\n", clock => 10);
my $merged = Snowflake::Node->create_running('merged', conf => "snowflake.region = 3\n", clock => 10);
$_->safe_psql('postgres', "$page{'Following a table'}[0] $page{'A heartbeat'}[0]") foreach $other, $merged;
$node->safe_psql('postgres', 'TRUNCATE orders, heartbeat');
foreach my $server ($node, $other)
{
	$server->safe_psql('postgres', 'CREATE PUBLICATION merged FOR TABLE orders, heartbeat');
	my $name = 'from_' . $server->name;
	$merged->safe_psql('postgres', "CREATE SUBSCRIPTION $name CONNECTION '${\$server->connstr} dbname=postgres' PUBLICATION merged");
}
$merged->wait_for_subscription_sync($_, 'from_' . $_->name) foreach $node, $other;
start_writing($node, 1);
start_writing($other, 2);
$_->safe_psql('postgres', $_->{beats}) foreach $node, $other;
$merged->poll_query_until('postgres', 'SELECT count(*) = 2 FROM heartbeat') or BAIL_OUT('no heartbeat arrives');
write_and_read([ $node, $other ], $merged, 'two regions');

done_testing();
