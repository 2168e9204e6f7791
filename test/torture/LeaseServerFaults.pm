# Makes torture faults of the lease server, while servers restart and request regions.
package LeaseServerFaults;

use strict;
use warnings;
use File::Path qw(rmtree);
use PostgreSQL::Test::Utils qw(slurp_file system_or_bail);
use Test::More;
use Time::HiRes qw(sleep);
use World;

our %faults = (
	lease_server_down     => \&lease_server_down,
	lease_server_failover => \&lease_server_failover,
	lease_server_split    => \&lease_server_split,
	lease_server_split_async => \&lease_server_split_async,
	lease_server_moved    => \&lease_server_moved,
	lease_server_copied   => \&lease_server_copied,
	lease_server_readonly => \&lease_server_readonly,
	lease_server_frozen   => \&lease_server_frozen,
	lease_server_alone    => \&lease_server_alone,
	lease_server_unheard  => \&lease_server_unheard,
	lease_server_uncommitted => \&lease_server_uncommitted,
	lease_server_clock    => \&lease_server_clock,
	lease_server_restored => \&lease_server_restored,
	lease_server_pitr     => \&lease_server_pitr,
	lease_server_by_hand  => \&lease_server_by_hand,
	lease_server_full     => \&lease_server_full,
);

sub hold { my ($w) = @_; return $w->pick(0.5, 2, $w->beyond_the_lease + 1); }

sub lease_server_down
{
	my ($w) = @_;
	my ($how, $hold, $both, $churn) = ($w->pick(qw(fast immediate kill)), hold($w), $w->pick(0, 1), $w->pick(0, 1));
	my $lease_server = $w->lease_server;
	$lease_server->end($lease_server->primary, $how);
	$lease_server->end($lease_server->standby, $how) if $both;
	$w->churn($churn);
	sleep $hold;
	$_->start for $lease_server->primary, $both ? $lease_server->standby : ();
	return sprintf 'lease server%s away (%s) for %.1f s', $both ? ' and its standby' : '', $how, $hold;
}

# Promotes the synchronous standby of the lease server, which has received all grants of leases.
sub lease_server_failover
{
	my ($w) = @_;
	my ($how, $wait, $first) = ($w->pick(qw(fast immediate kill)), $w->pick(0, 0, $w->beyond_the_lease), $w->pick(0, 1));
	my $lease_server = $w->lease_server;
	$w->churn(1);
	$lease_server->end($lease_server->primary, $how);
	$lease_server->standby->promote;
	$lease_server->swap;
	# The promoted lease server must refuse all requests until an operator confirms that no data is lost.
	$w->churn(1) if $wait;
	sleep $wait;
	resume($w, $first);
	return sprintf 'lease server (%s) fails over to its synchronous standby, an operator speaks after %.1f s', $how, $wait;
}

# Continues the torture run with the promoted lease server, which has no standby. Commits of the promoted lease server
# wait until the server has a synchronous standby or requires none.
sub resume
{
	my ($w, $first) = @_;
	my $lease_server = $w->lease_server;
	$lease_server->synchronous('') unless $first;
	$lease_server->attach_standby if $first;
	$lease_server->sql('SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)');
	$w->churn(1);
	$lease_server->attach_standby unless $first;
	return;
}

# Simulates a network partition: the standby of the lease server is promoted while the old lease server runs. Commits of
# the old lease server wait for its lost standby.
sub lease_server_split
{
	my ($w) = @_;
	my $hold = $w->pick(0.5, 3);
	my $lease_server = $w->lease_server;
	$lease_server->standby->promote;
	$lease_server->swap;
	$lease_server->synchronous('');
	$lease_server->sql('SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)');
	$w->churn(2);
	sleep $hold;
	$lease_server->end($lease_server->standby, 'kill');
	$w->churn(1);
	$lease_server->attach_standby;
	return "the lease server's standby promoted, the old one running on for $hold s";
}

# Promotes a standby that lacks commits, while the old lease server still grants leases. The promoted lease server must
# refuse all requests until an operator confirms that the old lease server is stopped.
sub lease_server_split_async
{
	my ($w) = @_;
	my ($hold, $lives, $how) = ($w->pick(0.5, 3), 1 + int rand 2, $w->pick(qw(fast kill)));
	my $lease_server  = $w->lease_server;
	my $receiver = $lease_server->standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	$lease_server->synchronous('');
	$w->freeze($receiver);
	$w->churn($lives);
	system_or_bail('pg_ctl', '-s', '-W', '-D', $lease_server->standby->data_dir, 'promote');
	sleep 0.3;
	$w->thaw;
	$lease_server->standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no promotion';
	$lease_server->swap;
	for my $call ('confirm_data_loss(now())', 'confirm_no_data_loss()')
	{
		like($lease_server->try("SELECT snowflake_fleet.$call"), qr/the old lease server has not been confirmed as stopped/, "$call is refused");
	}
	$w->churn(2);
	sleep $hold;
	$lease_server->end($lease_server->standby, $how);
	$lease_server->synchronous('');
	$lease_server->recovered;
	$w->churn(2);
	$lease_server->attach_standby;
	return "an asynchronous standby of the lease server promoted, the old one granting for $hold s more";
}

