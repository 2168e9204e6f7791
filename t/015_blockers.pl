# Tests that next_id() and health() agree on whether the database mints ids. Compares the error of next_id() with the
# reason, the advice and the counter that health() shows. Tests new sessions, and open sessions that have already minted
# ids. Other tests check health() without a lease (extensions/lease/t/006_refusals.pl), on a standby (t/007), and with
# Citus (t/031).

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Disk;
use Snowflake::Form;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	fsync = on
	wal_buffers = 32kB
	wal_writer_delay = 10s
	max_prepared_transactions = 1
	snowflake.reserve = 200ms
	snowflake.max_wait = 0
	snowflake.on_clone = refuse
	snowflake.unsynchronized = refuse
	CONF
Snowflake::Form::install($node, most_databases => 1);
my $disk = Snowflake::Disk->new($node);
$node->clock->synchronize(1);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my $ledger = Snowflake::Ledger->new;
$node->mint($ledger);

# Maps each reason that health() shows to the SQLSTATE, message and cause of the error.
my %table = (
	'"default_transaction_read_only" is on' => [ '25006', 'cannot execute next_id\(\) in a read-only transaction', 'read_only' ],
	'clock before the epoch of the ids' => [ '55000', 'the clock is before the epoch of the ids', 'clock_before_epoch' ],
	'id layout has no time values left' => [ '2200H', 'the id layout has no time values left', 'exhausted' ],
	'clock not synchronized' => [ '55000', 'no ids are minted because the clock is not synchronized', 'unsynchronized' ],
	'clock jumped ahead' => [ '55000', 'the clock jumped ahead by ', 'clock_jumped' ],
	'clock behind the ids' => [ '55000', 'the clock is behind the ids of shard 1', 'clock_behind' ],
	'another extension named snowflake is installed' => [ '55000', 'extension "snowflake" in this database is another product', 'state_missing' ],
	'a sequence or table of the extension is missing' => [ '55000', 'extension "snowflake" in this database lacks a sequence or table', 'state_missing' ],
	'the recorded id layout is lost' => [ '55000', 'the recorded id layout of this database is lost', 'seal' ],
	'restored ids have another layout than this database' => [ '55000', 'the restored ids have another layout than this database', 'seal' ],
	'a dump would not contain the id layout' => [ '55000', 'a dump of this database would not contain the layout of its ids', 'seal' ],
	'invalid "snowflake.region" or "snowflake.owned_shards"' => [ '55000', 'the value of "snowflake.owned_shards" is invalid', 'not_owned' ],
	'"snowflake.region" is not a region of the layout' => [ '55000', 'the layout of this database has no region 32', 'seal' ],
	'ids were minted under leases, but this server leases no region' => [ '55000', 'this database minted its ids under leases, but this server leases no region', 'lease' ],
	'the database may be a clone' => [ '55000', 'this database was copied or moved after it minted its last ids', 'clone' ],
	'sequence snowflake.high_water is not a permanent relation' => [ '55000', 'the high-water mark \(sequence snowflake.high_water\) would not survive a crash', 'mark_unsafe' ],
	'high-water mark (sequence snowflake.high_water) lost' => [ '55000', 'the high-water mark \(sequence snowflake.high_water\) of this database is lost', 'mark_lost' ],
	'high-water mark (sequence snowflake.high_water) ahead of the clock' => [ '55000', 'the clock is behind the high-water mark \(sequence snowflake.high_water\)', 'mark_ahead' ],
	'too many databases' => [ '53400', 'too many databases use snowflake', 'too_many_databases' ]);
my %seen;

my $call = 'SELECT snowflake.next_id(1)';

sub count_of
{
	my ($cause, $database) = @_;
	return $node->safe_psql($database, "SELECT refusals FROM snowflake.refusals WHERE cause = '$cause'");
}

# Repeats a call until its result changes, because an open session first uses the ids that it has reserved.
sub poll_call
{
	my ($ask, $refused) = @_;
	my $said = '';
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$said = $ask->();
		last if $refused == ($said =~ /ERROR/);
		select undef, undef, undef, 0.1;
	}
	return $said;
}

