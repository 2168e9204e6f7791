# Makes torture faults whose causes are sessions: locks, cancelled statements, exhausted limits, and mistakes of
# administrators.
package Sessions;

use strict;
use warnings;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);
use Crashes;

our %faults = (
	drop_create   => \&drop_create,
	drop_rollback => \&drop_rollback,
	alter_mark    => \&alter_mark,
	write_all_data   => \&write_all_data,
	disable_triggers => \&disable_triggers,
	async_create     => \&async_create,
	raise_mark    => \&raise_mark,
	long_lock     => \&long_lock,
	cancel        => \&cancel,
	connections   => \&connections,
	next_door     => \&next_door,
	observe       => \&observe,
	oid_reuse     => \&oid_reuse,
	fuzz          => \&fuzz,
);

*pick = \&Crashes::pick;

sub first { my ($w) = @_; return $w->{groups}[0]; }

# Runs statements with psql in the background, to hold a transaction open.
sub background
{
	my ($w, $group, @statements) = @_;
	my $pid = fork() // die "fork: $!";
	return $pid if $pid;
	open STDOUT, '>>', "$w->{dir}/background.log";
	open STDERR, '>&', \*STDOUT;
	exec 'psql', '-XAtq', '-h', $w->main->host, '-p', $w->main->port, '-d', $group->{name},
	  map { ('-c', $_) } @statements
	  or POSIX::_exit(127);
}

# Drops and creates the extension. If the server was not restarted, the high-water mark of the new extension must be
# above all ids of the dropped extension. DROP EXTENSION with CASCADE removes defaults that mint ids, but not their
# tables.
my $drop_create = <<'SQL';
DROP EXTENSION snowflake CASCADE;
CREATE EXTENSION snowflake;
SQL

sub defaults
{
	my ($w) = @_;
	return "ALTER TABLE app.hot ALTER id SET DEFAULT snowflake.next_id($w->{hot});"
	  . "ALTER TABLE app.cold ALTER id SET DEFAULT snowflake.next_id($w->{cold});";
}

sub drop_create
{
	my ($w) = @_;
	my ($together, $step, $crash, $idle) =
	  (pick(0, 1), Crashes::step($w, 0, -0.05, -0.5, -3, -30), pick(0, 1, 1), pick(0, 1));
	my $group = first($w);
	# If no session mints ids before the crash, only the WAL of CREATE EXTENSION has been flushed.
	$w->stop_clients($group) if $idle;
	my $sql = $drop_create . defaults($w);
	$sql = "BEGIN;$sql COMMIT;" if $together;
	my $recreate = sub {
		$w->must($w->main, $group->{name}, "SET lock_timeout = '20s'; $sql");
		$w->mint($w->main, $group->{name}, $group->{line}) if !$idle;
		sleep 0.2;
	};
	if ($step == 0) { $w->next_door($recreate); }
	else
	{
		$w->set_clock($w->main, $w->{base} + $step);
		$recreate->();
	}
	Crashes::between_server_runs($w, 'kill', $step, 0.3) if $crash || $idle;
	$w->start_clients($group) if $idle;
	$w->set_clock($w->main, $w->{base});
	return 'DROP and CREATE EXTENSION' . ($together ? ' in one transaction' : '') . ", clock $step s"
	  . ($crash || $idle ? ', then SIGKILL of the server' : '') . ($idle ? ' before the first id' : '');
}

sub drop_rollback
{
	my ($w) = @_;
	my ($mint, $hold, $step, $crash) = (pick(0, 1), pick(0.1, 0.7), Crashes::step($w, 0, -0.5, -30), pick(0, 1));
	my $group = first($w);
	my @mint = $mint ? 'DO $$ BEGIN PERFORM snowflake.next_id(5); EXCEPTION WHEN OTHERS THEN NULL; END $$' : ();
	$w->next_door(sub {
		my $pid = background($w, $group, 'BEGIN', 'DROP EXTENSION snowflake CASCADE', 'CREATE EXTENSION snowflake',
			@mint, "SELECT pg_sleep($hold)", 'ROLLBACK');
		waitpid $pid, 0;
		$w->mint($w->main, $group->{name}, $group->{line});
	});
	if ($crash) { Crashes::between_server_runs($w, 'kill', $step, 0.3); }
	return 'DROP and CREATE EXTENSION rolled back' . ($mint ? ', minting in between' : '')
	  . ($crash ? ", then SIGKILL of the server, clock $step s" : '');
}

