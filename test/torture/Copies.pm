# Copies the database during the torture test: with a standby, a backup, a dump or a template. A copy of the database
# contains the ids that were minted before the time of the copy. Each copy is recorded with its time, so that the
# checker of ids can take the copy into account.
package Copies;

use strict;
use warnings;
use PostgreSQL::Test::Utils qw(system_or_bail);
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep);
use Crashes;

our %faults = (
	failover_async => sub { return failover($_[0], 0) },
	failover_sync  => sub { return failover($_[0], 1) },
	switchover     => \&switchover,
	pitr           => \&pitr,
	base_backup    => \&base_backup,
	dump_restore   => \&dump_restore,
	template       => \&template,
	disk_full      => \&disk_full,
	memory_full    => \&memory_full,
);

*pick = \&Crashes::pick;

my $number = 0;
sub name { my ($kind) = @_; return $kind . ++$number; }

sub standby_of
{
	my ($w, $primary, $offset) = @_;
	my $name = name('standby');
	$primary->backup($name);
	my $standby = Snowflake::Node->create_from_backup($name, $primary, $name, has_streaming => 1,
		conf => "synchronous_standby_names = ''");
	$w->set_clock($standby, $w->{base} + $offset);
	$standby->start;
	return $standby;
}

# Checks that a standby does not mint ids. A failed call on a standby must not prevent the standby from reading the new
# high-water mark after its promotion.
sub ask_standby
{
	my ($w, $standby) = @_;
	for my $group ($w->groups)
	{
		$w->must($standby, $group->{name}, 'SELECT * FROM snowflake.health, snowflake.layout');
		my (undef, undef, $error) =
		  $w->query($standby, $group->{name}, "SELECT snowflake.next_id($w->{hot})");
		like($error, qr/25006/, "the standby does not mint in $group->{name}");
	}
	return;
}

# Makes another server the main server of the run, and restarts all clients there. The clock of the new main server may
# be wrong until the torture run corrects the clock.
sub move
{
	my ($w, $to, $fork, $mode, $hold) = @_;
	$w->stop_clients($_) for $w->groups;
	for my $group ($w->groups)
	{
		$group->{line} = $w->new_line(parent => $group->{line}, fork => $fork, mode => $mode) if defined $fork;
		$group->{node} = $to;
	}
	$w->{main} = $to;
	$w->mint($to, $_->{name}, $_->{line}) for $w->groups;
	$w->start_clients($_) for $w->groups;
	sleep $hold;
	return;
}

sub failover
{
	my ($w, $sync) = @_;
	my ($behind, $lag, $hold, $back) =
	  (Crashes::step($w, -3, -30, -600, -0.5, 2), 0.3 + rand 0.7, 0.7 + rand 0.8, pick('', 'rewind', 'backup'));
	my $old = $w->main;
	my $standby = standby_of($w, $old, $behind);
	$old->wait_for_catchup($standby->name, 'replay', $old->lsn('insert'));
	ask_standby($w, $standby);
	my $fork = World::now_ns();
	$old->wait_for_catchup($standby->name, 'replay', $old->lsn('insert'));
	if ($sync)
	{
		$old->safe_psql('postgres',
			"ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf()");
		sleep $lag;
	}
	else
	{
		# Stops the WAL receiver of the standby before a failover, so that the failover loses some commits.
		my $receiver = $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
		kill 'STOP', $receiver if $receiver;
		sleep $lag;
		$old->kill_all;
		kill 'TERM', $receiver if $receiver;
		kill 'CONT', $receiver if $receiver;
	}
	$old->kill_all if $sync;
	$standby->promote;
	# If the clock of the promoted standby is ahead, all new ids are above the ids that the standby never received.
	$fork = undef if $behind > 0;
	$w->{base} += $behind if $behind > 0;
	move($w, $standby, $fork, $sync ? 'committed' : 'plain', $hold);
	$w->correct_clock($standby, $behind, $w->{groups}[0]{name});
	$w->settles(30);

	if ($back eq 'rewind') { fail_back($w, $old, $standby, $behind); }
	else
	{
		$w->discard($old);
		planned($w, standby_of($w, $standby, -$hold), -$hold, $hold) if $back eq 'backup';
	}
	return ($sync ? 'synchronous' : 'asynchronous') . " failover to a clock $behind s"
	  . ($back ? ", and back ($back)" : '');
}