# Runs the code $step{make}, which prevents minting. Compares the error of next_id() with the result of health(), and
# runs the code $step{undo}. The value $step{reason} is the reason that health() must show.
sub holds
{
	my (%step) = @_;
	my ($reason, $database) = ($step{reason}, $step{database} // 'postgres');
	my ($sqlstate, $message, $cause) = @{ $table{$reason} };
	$seen{$reason} = 1;
	my $do = sub { ref $_[0] ? $_[0]->() : $node->safe_psql($database, "SET default_transaction_read_only = off; $_[0]") };
	my $old = $step{old} // 1 ? $node->session($database) : undef;
	if (defined $old)
	{
		$ledger->record('old', $old->query_safe($call));
		$old->query('\set VERBOSITY verbose');
	}
	$do->($step{make});

	my $said = poll_call(sub { $node->error_of($call, $database) }, 1);
	like($said, qr/ERROR:  $sqlstate: $message/, "$reason: next_id() fails in a new session");
	my ($minting, $why, $advice) = split /\|/, $node->safe_psql($database, 'SELECT minting, reason, advice FROM snowflake.health()');
	is("$minting|$why", "f|$reason", "$reason: health() shows this reason");
	my ($hint) = $said =~ /\nHINT:  (.*)/;
	is($hint, $advice, "$reason: the hint of the error is the advice of health()");
	my $before = count_of($cause, $database);
	$node->error_of($call, $database);
	is(count_of($cause, $database) - $before, 1, "$reason: the refusal is counted as $cause");
	if (defined $old)
	{
		my $refusal = '';
		poll_call(sub {
			my ($out) = $old->query($call);
			$refusal = $old->{stderr};
			$old->{stderr} = '';
			return $refusal;
		}, 1);
		like($refusal, qr/ERROR:  $sqlstate: $message/, "$reason: next_id() fails in a session that minted before");
	}

	$do->($step{undo});
	unlike(poll_call(sub { $node->error_of($call, $database) =~ /returned/ ? '' : 'ERROR' }, 0), qr/ERROR/, "$reason: when the state is undone, the database mints") unless $step{last};
	is($node->safe_psql($database, 'SELECT minting, reason FROM snowflake.health()'), 't|', "$reason: when the state is undone, health() shows that the database mints") unless $step{last};
	$old->quit if defined $old;
	return;
}

# The function waits() is like holds(), but for causes that make next_id() wait instead of fail. The element $step{for}
# is a wait event that pg_stat_activity must show for one session.
sub waits
{
	my (%step) = @_;
	my $old = $node->start_writer(<<~'SQL');
		CREATE TEMP TABLE minted (id bigint);
		INSERT INTO minted VALUES (snowflake.next_id(1));
		SELECT id FROM minted;
		DO $$
		BEGIN
			LOOP
				INSERT INTO minted VALUES (snowflake.next_id(1));
				EXIT WHEN (SELECT count FROM undone) > 0;
				PERFORM pg_sleep(0.01);
				-- A test that holds it has the session stand still.
				PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
			END LOOP;
		END $$;
		SELECT id FROM minted OFFSET 1;
		SQL
	$node->wait_for_output($old, 10);
	$step{make}->();
	my $new = $node->start_writer("$call; SELECT pg_sleep(0.01);\n" x 100);
	my $for = $step{for} // '';
	$node->poll_query_until('postgres', <<~"SQL") or die 'nobody waits';
		SELECT count(*) = 2 AND ('$for' = '' OR bool_or(wait_event = '$for')) FROM pg_stat_activity
		WHERE application_name = 'writer' AND wait_event_type IN ('Lock', 'LWLock', 'IO')
		SQL
	my $said = '';
	# Reads health() with a timeout, as a monitoring probe does.
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $timed_out = 0;
		$node->psql('postgres', 'SELECT minting, reason FROM snowflake.health()', stdout => \$said, timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \$timed_out);
		last if $timed_out || $said eq "f|$step{reason}";
		select undef, undef, undef, 0.1;
	}
	is($said, "f|$step{reason}", "$step{name}: calls wait, and health() returns at once with the reason");
	$step{undo}->();
	$node->safe_psql('postgres', 'UPDATE undone SET count = 1');
	foreach my $writer ($old, $new)
	{
		my $end = $node->finish_writer($writer);
		ok($end->{well} && @{ $end->{ids} }, "$step{name}: when the state is undone, $writer->{name} gets its ids") or diag $end->{errors};
		$ledger->record($writer->{name}, @{ $end->{ids} });
	}
	is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health()'), 't|', "$step{name}: when the state is undone, health() shows that the database mints");
	$node->safe_psql('postgres', 'UPDATE undone SET count = 0');
	return;
}

