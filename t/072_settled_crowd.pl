# Runs 16 clients with transactions that have different lengths and end in different ways, and readers that follow
# settled_before(). While the clients run, the test kills sessions and the server, and steps the clock. At the end of
# the test each reader must have received every row exactly once.
#
# Set SNOWFLAKE_TEST_SECONDS=600 in the environment for a longer run. Set SNOWFLAKE_TEST_SEED to repeat the random
# numbers of an earlier run.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep time);

my $seed = $ENV{SNOWFLAKE_TEST_SEED} // int(rand(1 << 30));
note("SNOWFLAKE_TEST_SEED=$seed");
srand($seed);

my $node = Snowflake::Node->create_running('main', conf => <<~'CONF');
	max_connections = 60
	max_prepared_transactions = 40
	restart_after_crash = on
	CONF
$node->safe_psql('postgres', 'CREATE TABLE events (id bigint PRIMARY KEY, kind text)');

# Lists the kinds of transactions, each with its weight and its script for pgbench.
my %transactions = (
	single => [ 30, 'INSERT INTO events VALUES (snowflake.next_id(:shard), :kind);' ],
	several => [ 30, <<~'SQL' ],
		BEGIN;
		INSERT INTO events VALUES (snowflake.next_id(:shard), :kind);
		SELECT pg_sleep(:pause / 20000.0);
		INSERT INTO events SELECT snowflake.next_id(g), :kind FROM generate_series(:shard, 255, 50) AS g;
		COMMIT;
		SQL
	savepoint => [ 15, <<~'SQL' ],
		BEGIN;
		INSERT INTO events VALUES (snowflake.next_id(:shard), :kind);
		SAVEPOINT s;
		INSERT INTO events VALUES (snowflake.next_id(7), :kind);
		ROLLBACK TO s;
		SELECT pg_sleep(:pause / 30000.0);
		COMMIT;
		SQL
	rollback => [ 10, <<~'SQL' ],
		BEGIN;
		INSERT INTO events VALUES (snowflake.next_id(:shard), :kind);
		SELECT pg_sleep(:pause / 20000.0);
		ROLLBACK;
		SQL
	prepared => [ 10, <<~'SQL' ],
		BEGIN;
		INSERT INTO events VALUES (snowflake.next_id(:shard), :kind);
		PREPARE TRANSACTION 'p:client_id-:pause-:unique';
		SELECT pg_sleep(:pause / 10000.0);
		COMMIT PREPARED 'p:client_id-:pause-:unique';
		SQL
	batch => [ 4, 'INSERT INTO events SELECT unnest(snowflake.next_ids(:shard, 100)), :kind;' ],
	long => [ 1, <<~'SQL' ]);
		BEGIN;
		INSERT INTO events VALUES (snowflake.next_id(:shard), :kind);
		SELECT pg_sleep(1);
		INSERT INTO events VALUES (snowflake.next_id(:shard), :kind);
		COMMIT;
		SQL
my @files;
foreach my $kind (sort keys %transactions)
{
	my ($weight, $script) = @{ $transactions{$kind} };
	my $file = $node->basedir . "/$kind.sql";
	append_to_file($file, "\\set shard random(0, 255)\n\\set pause random(0, 1000)\n\\set unique random(0, 1000000000)\n" . $script =~ s/:kind/'$kind'/gr);
	push @files, '-f', "$file\@$weight";
}

# pgbench is started again whenever it has ended, because the test kills sessions.
my $stop = $node->basedir . '/stop';
my @writers = map {
	IPC::Run::start([ 'bash', '-c', 'until [ -e "$0" ]; do "$@" >/dev/null 2>&1 || sleep 0.1; done', $stop, qw(pgbench -n -c 4 -T 2), "--random-seed=$seed$_", @files,
		'-h', $node->host, '-p', $node->port, 'postgres' ], '<', \undef, '>', \my $out, '2>', \my $err)
} 1 .. 4;

# One reader calls settled_before(), and another reader reads the view "settled".
my %readers = map { $_ => { next => 0, ids => [] } } qw(settled_before settled);
my %session;
my ($read, $moved, $back, $furthest) = (0, 0, 0, 0);

sub ask
{
	my ($name, $sql) = @_;
	my $session = $session{$name} //= $node->background_psql('postgres', on_error_stop => 1);
	my $answer = $session->query_safe($sql);
	return split /\n/, $answer;
}
# Reads rows through a file. PostgreSQL::Test is too slow for many rows, because it repeatedly searches the whole output
# of psql.
sub rows
{
	my ($name, $sql) = @_;
	my $file = $node->basedir . "/$name.rows";
	unlink $file;
	ask($name, "$sql \\g '$file'");
	return split /\n/, slurp_file($file);
}
sub follow
{
	my ($name) = @_;
	my $reader = $readers{$name};
	my ($settled) = ask($name, $name eq 'settled' ? 'SELECT settled_before FROM snowflake.settled' : 'SELECT snowflake.settled_before()');
	return if !defined $settled || $settled eq '';
	my @ids = rows($name, "SELECT id FROM events WHERE id >= $reader->{next} AND id < $settled ORDER BY id");
	# If the clock was set back before a server start, the result of settled_before() may decrease for some time.
	my $now = time + $node->clock->offset;
	$furthest = $now if $now > $furthest;
	$back++ if $settled < $reader->{next} && $now == $furthest;
	$moved++ if $settled > $reader->{next};
	$read++;
	push @{ $reader->{ids} }, @ids;
	$reader->{next} = $settled if $settled > $reader->{next};
	return;
}
# Stores a result of settled_before() with the number and checksum of the rows whose ids are smaller.
my @glances;
sub glance
{
	my ($settled) = ask('glance', 'SELECT snowflake.settled_before()');
	push @glances, [ $settled, (ask('glance', "SELECT count(*), coalesce(sum(id % 1000003), 0) FROM events WHERE id < $settled"))[0] ]
	  if defined $settled && $settled ne '' && @glances < 200;
	return;
}
# If the session of a reader was killed, the reader continues in a new session.
sub try
{
	my ($what, @arguments) = @_;
	return if eval { $what->(@arguments); 1 };
	eval { $_->{run}->kill_kill } foreach values %session;
	%session = ();
	return;
}

