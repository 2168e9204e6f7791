# Runs 16 writers with transactions of every length and end, and readers that follow the cursor, while sessions and
# servers are killed under clocks that step. At the end each reader has every row exactly once.
#
# Set SNOWFLAKE_TEST_SECONDS=600 in the environment for a longer run, and SNOWFLAKE_TEST_SEED to repeat the events of
# one.

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

# Transactions, and how often each is drawn.
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

# A client that loses its session stops until its program starts again.
my $stop = $node->basedir . '/stop';
my @writers = map {
	IPC::Run::start([ 'bash', '-c', 'until [ -e "$0" ]; do "$@" >/dev/null 2>&1 || sleep 0.1; done', $stop, qw(pgbench -n -c 4 -T 2), "--random-seed=$seed$_", @files,
		'-h', $node->host, '-p', $node->port, 'postgres' ], '<', \undef, '>', \my $out, '2>', \my $err)
} 1 .. 4;

# One reader uses the function, one the view. A third begins at a random position and is discarded after each reading.
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
# Many rows go through a file. The session's own output is searched again with each new part and logged line by line,
# which is slower than the writers.
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
	# A server that starts under an earlier clock may return less, until the clock has caught up.
	my $now = time + $node->clock->offset;
	$furthest = $now if $now > $furthest;
	$back++ if $settled < $reader->{next} && $now == $furthest;
	$moved++ if $settled > $reader->{next};
	$read++;
	push @{ $reader->{ids} }, @ids;
	$reader->{next} = $settled if $settled > $reader->{next};
	return;
}
# Rows that were read once below a result.
my @glances;
sub glance
{
	my ($settled) = ask('glance', 'SELECT snowflake.settled_before()');
	push @glances, [ $settled, (ask('glance', "SELECT count(*), coalesce(sum(id % 1000003), 0) FROM events WHERE id < $settled"))[0] ]
	  if defined $settled && $settled ne '' && @glances < 200;
	return;
}
# The session of a reader may die. The reader then calls again in a new one.
sub try
{
	my ($what, @arguments) = @_;
	return if eval { $what->(@arguments); 1 };
	eval { $_->{run}->kill_kill } foreach values %session;
	%session = ();
	return;
}

# The events during the run, in random order, but each of them.
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
# Ends prepared transactions whose client is gone: each is committed or rolled back, unless another session was faster.
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

# Each event once, then more as long as there is time, and the last ones at the end.
my $end = time + ($ENV{SNOWFLAKE_TEST_SECONDS} // 0);
my @left = @events;
for (my $last = 0; !$last;)
{
	my $event = shift(@left) // (time < $end ? $events[ rand @events ] : undef);
	$last = !defined $event;
	my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM events');
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	my $answered = $read;
	# Waits until the writers have written and the readers have read after the last event.
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

# The end: the writers stop, prepared transactions are committed, and the readers read the rest.
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
	is(scalar(grep { !$times{$_} } @all), 0, "$name: no row is missed");
	is(scalar(grep { $times{$_} > 1 } keys %times), 0, "$name: none comes twice");
	is(scalar(grep { !exists $there{$_} } @ids), 0, "$name: and none that is not there");
}
is($back, 0, 'the cursor never went back, but with the clock');
my $changed = 0;
foreach my $glance (@glances)
{
	my ($settled, $then) = @$glance;
	$changed++ if $node->safe_psql('postgres', "SELECT count(*), coalesce(sum(id % 1000003), 0) FROM events WHERE id < $settled") ne $then;
}
is($changed, 0, 'what was below any answer is what is there now');

# A run with few events would also pass, so count them.
my %count = map { split /\|/ } split /\n/, $node->safe_psql('postgres', 'SELECT kind, count(*) FROM events GROUP BY 1');
cmp_ok($count{$_} // 0, '>', 0, "rows of transactions: $_") foreach grep { $_ ne 'rollback' } sort keys %transactions;
is($count{rollback}, undef, 'but none that was rolled back');
cmp_ok($moved, '>', 30, 'the cursor moved');
cmp_ok(scalar(@glances), '>', 10, 'others looked');
note(scalar(@all) . " rows, $read readings, $moved moved the cursor, " . scalar(@glances) . ' glances');

done_testing();