# Waits until all WAL that was written before this call is flushed, and returns true if this succeeds. Before the flush,
# a sequence may show a value that a crash can still lose.
sub flushed
{
	my ($w) = @_;
	my $written = $w->must($w->main, 'postgres', 'SELECT pg_current_wal_insert_lsn()');
	for (1 .. 300)
	{
		return 1 if $w->must($w->main, 'postgres', "SELECT pg_current_wal_flush_lsn() >= '$written'") eq 't';
		sleep 0.05;
	}
	return 0;
}

# Lowers the high-water mark by SQL, as a user could do. The next session that extends a lowered high-water mark must
# raise and flush it. The test waits until the raised high-water mark is flushed, because a crash before the flush could
# cause duplicate ids.
sub alter_mark
{
	my ($w) = @_;
	my ($how, $crash, $step) = (int rand 4, pick(0, 1), Crashes::step($w, 0, -0.5, -30));
	my $group = first($w);
	my @sql = (
		'ALTER SEQUENCE snowflake.high_water RESTART',
		"SELECT setval('snowflake.high_water', last_value - 100000) FROM snowflake.high_water",
		'BEGIN; ALTER SEQUENCE snowflake.high_water RESTART; SELECT pg_sleep(0.3); ROLLBACK',
		'ALTER SEQUENCE snowflake.high_water CACHE 7');
	my $stored = "SELECT last_value FROM snowflake.high_water";
	my $before = $w->must($w->main, $group->{name}, $stored);
	my $corrected = $w->next_door(sub {
		$w->must($w->main, $group->{name}, $sql[$how]);
		for (1 .. 100)
		{
			$w->mint($w->main, $group->{name}, $group->{line});
			return 1 if $w->must($w->main, $group->{name}, $stored) >= $before && flushed($w);
			sleep 0.1;
		}
		return 0;
	});
	ok($corrected, "the mark is raised above $before again");
	Crashes::between_server_runs($w, 'kill', $step, 0.3) if $crash && $corrected;
	return "mark altered: $sql[$how]" . ($crash ? ", then SIGKILL of the server, clock $step s" : '');
}

# Changes the high-water mark as a role that may read and write all tables and sequences, but is not a superuser. A
# changed high-water mark must not affect minting, even if the server is killed before it has corrected the high-water
# mark.
sub write_all_data
{
	my ($w) = @_;
	my ($how, $step) = (int rand 4, Crashes::step($w, -0.5, -30, -30));
	my $group = first($w);
	my @sql = (
		"SELECT setval('snowflake.high_water', $World::epoch_ms)",
		"SELECT setval('snowflake.high_water', last_value - 100000, false) FROM snowflake.high_water",
		"SELECT setval('snowflake.high_water', $World::epoch_ms), nextval('snowflake.high_water')",
		"SELECT setval('snowflake.high_water', 0)");
	$w->must($w->main, $group->{name}, 'DROP ROLE IF EXISTS writer; CREATE ROLE writer IN ROLE pg_write_all_data, pg_read_all_data');
	$w->must($w->main, $group->{name}, "SET ROLE writer; $sql[$how]");
	my (undef, undef, $error) = $w->query($w->main, $group->{name}, 'SET ROLE writer; DELETE FROM snowflake.dumped_seal');
	like($error, qr/42501.*the row of snowflake.dumped_seal cannot be changed/s, 'the row of dumped_seal cannot be deleted');
	Crashes::between_server_runs($w, 'kill', $step, 0.3);
	return "as a member of pg_write_all_data: $sql[$how], then SIGKILL of the server, clock $step s";
}

# Restores the seal (the stored layout) of another database with disabled triggers, as pg_restore --disable-triggers
# does. The restored database must not mint ids, even after a crash.
sub disable_triggers
{
	my ($w) = @_;
	my ($by, $crash) = (pick(1, 1000, 86400000) * 2012500, pick(0, 1));    # the other database has another epoch
	my $node = $w->main;
	$w->must($node, 'postgres', 'CREATE DATABASE restored');
	$w->must($node, 'restored', 'CREATE EXTENSION snowflake');
	my $group = { node => $node, name => 'restored', line => $w->new_line, clients => [] };
	ok($w->settles(30, $group), 'the database mints before the restore');
	my $presented = $w->next_door(sub {
		my (undef, undef, $error) = $w->query($node, 'restored', <<~"SQL", on_error_stop => 0);
			ALTER TABLE snowflake.dumped_seal DISABLE TRIGGER ALL;
			INSERT INTO snowflake.dumped_seal SELECT last_value + $by FROM snowflake.seal_local;
			ALTER TABLE snowflake.dumped_seal ENABLE TRIGGER ALL;
			SQL
		return $error;
	});
	like($presented, qr/55000.*restored ids have another layout than this database/s, 'the seal of another layout is refused although triggers are disabled');
	Crashes::between_server_runs($w, 'kill', 0, 0.1) if $crash;
	like($w->mint($node, 'restored', $group->{line}), qr/55000.*restored ids have another layout than this database/s, 'next_id() fails after the restore of another layout');
	$w->must($node, 'restored', "SELECT setval('snowflake.seal', last_value) FROM snowflake.seal_local");
	ok($w->settles(30, $group), 'the database mints when the seal is corrected');
	is($w->must($node, 'restored', 'SELECT count(*) FROM snowflake.dumped_seal'), '1', 'dumped_seal has one row for the next dump');
	$w->must($node, 'postgres', 'DROP DATABASE restored');
	return 'a dump of another layout with triggers disabled' . ($crash ? ', then SIGKILL of the server' : '');
}