sub fail_back
{
	my ($w, $old, $new, $behind) = @_;
	$w->must($new, 'postgres', 'CHECKPOINT');
	# Removes standby.signal, because pg_rewind first runs the crash recovery of a killed server.
	unlink $old->data_dir . '/standby.signal';
	$old->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	$old->append_conf('postgresql.auto.conf', "synchronous_standby_names = ''");
	$w->set_clock($old, $w->{base});
	my ($port, $host) = ($old->port, $old->host);
	system_or_bail('pg_rewind', '--source-server', $new->connstr('postgres'), '--target-pgdata',
		$old->data_dir);
	$old->append_conf('postgresql.conf', "port = $port\nunix_socket_directories = '$host'\nsynchronous_standby_names = ''");
	$old->enable_streaming($new);
	$w->set_clock($old, $w->{base} - abs $behind);
	$old->start;
	planned($w, $old, -abs $behind, 1);
	return;
}

# Promotes a standby after a clean stop of the primary, which loses no commit. After a failover without loss, the
# checker continues the same history of ids.
sub planned
{
	my ($w, $standby, $behind, $hold) = @_;
	my $old = $w->main;
	ask_standby($w, $standby);
	sleep 1;    # sessions cache the results of their checks for a second
	$old->stop;
	$standby->promote;
	move($w, $standby, undef, undef, $hold);
	$w->correct_clock($standby, $behind, $w->{groups}[0]{name});
	$w->settles(30);
	$w->discard($old);
	return;
}

sub switchover
{
	my ($w) = @_;
	my ($behind, $hold) = (Crashes::step($w, -30, -600, -0.5), 0.5 + rand 0.5);
	planned($w, standby_of($w, $w->main, $behind), $behind, $hold);
	return "planned switch-over to a clock $behind s";
}

# Starts a copy of the server while the original continues. After a server was copied, the checker keeps two histories
# of ids, one for each server.
sub branch
{
	my ($w, $node, $fork, $offset, $hold) = @_;
	my @branches;
	for my $group ($w->groups)
	{
		my $line = $w->new_line(parent => $group->{line}, fork => $fork);
		push @branches, { %$group, node => $node, line => $line, clients => [] };
	}
	$w->mint($node, $_->{name}, $_->{line}) for @branches;
	$w->start_clients($_, 1) for @branches;
	sleep $hold;
	$w->correct_clock($node, $offset, $branches[0]{name});
	ok($w->settles(30, @branches), 'the copy mints when its clock is right');
	$w->stop_clients($_) for @branches;
	$w->discard($node);
	return;
}