is($node->safe_psql('postgres', 'SELECT minting, reason, advice FROM snowflake.health()'), 't||', 'health() of a new database shows that it mints');

$node->safe_psql('postgres', 'CREATE TABLE undone (count integer); INSERT INTO undone VALUES (0); CREATE TABLE filler (t text)');
foreach my $sql ('ALTER SEQUENCE snowflake.high_water CACHE 1', 'DROP EXTENSION snowflake')
{
	my $holder = $node->session;
	waits(name => "$sql in an open transaction", reason => 'another session has locked a sequence of the extension',
		make => sub { $holder->query_safe("BEGIN; $sql") }, undo => sub { $holder->query_safe('ROLLBACK') });
	$holder->quit;
}
waits(name => 'ALTER SEQUENCE in a prepared transaction', reason => 'another session has locked a sequence of the extension',
	make => sub { $node->safe_psql('postgres', "BEGIN; ALTER SEQUENCE snowflake.high_water CACHE 1; PREPARE TRANSACTION 'altering'") },
	undo => sub { $node->safe_psql('postgres', "ROLLBACK PREPARED 'altering'") });
waits(name => 'the disk of the WAL does not answer', reason => 'waiting for the WAL to be flushed to disk',
	make => sub { $disk->stall }, undo => sub { $disk->answer });
# If the WAL buffers are full, a session that writes the high-water mark waits while it holds the lock of a page. A
# second session must wait for the lock of the page that contains the high-water mark.
my @fillers;
waits(name => 'the page of the mark is locked', reason => 'waiting for the WAL to be flushed to disk', for => 'BufferContent',
	make => sub {
		my $holder = $node->session;
		$holder->query_safe('SELECT pg_advisory_lock(1)');
		$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event_type = 'Lock'});
		select undef, undef, undef, 1;    # five times "snowflake.reserve"
		$disk->stall;
		# The first writer of WAL waits for the stalled disk, and the second writer fills the WAL buffers.
		foreach my $rows (1, 2000)
		{
			push @fillers, $node->start_writer("SET application_name = 'filler'; INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, $rows)");
			my $fillers = @fillers;
			$node->poll_query_until('postgres', "SELECT count(*) = $fillers FROM pg_stat_activity WHERE application_name = 'filler' AND lower(wait_event) IN ('walsync', 'walwrite')");
		}
		$holder->quit;
	},
	undo => sub { $disk->answer; $node->finish_writer($_) foreach @fillers });

holds(reason => 'ids were minted under leases, but this server leases no region',
	make => q{SELECT setval('snowflake.fleet', 77)}, undo => q{SELECT setval('snowflake.fleet', 0)});