# Checks that CREATE EXTENSION survives a crash after an asynchronous commit, because clients have already received ids.
sub async_create
{
	my ($w) = @_;
	my $step = Crashes::step($w, -0.05, -0.5, -3);
	my $group = first($w);
	# Stops all clients, because the commit of another session would flush the WAL.
	$w->mint($w->main, $group->{name}, $group->{line});
	$w->stop_clients($_) for $w->groups;
	# Switches to a new WAL file, which flushes all WAL up to this point, but not the WAL of the following commit.
	$w->must($w->main, $group->{name}, "SET synchronous_commit = off; SET lock_timeout = '20s'; DROP EXTENSION snowflake CASCADE;"
		  . 'BEGIN; CREATE EXTENSION snowflake; SELECT pg_switch_wal(); COMMIT');
	$w->mint($w->main, $group->{name}, $group->{line}) for 1 .. 5;
	Crashes::between_server_runs($w, 'kill', $step, 0.1);
	is($w->must($w->main, $group->{name}, "SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'"), '1',
		'an acknowledged CREATE EXTENSION is kept');
	$w->must($w->main, $group->{name}, 'CREATE EXTENSION IF NOT EXISTS snowflake;' . defaults($w));
	$w->start_clients($_) for $w->groups;
	return "DROP and CREATE EXTENSION with asynchronous commits, then SIGKILL of the server, clock $step s";
}

# Raises the high-water mark to a later time, as the restore of a dump does. The raised high-water mark must never
# become lower again. After a session has read the raised high-water mark, all new ids must be above this high-water
# mark.
sub raise_mark
{
	my ($w) = @_;
	my ($crash, $step) = (pick(0, 1), Crashes::step($w, 0, -0.5, -30));
	my $group = first($w);
	my $raised;
	my $lowest = $w->next_door(sub {
		$raised = $w->must($w->main, $group->{name},
			"SELECT setval('snowflake.high_water', last_value + 3000) FROM snowflake.high_water");
		my $lowest = $raised;
		for (1 .. 15)
		{
			sleep 0.1;
			my $stored = $w->must($w->main, $group->{name}, 'SELECT last_value FROM snowflake.high_water');
			$lowest = $stored if $stored < $lowest;
		}
		return $lowest;
	});
	cmp_ok($lowest, '>=', $raised, 'a raised mark is not lowered');
	Crashes::between_server_runs($w, 'kill', $step, 0.3) if $crash;
	$w->settles(30);
	$w->mint($w->main, $group->{name}, $group->{line});
	cmp_ok($w->must($w->main, $group->{name},
		"SELECT (extract(epoch FROM snowflake.time_of($w->{last_id})) * 1000)::bigint"), '>=', $raised,
		'ids are above a raised mark');
	return 'mark raised by 3 s' . ($crash ? ", then SIGKILL of the server, clock $step s" : '');
}

sub long_lock
{
	my ($w) = @_;
	my ($what, $hold) = (int rand 3, 1 + rand 2);
	my @sql = (
		'ALTER SEQUENCE snowflake.high_water OWNED BY NONE',
		'DROP EXTENSION snowflake CASCADE',
		'ALTER TABLE app.hot ALTER n SET DEFAULT 0');
	$w->next_door(sub {
		my $pid = background($w, first($w), 'BEGIN', $sql[$what], "SELECT pg_sleep($hold)", 'ROLLBACK');
		sleep $hold / 2;
		$w->query($w->main, 'postgres',
			"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'torture' AND wait_event_type = 'Lock'");
		waitpid $pid, 0;
	});
	return "$sql[$what] held for $hold s";
}