sub pitr
{
	my ($w) = @_;
	my ($behind, $before, $hold) = (Crashes::step($w, -30, -600, -86400, -0.5), 0.2 + rand 0.5, 0.5 + rand 0.7);
	my $name = name('pitr');
	my $main = $w->main;
	$main->enable_archiving;
	$main->append_conf('postgresql.conf', 'archive_mode = on');
	if ($w->must($main, 'postgres', 'SHOW archive_mode') ne 'on')
	{
		$main->restart;
	}
	$w->must($main, 'postgres', 'SELECT pg_reload_conf()');
	$main->backup($name);
	sleep $before;
	my $fork = World::now_ns();
	$w->must($main, 'postgres', "SELECT pg_create_restore_point('$name')");
	sleep $before;
	my $segment = $w->must($main, 'postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
	$main->poll_query_until('postgres',
		"SELECT coalesce(last_archived_wal >= '$segment', false) FROM pg_stat_archiver")
	  or die 'the archiver did not get there';

	my $node = Snowflake::Node->create_from_backup($name, $main, $name, has_restoring => 1, standby => 0,
		conf => "recovery_target_name = '$name'\nrecovery_target_action = 'promote'\narchive_mode = off");
	$w->set_clock($node, $w->{base} + $behind);
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
	branch($w, $node, $fork, $behind, $hold);
	rmtree_backup($main, $name);
	return "point-in-time recovery under a clock $behind s";
}

sub base_backup
{
	my ($w) = @_;
	my ($behind, $hold) = (Crashes::step($w, -30, -600, -86400, -0.5), 0.5 + rand 0.7);
	my $name = name('backup');
	my $fork = World::now_ns();
	$w->main->backup($name);
	my $node = Snowflake::Node->create_from_backup($name, $w->main, $name,
		conf => "archive_mode = off\nsynchronous_standby_names = ''");
	rmtree_backup($w->main, $name);
	$w->set_clock($node, $w->{base} + $behind);
	$node->start;
	branch($w, $node, $fork, $behind, $hold);
	return "base backup restored under a clock $behind s";
}

sub rmtree_backup
{
	my ($node, $name) = @_;
	File::Path::rmtree($node->backup_dir . "/$name");
	return;
}

sub dump_restore
{
	my ($w) = @_;
	my ($behind, $hold) = (Crashes::step($w, -30, -600, -0.5), 0.5 + rand 0.7);
	my $node = $w->new_server(name('restored'));
	$w->set_clock($node, $w->{base} + $behind);
	$node->start;
	$w->must($node, 'postgres', 'CREATE ROLE app LOGIN');
	my $fork = World::now_ns();
	for my $group ($w->groups)
	{
		$w->must($node, 'postgres', "CREATE DATABASE $group->{name}");
		my $from = '-h ' . $w->main->host . ' -p ' . $w->main->port;
		my $to   = '-h ' . $node->host . ' -p ' . $node->port;
		system_or_bail('bash', '-o', 'pipefail', '-c',
			"pg_dump $from $group->{name} | psql -Xq -v ON_ERROR_STOP=1 $to $group->{name} >/dev/null");
	}
	branch($w, $node, $fork, $behind, $hold);
	return "pg_dump restored into a new server, clock $behind s";
}

# Copies a database with CREATE DATABASE and TEMPLATE in the same server. The copied high-water mark must be above all
# ids of the original database.
sub template
{
	my ($w) = @_;
	my ($how, $step, $hold) = (pick('immediate', 'kill'), Crashes::step($w, -30, -0.5, -600), 0.4 + rand 0.5);
	my $group = $w->{groups}[0];
	my $node  = $w->main;
	$w->stop_clients($group);
	my $fork = World::now_ns();
	$w->next_door(sub {
		$w->must($node, 'postgres',
			"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '$group->{name}'");
		$w->must($node, 'postgres', "CREATE DATABASE copy TEMPLATE $group->{name}");
		my $line = $w->new_line(parent => $group->{line}, fork => $fork);
		my $copy = { %$group, name => 'copy', line => $line, clients => [] };
		push @{ $w->{groups} }, $copy;
		$w->start_clients($group);
		$w->start_clients($copy, 2);
		sleep $hold;
	});
	Crashes::between_server_runs($w, $how, $step, $hold);
	ok($w->settles(30), 'original and copy mint');
	$w->stop_clients(pop @{ $w->{groups} });
	$w->must($node, 'postgres', 'DROP DATABASE copy WITH (FORCE)');
	return "CREATE DATABASE ... TEMPLATE, then $how, clock $step s";
}

# Fills the disk of the WAL. If PostgreSQL cannot write WAL, the server stops with a PANIC. After the disk was full, no
# earlier id may be minted again, and minting must continue when the disk has free space.
sub disk_full
{
	my ($w) = @_;
	my ($step, $hold) = (pick(0, -0.5, -3), 2 + rand 1);
	my $disk = $w->{wal_disk};
	my $node = $w->new_server(name('full'), extra => [ '-X', "$disk/pg_wal", '--wal-segsize=1' ],
		settings => { min_wal_size => '2MB', max_wal_size => '4MB', wal_recycle => 'off', wal_keep_size => 0 });
	$node->start;
	$w->must($node, 'postgres', 'CREATE ROLE app LOGIN');
	$w->must($node, 'postgres', 'CREATE DATABASE d');
	$w->must($node, 'd', 'CREATE EXTENSION snowflake;' . $w->schema);
	my $group = { node => $node, name => 'd', line => $w->new_line, clients => [] };
	$w->start_clients($group, 2);
	ok($w->settles(30, $group), 'a database whose WAL is on a small disk mints');
	sleep 0.5;
	open my $filler, '>', "$disk/filler" or die "$disk/filler: $!";
	my $noticed = 0;
	for (1 .. 200)
	{
		# Fills the disk of the WAL repeatedly, because a checkpoint may free space, and clients may write almost no
		# WAL.
		for my $size (65536, 512) { 1 while syswrite $filler, "\0" x $size; }
		die "the disk of the WAL does not become full: $!" unless $!{ENOSPC};
		$node->psql('d', "SELECT pg_logical_emit_message(true, 'fill', repeat('x', 100000))");
		sleep 0.1;
		$noticed = $node->log_content =~ /No space left on device/ and last;
	}
	ok($noticed, 'PostgreSQL ends because the disk of the WAL is full');
	sleep $hold;
	$node->stop('immediate', fail_ok => 1);
	close $filler;
	unlink "$disk/filler";
	unlink $node->data_dir . '/postmaster.pid' unless defined $node->{_pid};
	$w->set_clock($node, $w->{base} + $step);
	$node->start;
	$w->mint($node, 'd', $group->{line});
	sleep 0.5;
	$w->set_clock($node, $w->{base});
	ok($w->settles(30, $group), 'the database mints when the disk has space again');
	$w->stop_clients($group);
	$w->discard($node);
	File::Path::rmtree("$disk/pg_wal");
	return "the disk of the WAL full, clock $step s afterwards";
}

# Fills the file system that contains the server's shared memory (pg_dynshmem). A database that already mints ids must
# continue while the disk is full. The first call in another database must fail because the disk is full, without
# leaving shared memory behind. When the disk has free space again, the first call in the other database must succeed.
sub memory_full
{
	my ($w) = @_;
	my $memory = "$w->{wal_disk}/memory";
	mkdir $memory or die "$memory: $!";
	my $node = $w->new_server(name('crowded'));
	my $link = $node->data_dir . '/pg_dynshmem';
	rmdir $link or die "$link: $!";
	symlink $memory, $link or die "$link: $!";
	$node->start;
	$w->must($node, 'postgres', 'CREATE ROLE app LOGIN');
	my @groups = map { { node => $node, name => $_, line => $w->new_line, clients => [] } } 'd', 'late';
	$w->must($node, 'postgres', "CREATE DATABASE $_->{name}") for @groups;
	$w->must($node, 'd', 'CREATE EXTENSION snowflake;' . $w->schema);
	$w->start_clients($groups[0], 2);
	ok($w->settles(30, $groups[0]), 'a database whose shared memory is on a small disk mints');
	open my $filler, '>', "$memory.full" or die "$memory.full: $!";
	for my $size (65536, 512) { 1 while syswrite $filler, "\0" x $size; }
	die "the disk of the shared memory does not become full: $!" unless $!{ENOSPC};
	my $segments = sub { return join ' ', sort glob "$memory/*" };
	my $before = $segments->();
	$w->must($node, 'late', 'CREATE EXTENSION snowflake;' . $w->schema);
	$w->start_clients($groups[1], 3);
	is(scalar(grep { $w->mint($node, 'late', $groups[1]{line}) =~ /53100.*could not resize shared memory segment/ } 1 .. 20), 20,
		'the first call in a database fails without shared memory');
	ok($w->settles(30, $groups[0]), 'a database that has shared memory continues to mint');
	# A call that fails keeps its segment of shared memory until the call ends.
	my $left = '';
	for (1 .. 300) { last if ($left = $segments->()) eq $before; sleep 0.1; }
	is($left, $before, 'failed calls leave no shared memory behind');
	is($w->must($node, 'late', "SELECT count(*) FROM snowflake.databases WHERE database = 'late'"), '0', 'failed calls leave no state of the database behind');
	close $filler;
	unlink "$memory.full";
	ok($w->settles(30, @groups), 'both databases mint when there is space again');
	sleep 0.5;
	$w->stop_clients($_) for @groups;
	$w->discard($node);
	File::Path::rmtree($memory);
	return 'no room for shared memory';
}

1;