holds(reason => 'the database may be a clone',
	make => q{SELECT setval('snowflake.origin_fingerprint', last_value # 1) FROM snowflake.origin_fingerprint}, undo => 'SELECT snowflake.accept_clone()');
holds(reason => 'the recorded id layout is lost',
	make => q{SELECT setval('snowflake.seal', 17)}, undo => q{SELECT setval('snowflake.seal', last_value) FROM snowflake.seal_local});
my $twitter = '1288834974657 * 2012500 + 22 * 57500 + 5 * 2300 + 5 * 92 + 12 * 4';
holds(reason => 'restored ids have another layout than this database',
	make => qq{SELECT setval('snowflake.seal', $twitter)}, undo => q{SELECT setval('snowflake.seal', last_value) FROM snowflake.seal_local});
holds(reason => 'a dump would not contain the id layout', old => 0,
	make => 'ALTER TABLE snowflake.dumped_seal DISABLE TRIGGER ALL; DELETE FROM snowflake.dumped_seal; ALTER TABLE snowflake.dumped_seal ENABLE TRIGGER ALL',
	undo => 'INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local');
my @members = ((map { "SEQUENCE snowflake.$_" } qw(origin_fingerprint fleet high_water seal seal_local)), map { "TABLE snowflake.$_" } qw(backfills dumped_seal late_ids));
foreach my $member (@members)
{
	holds(reason => 'a sequence or table of the extension is missing',
		make => "ALTER EXTENSION snowflake DROP $member", undo => "ALTER EXTENSION snowflake ADD $member");
}
holds(reason => 'another extension named snowflake is installed',
	make => join('; ', map { "ALTER EXTENSION snowflake DROP $_" } @members),
	undo => join('; ', map { "ALTER EXTENSION snowflake ADD $_" } @members));
holds(reason => 'sequence snowflake.high_water is not a permanent relation',
	make => 'ALTER SEQUENCE snowflake.high_water SET UNLOGGED', undo => 'ALTER SEQUENCE snowflake.high_water SET LOGGED');
my $mark;
holds(reason => 'high-water mark (sequence snowflake.high_water) ahead of the clock',
	make => sub { $mark = $node->mark; $node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $mark + 3600000)") },
	undo => sub { $node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $mark)") });
holds(reason => '"default_transaction_read_only" is on',
	make => sub { $node->safe_psql('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on'); $node->reload },
	undo => sub { $node->safe_psql('postgres', 'SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only'); $node->reload });
holds(reason => '"default_transaction_read_only" is on', old => 0,
	make => sub { $node->safe_psql('postgres', 'ALTER DATABASE postgres SET default_transaction_read_only = on') },
	undo => 'ALTER DATABASE postgres RESET default_transaction_read_only');
$node->create_database('second');
holds(reason => 'too many databases', database => 'second', old => 0, last => 1, make => 'SELECT 1', undo => 'SELECT 1');

my $clock = $node->clock;
my $back = sub { $clock->set(0) };
holds(reason => 'clock behind the ids', make => sub { $clock->set(-3600) }, undo => $back);
holds(reason => 'clock jumped ahead', make => sub { $clock->set(3 * 3600) }, undo => $back);
holds(reason => 'clock before the epoch of the ids', make => sub { $clock->set(1_704_067_200 - time) }, undo => $back);
holds(reason => 'id layout has no time values left', make => sub { $clock->set(2_840_140_800 - time) }, undo => $back);

holds(reason => 'clock not synchronized', make => sub { $clock->synchronize(0) }, undo => sub { $clock->synchronize(1) });

$node->restart;
$node->safe_psql('postgres', <<~'SQL');
	BEGIN;
	ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water;
	DROP SEQUENCE snowflake.high_water;
	CREATE SEQUENCE snowflake.high_water AS bigint MINVALUE 0 START 0;
	ALTER EXTENSION snowflake ADD SEQUENCE snowflake.high_water;
	COMMIT;
	SQL
holds(reason => 'high-water mark (sequence snowflake.high_water) lost', old => 0, make => 'SELECT 1',
	undo => sub { $node->safe_psql('postgres', q{SELECT snowflake.set_mark(now() + interval '1 s')}) });
# ALTER DATABASE refuses an invalid "snowflake.owned_shards", so the test updates pg_db_role_setting.
holds(reason => 'invalid "snowflake.region" or "snowflake.owned_shards"', old => 0, make => q{
		ALTER DATABASE postgres SET snowflake.owned_shards = '1';
		UPDATE pg_db_role_setting SET setconfig = '{snowflake.owned_shards=x}'},
	undo => 'ALTER DATABASE postgres RESET snowflake.owned_shards');
$node->append_conf('postgresql.conf', "snowflake.region = 32\n");
$node->restart;
holds(reason => '"snowflake.region" is not a region of the layout', old => 0, last => 1, make => 'SELECT 1', undo => 'SELECT 1');

is_deeply([ sort keys %seen ], [ sort keys %table ], 'every reason of the table was tested');
$ledger->check(1, 'ids are unique over all states');

done_testing();