# Restores the lease server's data from a dump that lacks the last grants of leases.
sub lease_server_moved
{
	my ($w) = @_;
	my ($lives, $wait, $data_only) = (1 + int rand 3, $w->pick(0, 2), $w->pick(0, 1));
	my $lease_server = $w->lease_server;
	my $dump    = $lease_server->primary->basedir . '/fleet.dump';
	my @to      = ('-d', $lease_server->primary->connstr('postgres'));
	system_or_bail('pg_dump', '-Fc', '-f', $dump, @to);
	$w->churn($lives);
	if ($data_only)
	{
		$lease_server->sql('TRUNCATE snowflake_fleet.fleet, snowflake_fleet.server, snowflake_fleet.region');
		system_or_bail('pg_restore', '--data-only', '--disable-triggers', '--single-transaction', @to, $dump);
	}
	else
	{
		like($lease_server->try('DROP EXTENSION snowflake_fleet'), qr/has leases that have not ended/, 'a fleet cannot be dropped while it has leases');
		$lease_server->sql('ALTER EVENT TRIGGER snowflake_fleet_guard_leases DISABLE');
		system_or_bail('pg_restore', '--clean', '--if-exists', '--single-transaction', @to, $dump);
	}
	unlink $dump;
	$w->churn(1);
	sleep $wait;
	like($lease_server->try('SELECT snowflake_fleet.confirm_data_loss(now())'), qr/the old lease server has not been confirmed as stopped/, 'confirm_data_loss() fails without old_is_stopped');
	$lease_server->recovered;
	$w->churn(2);
	return sprintf 'the lease server restored in place%s from a dump of %d lives ago, confirm_data_loss() after %s s', $data_only ? ', its data only,' : '', $lives, $wait;
}

# Starts a second lease server from a base backup of the first, while the first lease server runs. The copy of the lease
# server must refuse all requests, although its address is in the connection string of all servers.
sub lease_server_copied
{
	my ($w) = @_;
	my $lease_server = $w->lease_server;
	my ($primary, $standby) = ($lease_server->primary, $lease_server->standby);
	my $name = 'copied' . ++$lease_server->{copies};
	my $hold = hold($w);
	$standby->stop('immediate');
	rmtree($standby->data_dir);
	$primary->backup($name);
	$standby->init_from_backup($primary, $name);
	rmtree($primary->backup_dir . "/$name");
	$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	unlink $standby->data_dir . '/postgresql.auto.conf';
	$standby->start;
	my $newest = $standby->safe_psql('postgres', 'SELECT newest FROM snowflake_fleet.fleet');
	is($standby->safe_psql('postgres', 'SELECT moved FROM snowflake_fleet.has_moved()'), 't', 'a started base backup detects that it is a copy');
	$lease_server->synchronous('');
	$w->churn(2);
	sleep $hold;
	# Even while the original is stopped, the copy of the lease server must refuse all requests.
	$lease_server->end($primary, 'kill');
	$w->churn(1);
	sleep 1;
	is($standby->safe_psql('postgres', 'SELECT newest FROM snowflake_fleet.fleet'), $newest, 'the started base backup has granted nothing');
	$primary->start;
	$w->churn(1);
	$lease_server->attach_standby;
	return sprintf 'a base backup of the lease server runs beside it for %.1f s', $hold;
}

sub lease_server_readonly
{
	my ($w) = @_;
	my ($standby_only, $hold) = ($w->pick(0, 1), hold($w));
	my $lease_server = $w->lease_server;
	if ($standby_only)
	{
		$lease_server->end($lease_server->primary, 'fast');
		$w->churn(1);
		sleep $hold;
		$lease_server->primary->start;
	}
	else
	{
		$lease_server->sql('ALTER SYSTEM SET default_transaction_read_only = on');
		$lease_server->sql('SELECT pg_reload_conf()');
		$w->churn(1);
		sleep $hold;
		$lease_server->sql('ALTER SYSTEM SET default_transaction_read_only = off');
		$lease_server->sql('SELECT pg_reload_conf()');
	}
	return sprintf '%s for %.1f s', $standby_only ? 'only the standby of the lease server' : 'lease server read-only', $hold;
}