sub cancel
{
	my ($w) = @_;
	my ($step, $rounds, $terminate) = (pick(0, -0.3, -1.5), 8 + int rand 8, pick(0, 1));
	my $function = $terminate ? 'pg_terminate_backend' : 'pg_cancel_backend';
	$w->set_clock($w->main, $w->{base} + $step);
	for (1 .. $rounds)
	{
		$w->query($w->main, 'postgres',
			"SELECT $function(pid) FROM pg_stat_activity WHERE application_name = 'torture'");
		sleep 0.05;
	}
	$w->set_clock($w->main, $w->{base});
	return "$function of all clients, $rounds times, clock $step s";
}

# Opens as many connections as the server accepts, and holds them while the clients try to connect again.
sub connections
{
	my ($w) = @_;
	my $hold = 0.5 + rand 1;
	my $host = $w->main->host;
	my @held;
	for (1 .. 40)
	{
		my $pid = fork() // die "fork: $!";
		if ($pid == 0)
		{
			open STDOUT, '>', '/dev/null';
			open STDERR, '>&', \*STDOUT;
			exec 'psql', '-XAtq', '-h', $host, '-p', $w->main->port, '-U', 'app', '-d', first($w)->{name}, '-c',
			  "SELECT snowflake.next_id($w->{hot} + 1); SELECT pg_sleep($hold)"
			  or POSIX::_exit(127);
		}
		push @held, $pid;
	}
	sleep $hold / 2;
	$w->query($w->main, 'postgres',
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'torture'");
	waitpid $_, 0 for @held;
	return "out of connections for $hold s";
}

# Calls observe() with a generated id that is slightly ahead of the clock, within "snowflake.max_lead". Every later id
# must be greater than the id that observe() received, even after a crash.
sub observe
{
	my ($w) = @_;
	my ($crash, $step) = (pick(0, 1, 1), Crashes::step($w, -0.5, -30, -30));
	my $group = first($w);
	# Stops the clients, because their calls would extend the high-water mark too. The test must detect if observe() did
	# not extend the high-water mark.
	$w->stop_clients($group) if $crash;
	# The argument of observe() must be above the last id of the shard, which may be ahead of the clock.
	my $next = 0;
	for (1 .. 100)
	{
		next if $w->mint($w->main, $group->{name}, $group->{line}) ne '';
		$next = $w->{last_id} + 1;
		last if $next % $w->{ids_per_tick};    # the last sequence number of a time unit has no successor
	}
	my $sent;
	my $observed = $w->next_door(sub {
		$sent = World::now_ns();
		return $w->must($w->main, $group->{name},
			"SELECT id FROM (SELECT greatest($next, snowflake.make_id(clock_timestamp() + least(interval '$w->{max_lead} ms', interval '1 s') / 2, $w->{hot}, 3, $w->{region})) AS id) s, snowflake.observe(id)");
	});
	# Before a crash, the test records the argument of observe() for the checker, as if a client had received the id.
	# Without a crash, the test does not record the argument of observe(), because a client may have minted the same id
	# earlier.
	$w->record($group->{line}, $sent, $observed) if $crash;
	Crashes::between_server_runs($w, 'kill', $step, 0.3) if $crash;
	$w->start_clients($group) if $crash;
	$w->settles(30);
	$w->mint($w->main, $group->{name}, $group->{line});
	cmp_ok($w->{last_id}, '>', $observed, 'the next id is above the observed id');
	return 'observe()' . ($crash ? ", then SIGKILL of the server, clock $step s" : '');
}

# Creates a database that has the OID of a dropped database. For the new database, the server must not use any state of
# the dropped database, such as its limit for ids.
sub oid_reuse
{
	my ($w) = @_;
	my ($oid, $how, $step) = (90000 + int rand 5, pick('immediate', 'kill'), Crashes::step($w, -3, -30));
	my $node = $w->main;
	my $new  = sub { return { node => $node, name => 'reuse', line => $w->new_line, clients => [] } };
	$w->must($node, 'postgres', 'CREATE DATABASE blank');
	$w->must($node, 'blank', 'CREATE EXTENSION snowflake');
	# Sets the high-water mark of the template database to an earlier time. An earlier high-water mark is safe, because no
	# id was minted in the template database.
	$w->must($node, 'blank', "SELECT setval('snowflake.high_water', last_value - 200000) FROM snowflake.high_water");
	my $create = "CREATE DATABASE reuse OID = $oid TEMPLATE blank STRATEGY = file_copy";
	$w->must($node, 'postgres', $create);
	my $first = $new->();
	ok($w->settles(30, $first), 'the first database under an oid mints');
	$w->must($node, 'postgres', $_) for 'DROP DATABASE reuse', $create;
	my $second = $new->();
	ok($w->settles(30, $second), 'the second database under the oid mints');
	unshift @{ $w->{groups} }, $second;
	Crashes::between_server_runs($w, $how, $step, 0.1);
	ok($w->settles(30), 'the second database mints after a crash');
	shift @{ $w->{groups} };
	$w->must($node, 'postgres', $_) for 'DROP DATABASE reuse', 'DROP DATABASE blank';
	return "another database under the oid of a dropped one, then $how, clock $step s";
}

# Causes several faults in the new database "near". Faults in the database "near" must not affect the other databases of
# the server. The high-water mark of the database "near" is a day ahead of the clock, and calls of next_id() fail there.
# Other faults roll back DROP EXTENSION in the database "near", and copy the database. Finally, next_door() mints ids in
# the database "near" as far ahead of the clock as "snowflake.max_lead" permits.
sub next_door
{
	my ($w) = @_;
	my ($node, $hold) = ($w->main, 0.2 + rand 0.6);
	my $group = { node => $node, name => 'near', line => $w->new_line, clients => [] };
	my $mark = "FROM snowflake.high_water";
	$w->must($node, 'postgres', 'CREATE DATABASE near');
	$w->must($node, 'near', 'CREATE EXTENSION snowflake');
	my $ask = sub { return $w->query($node, $_[0], "SELECT $_[1]", extra_params => [ '-v', 'VERBOSITY=verbose', '-U', 'app' ]); };
	$w->next_door(sub {
		$w->must($node, 'near', "SELECT setval('snowflake.high_water', last_value + 86400000) $mark");
		my (undef, undef, $error) = $ask->('near', "snowflake.next_id($w->{hot})");
		like($error, qr/55000/, 'next_id() fails with a mark a day ahead');
		$w->query($node, 'near', 'BEGIN; DROP EXTENSION snowflake; ROLLBACK');
		$w->query($node, 'near', 'SELECT snowflake.observe(snowflake.max_id(clock_timestamp()))');
		$w->must($node, 'postgres', 'CREATE DATABASE copy TEMPLATE near');
		$ask->('copy', "snowflake.next_id($w->{hot})");
		$w->must($node, 'copy', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
		sleep $hold;
	});
	$w->must($node, 'near', "SELECT setval('snowflake.high_water', last_value - 86400000) $mark");
	ok($w->settles(30, $group), 'the database mints when its mark is lowered again');
	$w->next_door(sub {
		my $burst = int($w->{ids_per_ms} * ($w->{max_lead} + 1000));
		$burst = 1_000_000 if $burst > 1_000_000;
		$ask->('near', "cardinality(snowflake.next_ids($w->{hot}, $burst))");
		$ask->('near', "count(snowflake.next_id($w->{hot})) FROM generate_series(1, 20000)");
	});
	$w->must($node, 'postgres', "DROP DATABASE $_") for 'near', 'copy';
	return 'a mark a day ahead next door, and all that comes of it';
}

sub fuzz
{
	my ($w) = @_;
	my ($seed, $seconds) = (int rand 1e9, $w->{short} ? 3 : 6);
	my $node = $w->main;
	$w->must($node, 'postgres', 'CREATE DATABASE fuzz');
	$w->must($node, 'fuzz', 'CREATE EXTENSION snowflake; CREATE TABLE fuzz (id bigint DEFAULT snowflake.next_id(7), '
		  . 'at timestamptz, n int, shard int GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED);'
		  . 'DROP ROLE IF EXISTS fuzz; CREATE ROLE fuzz LOGIN; ALTER TABLE fuzz OWNER TO fuzz; '
		  . 'GRANT CREATE ON SCHEMA public TO fuzz');
	for my $user ('fuzz', scalar getpwuid $<)
	{
		my $out;
		$w->next_door(sub {
			$out = `$w->{programs}/fuzz 'conninfo=host=${\$node->host} port=${\$node->port} dbname=fuzz user=$user' seed=$seed seconds=$seconds 2>&1`;
		});
		is($?, 0, "fuzzed as $user: " . ($out =~ /# (\d+ statements.*)/ ? $1 : 'no summary')) or diag($out);
		print $out;
	}
	$w->must($node, 'postgres', $_) for 'DROP DATABASE fuzz', 'DROP ROLE fuzz';
	return "grammar fuzzer, seed $seed, $seconds s as a plain user and as superuser";
}

1;
