# Runs the examples of doc/cursors.md. Tests each way to read rows in id order while the transaction with the smallest
# id commits last. Tests the heartbeat (a table with results of settled_before()) on a standby and with logical
# replication.

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

# Checks that a reader returns every row exactly once, although the transaction with the first id commits last.
sub follows
{
	my ($table, $column, $name, $read) = @_;
	my @there;
	my $insert = sub { return "INSERT INTO $table ($column) VALUES ('$name') RETURNING id" };
	push @there, sql($insert->());
	everything_settles($table);
	my @seen = $read->();
	is_deeply(\@seen, \@there, "$name: the reader returns the committed rows") or diag("@seen, not @there");
	my $first = $late->query_safe('BEGIN; ' . $insert->());
	my $second = sql($insert->());
	cmp_ok($first, '<', $second, "$name: the row that is committed last has the smaller id");
	push @seen, $read->();
	ok(!(grep { $_ >= $first } @seen), "$name: the reader returns neither row while the first transaction is open");
	$late->query_safe('COMMIT');
	everything_settles($table);
	push @seen, $read->();
	is_deeply(\@seen, [ @there, $first, $second ], "$name: the reader returns both rows after the commit, in order") or diag("@seen");
	is(scalar(my @again = $read->()), 0, "$name: the reader returns no row again");
	return;
}

say_block('Following a table', 0);
follows('orders', 'what', 'followed', sub { return say_block('Following a table', 1) });
say_block('Following a table', 2);
follows('orders', 'what', 'taken', sub { return $node->ids(q{SELECT id FROM take_orders('export', 100)}) });
sql(q{INSERT INTO orders (what) SELECT 'many' FROM generate_series(1, 25)});
everything_settles('orders');
my @portions = map { scalar(my @ids = $node->ids(q{SELECT id FROM take_orders('export', 10)})) } 1 .. 4;
is("@portions", '10 10 5 0', 'take_orders() returns 25 rows in portions of at most ten');

say_block('An outbox', 0);
follows('outbox', 'message', 'sent', sub { return say_block('An outbox', 1) });

my @pages = say_block('Pages', 0);
is_deeply(\@pages, [ $node->ids('SELECT id FROM orders ORDER BY id DESC LIMIT 20') ], 'the query for pages returns the 20 newest rows');

say_block('A heartbeat', 0);
say_block('A heartbeat', 1);
everything_settles('orders');
say_block('A heartbeat', 1);
is(scalar(my @all = say_block('A heartbeat', 2)), sql('SELECT count(*) FROM orders'), 'the query up to the heartbeat returns all rows');
like(join("\n", say_block('What holds it back', 0)), qr/^\d+$/, 'the view settled returns a number');
is($node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM orders WHERE id < (SELECT min(settled) FROM heartbeat)'),
	scalar(@all), 'a query up to the heartbeat returns all rows in a REPEATABLE READ transaction');

# Each heartbeat mints an id, so that settled_before() rises even if the application mints no ids.
my $before = sql('SELECT settled FROM heartbeat');
$node->clock->step(10);
say_block('A heartbeat', 1);
$node->poll_query_until('postgres', "SELECT snowflake.settled_before() > snowflake.min_id(now() - interval '5 s')") or BAIL_OUT('the mark stands still');
say_block('A heartbeat', 1);
cmp_ok(sql('SELECT settled FROM heartbeat') - $before, '>', 5000 << 23, 'the heartbeat of a server that mints nothing else advances');

# The heartbeat of a reader on another server is the smallest value of the column settled in the table heartbeat. The
# reader must see all rows with ids below its heartbeat.
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
	# A heartbeat is the smallest value of the column settled in the table heartbeat. For each heartbeat that the reader
	# saw, @seen stores the number of visible rows with smaller ids. The keys of %counts are the different numbers.
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
	is($wrong, 0, "$name: the reader saw all rows below each heartbeat") or diag(join "\n", map { "@$_" } @seen);
	cmp_ok(scalar(keys %counts), '>', 3, "$name: the number of rows below the heartbeat grew");
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
is($standby->safe_psql('postgres', 'SELECT snowflake.settled_before() IS NULL, held_back_by FROM snowflake.settled'), 't|the server is a standby', 'settled_before() returns NULL on a standby');
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