# The following functions disturb the clients, for example by killing a session.
sub a_session
{
	my ($how) = @_;
	my ($pid) = split /\n/, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' AND xact_start IS NOT NULL ORDER BY random() LIMIT 1});
	return if !$pid;
	return $node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)") if $how eq 'terminated';
	kill 9, $pid;
	$node->poll_query_until('postgres', 'SELECT true') or BAIL_OUT('no crash restart');
	return;
}
# Commits or rolls back prepared transactions, because their clients may have been killed. The function end_prepared()
# ignores errors, because another session may have ended the transaction.
sub end_prepared
{
	foreach my $gid (split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts'))
	{
		$node->psql('postgres', (rand() < 0.7 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'");
	}
	return;
}
sub the_server
{
	my ($step) = @_;
	$node->stop('immediate');
	$node->clock->step($step);
	$node->start;
	return;
}
my @events = (
	(map { [ 'a session is terminated', \&a_session, 'terminated' ] } 1 .. 6),
	(map { [ 'a session is killed', \&a_session, 'killed' ] } 1 .. 3),
	(map { my $step = $_; [ "the server is killed, the clock steps by $step s", \&the_server, $step ] } 0, -0.3, -1.5, 2),
	(map { my $step = $_; [ "the clock steps by $step s", sub { $node->clock->step($step) } ] } -0.05, -0.4, 1.5));
@events = map { $_->[1] } sort { $a->[0] <=> $b->[0] } map { [ rand(), $_ ] } @events;

# Runs each disturbance once, and then random disturbances until the time has elapsed.
my $end = time + ($ENV{SNOWFLAKE_TEST_SECONDS} // 0);
my @left = @events;
for (my $last = 0; !$last;)
{
	my $event = shift(@left) // (time < $end ? $events[ rand @events ] : undef);
	$last = !defined $event;
	my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM events');
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	my $answered = $read;
	# Waits until the clients have written and the readers have read after the previous disturbance.
	while (time < $until)
	{
		try(\&follow, 'settled_before') if rand() < 0.7;
		try(\&follow, 'settled') if rand() < 0.4;
		try(\&glance) if rand() < 0.2;
		try(\&end_prepared) if rand() < 0.1;
		last if $read > $answered + 10 && $node->safe_psql('postgres', "SELECT count(*) > $rows + 50 FROM events") eq 't';
	}
	BAIL_OUT('nothing goes on') if time >= $until;
	next if !defined $event;
	my ($what, $do, @arguments) = @$event;
	note($what);
	$do->(@arguments);
}

append_to_file($stop, '');
$_->finish foreach @writers;
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'}) or BAIL_OUT('the writers do not end');
my @prepared = split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
note(scalar(@prepared) . ' were left prepared');
$node->safe_psql('postgres', "COMMIT PREPARED '$_'") foreach @prepared;
$node->poll_query_until('postgres', 'SELECT snowflake.settled_before() > (SELECT max(id) FROM events)') or BAIL_OUT('not everything settles');
my @all = split /\n/, $node->safe_psql('postgres', 'SELECT id FROM events ORDER BY id');
foreach my $name (sort keys %readers)
{
	%session = ();
	follow($name);
	my @ids = @{ $readers{$name}{ids} };
	my (%times, %there);
	$times{$_}++ foreach @ids;
	@there{@all} = ();
	is(scalar(grep { !$times{$_} } @all), 0, "the reader of $name has received every row");
	is(scalar(grep { $times{$_} > 1 } keys %times), 0, "the reader of $name has received no row twice");
	is(scalar(grep { !exists $there{$_} } @ids), 0, "the reader of $name has received only rows of the table");
}
is($back, 0, 'settled_before() never decreased unless the clock was set back');
my $changed = 0;
foreach my $glance (@glances)
{
	my ($settled, $then) = @$glance;
	$changed++ if $node->safe_psql('postgres', "SELECT count(*), coalesce(sum(id % 1000003), 0) FROM events WHERE id < $settled") ne $then;
}
is($changed, 0, 'the rows below each earlier result are the same at the end');

# Checks that there were enough transactions, because all other checks would pass without any transaction.
my %count = map { split /\|/ } split /\n/, $node->safe_psql('postgres', 'SELECT kind, count(*) FROM events GROUP BY 1');
cmp_ok($count{$_} // 0, '>', 0, "transactions of kind $_ have inserted rows") foreach grep { $_ ne 'rollback' } sort keys %transactions;
is($count{rollback}, undef, 'no row of a transaction that was rolled back exists');
cmp_ok($moved, '>', 30, 'the readers have advanced more than 30 times');
cmp_ok(scalar(@glances), '>', 10, 'more than 10 results were stored with their rows');
note(scalar(@all) . " rows, $read readings, $moved moved the cursor, " . scalar(@glances) . ' glances');

done_testing();