# Suspends the lease server. Requests to the suspended lease server wait in its sockets until the requesting servers
# give up. When the suspended lease server continues, its answers are late.
sub lease_server_frozen
{
	my ($w) = @_;
	my $hold = hold($w);
	$w->freeze_server($w->lease_server->primary);
	$w->churn(1);
	sleep $hold;
	$w->thaw;
	return sprintf 'SIGSTOP of the lease server for %.1f s', $hold;
}

sub lease_server_alone
{
	my ($w) = @_;
	my ($hold, $cancel) = (hold($w), $w->pick(0, 1));
	my $lease_server = $w->lease_server;
	$lease_server->end($lease_server->standby, 'kill');
	$w->churn(1);
	sleep $hold;
	# Cancels commits of the lease server that wait for the standby, as an operator might do.
	$lease_server->try(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'}) if $cancel;
	sleep 0.5;
	$lease_server->standby->start;
	return sprintf 'lease server without its standby for %.1f s%s', $hold, $cancel ? ', waits cancelled' : '';
}

# Checks that a server does not use a lease if the standby of the lease server has not received the grant. A server must
# not use a lease while the commit of its grant waits for the standby, or after an operator has cancelled the wait.
sub lease_server_unheard
{
	my ($w) = @_;
	my $cancels = $w->pick_hard(0, 0, 3);
	my ($lease_server, @others) = ($w->lease_server, $w->members);
	my $receiver = $lease_server->standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	$w->freeze($receiver);
	# While the standby receives no WAL, the lease server answers a request only if the wait for the standby is
	# cancelled.
	$w->relive($_, 'kill') for @others;
	my $cancelled = 0;
	for (1 .. 100)
	{
		last if $cancelled >= $cancels;
		my $now = $lease_server->try(q{SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
		$cancelled += $now =~ /^(\d+)$/ ? $1 : 0;
		sleep 0.1;
	}
	sleep 1;
	$w->mint_now($_) for @others;
	$lease_server->end($lease_server->primary, 'kill');
	system_or_bail('pg_ctl', '-s', '-W', '-D', $lease_server->standby->data_dir, 'promote');
	sleep 0.3;
	$w->thaw;
	$lease_server->standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no promotion';
	$lease_server->swap;
	resume($w, 0);
	$w->relive($w->pick(@others), 'kill');
	return "lease server fails over to a standby that lacks the last grants, $cancelled cancelled";
}

# Makes the commit of a grant fail after its rows were sent to the server. The next request of the same server must get
# the region of the failed grant.
sub lease_server_uncommitted
{
	my ($w) = @_;
	my ($hold, $lease_server, @members) = ($w->pick_hard(0.5, 1.5), $w->lease_server, $w->members);
	$lease_server->sql(<<~'SQL');
		CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON snowflake_fleet.region DEFERRABLE INITIALLY DEFERRED
		  FOR EACH ROW EXECUTE FUNCTION public.refuse()
		SQL
	$w->relive($_, 'kill') for @members;
	$w->mint_now($_) for @members;
	sleep $hold;
	$lease_server->sql('DROP FUNCTION public.refuse() CASCADE');
	$w->churn(1);
	return "commits of the lease server fail for $hold s and more";
}

sub lease_server_clock
{
	my ($w) = @_;
	my ($step, $hold) = ($w->pick(-86400, -30, -3, -1, 1, 3, 30, 86400), hold($w));
	my $lease_server = $w->lease_server;
	$w->set_clock($_, $step) for $lease_server->primary, $lease_server->standby;
	# Requests a lease for a copy of a server while the lease server's clock is wrong. A request of the copy must not
	# end the lease of the original server.
	my $rival = $w->rival($w->some_member);
	$rival->{node}->start;
	$w->mint_now($rival, 1500);
	$w->churn(1);
	sleep $hold;
	$w->churn(1);
	$w->set_clock($_, 0) for $lease_server->primary, $lease_server->standby;
	$w->mint_now($rival, 1500);
	$w->discard($rival->{node});
	return sprintf "the lease server's clock %s s for %.1f s", $step, $hold;
}

# Changes a row of the lease server by hand. The lease server must detect that a row was changed by hand, and grant no
# more leases.
sub lease_server_by_hand
{
	my ($w) = @_;
	my $lease_server = $w->lease_server;
	my $rows = $w->pick('fleet SET halted = false', 'region SET until_ms = floor_ms, incarnation = 0, state = $$given_back$$', 'server SET last_request = now()');
	$lease_server->sql("UPDATE snowflake_fleet.$rows");
	$w->churn(2);
	sleep $w->pick(0, 1);
	like($lease_server->try('SELECT reason FROM snowflake_fleet.health'), qr/were changed by a restore/, 'health shows that rows were changed');
	$lease_server->recovered;
	$w->churn(1);
	return "UPDATE $rows, by hand";
}

# Restores older data files of the lease server, whose timeline stays the same. Connections of other servers are refused
# until confirm_data_loss() was called.
sub lease_server_restored
{
	my ($w) = @_;
	my ($how, $lives) = ($w->pick(qw(fast kill)), 2 + int rand 3);
	my $lease_server = $w->lease_server;
	$lease_server->end($lease_server->standby, 'immediate');
	$lease_server->end($lease_server->primary, 'fast');
	$lease_server->keep_files;
	$lease_server->primary->start;
	$lease_server->synchronous('');
	$w->churn($lives);
	$lease_server->end($lease_server->primary, $how);
	$lease_server->put_back;
	$lease_server->fence(1);
	$lease_server->primary->start;
	$lease_server->synchronous('');
	my $wait = $w->pick(0, 2);
	sleep $wait;
	$lease_server->recovered;
	$lease_server->fence(0);
	$w->churn(2);
	$lease_server->attach_standby;
	return "the lease server's files put back as they were $lives lives ago";
}

# Recovers the lease server to a point in time. The recovered lease server detects the recovery before the first
# request, because its timeline is new.
sub lease_server_pitr
{
	my ($w) = @_;
	my ($lives, $wait) = (2 + int rand 3, $w->pick(0, 0, 3));
	my $lease_server = $w->lease_server;
	my $primary = $lease_server->primary;
	my $name    = 'pitr' . ++$lease_server->{pitrs};
	my $archive = $lease_server->{archive};
	$lease_server->end($lease_server->standby, 'immediate');
	$lease_server->synchronous('');
	$primary->backup($name);
	$w->churn(1);
	$lease_server->sql("SELECT pg_create_restore_point('$name')");
	$w->churn($lives);
	my $segment = $lease_server->sql('SELECT pg_walfile_name(pg_switch_wal())');
	$primary->poll_query_until('postgres', "SELECT coalesce(last_archived_wal >= '$segment', false) FROM pg_stat_archiver")
	  or die 'the archiver of the lease server did not get there';
	$lease_server->end($primary, 'kill');
	rmtree($primary->data_dir);
	$primary->init_from_backup($primary, $name);
	rmtree($primary->backup_dir . "/$name");
	$primary->append_conf('postgresql.conf', "restore_command = 'cp \"$archive/%f\" \"%p\"'\n"
		  . "recovery_target_name = '$name'\nrecovery_target_action = promote");
	$primary->set_recovery_mode;
	$primary->start;
	$primary->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
	$primary->append_conf('postgresql.conf', "restore_command = ''\nrecovery_target_name = ''");
	$w->churn(1);
	sleep $wait;
	$lease_server->recovered;
	$w->churn(1);
	$lease_server->attach_standby;
	return "point-in-time recovery of the lease server to $lives lives ago, confirm_data_loss() after $wait s";
}

# Fills the disk that contains the WAL of the lease server.
sub lease_server_full
{
	my ($w) = @_;
	my $hold = 1 + rand $w->beyond_the_lease;
	my ($lease_server, $disk) = ($w->lease_server, $w->{wal_disk});
	my $primary = $lease_server->primary;
	my $wal     = $primary->data_dir . '/pg_wal';
	$lease_server->end($lease_server->standby, 'immediate');
	$lease_server->synchronous('');
	$primary->stop;
	system_or_bail('cp', '-a', $wal, "$disk/pg_wal");
	rename $wal, "$wal.aside" or die "$wal: $!";
	symlink "$disk/pg_wal", $wal or die "$wal: $!";
	$primary->start;
	$w->{full} = 1;
	open my $filler, '>', "$disk/filler" or die "$disk/filler: $!";
	my $noticed = 0;
	for (1 .. 100)
	{
		for my $size (65536, 512) { 1 while syswrite $filler, "\0" x $size; }
		die "the disk of the WAL does not become full: $!" unless $!{ENOSPC};
		$lease_server->try(q{SELECT pg_logical_emit_message(true, 'fill', repeat('x', 100000))});
		$noticed = $primary->log_content =~ /No space left on device/ and last;
		sleep 0.1;
	}
	ok($noticed, 'the lease server ends because its disk is full');
	$w->churn(1);
	sleep $hold;
	close $filler;
	unlink "$disk/filler";
	$primary->stop('immediate', fail_ok => 1);
	unlink $primary->data_dir . '/postmaster.pid' unless defined $primary->{_pid};
	unlink $wal;
	system_or_bail('cp', '-a', "$disk/pg_wal", $wal);
	rmtree("$disk/pg_wal");
	rmtree("$wal.aside");
	$primary->start;
	$lease_server->attach_standby;
	return sprintf 'the disk of the lease server full for %.1f s', $hold;
}

1;
