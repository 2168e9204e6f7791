# Faults of the lease server while servers restart and request regions.
package FleetControl;

use strict;
use warnings;
use File::Path qw(rmtree);
use PostgreSQL::Test::Utils qw(slurp_file system_or_bail);
use Test::More;
use Time::HiRes qw(sleep);
use World;

our %faults = (
	control_down     => \&control_down,
	control_failover => \&control_failover,
	control_split    => \&control_split,
	control_split_async => \&control_split_async,
	control_moved    => \&control_moved,
	control_copied   => \&control_copied,
	control_readonly => \&control_readonly,
	control_frozen   => \&control_frozen,
	control_alone    => \&control_alone,
	control_unheard  => \&control_unheard,
	control_uncommitted => \&control_uncommitted,
	control_clock    => \&control_clock,
	control_restored => \&control_restored,
	control_pitr     => \&control_pitr,
	control_by_hand  => \&control_by_hand,
	control_full     => \&control_full,
);

sub hold { my ($w) = @_; return $w->pick(0.5, 2, $w->beyond_the_lease + 1); }

sub control_down
{
	my ($w) = @_;
	my ($how, $hold, $both, $churn) = ($w->pick(qw(fast immediate kill)), hold($w), $w->pick(0, 1), $w->pick(0, 1));
	my $control = $w->control;
	$control->end($control->primary, $how);
	$control->end($control->standby, $how) if $both;
	$w->churn($churn);
	sleep $hold;
	$_->start for $control->primary, $both ? $control->standby : ();
	return sprintf 'lease server%s away (%s) for %.1f s', $both ? ' and its standby' : '', $how, $hold;
}

# Promotes the synchronous standby, which has all grants.
sub control_failover
{
	my ($w) = @_;
	my ($how, $wait, $first) = ($w->pick(qw(fast immediate kill)), $w->pick(0, 0, $w->beyond_the_lease), $w->pick(0, 1));
	my $control = $w->control;
	$w->churn(1);
	$control->end($control->primary, $how);
	$control->standby->promote;
	$control->swap;
	# The promoted lease server grants nothing until an operator confirms.
	$w->churn(1) if $wait;
	sleep $wait;
	resume($w, $first);
	return sprintf 'lease server (%s) fails over to its synchronous standby, an operator speaks after %.1f s', $how, $wait;
}

# Continues with the promoted standby, which has no standby. Its commits wait until it has one or requires none.
sub resume
{
	my ($w, $first) = @_;
	my $control = $w->control;
	$control->synchronous('') unless $first;
	$control->attach_standby if $first;
	$control->sql('SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)');
	$w->churn(1);
	$control->attach_standby unless $first;
	return;
}

# A network partition: the standby is promoted while the old primary runs. Commits of the old primary wait for the lost
# standby.
sub control_split
{
	my ($w) = @_;
	my $hold = $w->pick(0.5, 3);
	my $control = $w->control;
	$control->standby->promote;
	$control->swap;
	$control->synchronous('');
	$control->sql('SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)');
	$w->churn(2);
	sleep $hold;
	$control->end($control->standby, 'kill');
	$w->churn(1);
	$control->attach_standby;
	return "the lease server's standby promoted, the old one running on for $hold s";
}

# Promotes a standby that lacks commits, while the old lease server still grants. The new one grants nothing until an
# operator has stopped the old one.
sub control_split_async
{
	my ($w) = @_;
	my ($hold, $lives, $how) = ($w->pick(0.5, 3), 1 + int rand 2, $w->pick(qw(fast kill)));
	my $control  = $w->control;
	my $receiver = $control->standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	$control->synchronous('');
	$w->freeze($receiver);
	$w->churn($lives);
	system_or_bail('pg_ctl', '-s', '-W', '-D', $control->standby->data_dir, 'promote');
	sleep 0.3;
	$w->thaw;
	$control->standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no promotion';
	$control->swap;
	for my $call ('confirm_data_loss(now())', 'confirm_no_data_loss()')
	{
		like($control->try("SELECT snowflake_fleet.$call"), qr/the old lease server has not been confirmed as stopped/, "$call is refused");
	}
	$w->churn(2);
	sleep $hold;
	$control->end($control->standby, $how);
	$control->synchronous('');
	$control->recovered;
	$w->churn(2);
	$control->attach_standby;
	return "an asynchronous standby of the lease server promoted, the old one granting for $hold s more";
}

# Restores the lease server in place from a dump that lacks the last grants.
sub control_moved
{
	my ($w) = @_;
	my ($lives, $wait, $data_only) = (1 + int rand 3, $w->pick(0, 2), $w->pick(0, 1));
	my $control = $w->control;
	my $dump    = $control->primary->basedir . '/fleet.dump';
	my @to      = ('-d', $control->primary->connstr('postgres'));
	system_or_bail('pg_dump', '-Fc', '-f', $dump, @to);
	$w->churn($lives);
	if ($data_only)
	{
		$control->sql('TRUNCATE snowflake_fleet.fleet, snowflake_fleet.server, snowflake_fleet.region');
		system_or_bail('pg_restore', '--data-only', '--disable-triggers', '--single-transaction', @to, $dump);
	}
	else
	{
		like($control->try('DROP EXTENSION snowflake_fleet'), qr/has leases that have not ended/, 'a fleet cannot be dropped while it has leases');
		$control->sql('ALTER EVENT TRIGGER snowflake_fleet_guard_leases DISABLE');
		system_or_bail('pg_restore', '--clean', '--if-exists', '--single-transaction', @to, $dump);
	}
	unlink $dump;
	$w->churn(1);
	sleep $wait;
	like($control->try('SELECT snowflake_fleet.confirm_data_loss(now())'), qr/the old lease server has not been confirmed as stopped/, 'confirm_data_loss() fails without old_is_stopped');
	$control->recovered;
	$w->churn(2);
	return sprintf 'the lease server restored in place%s from a dump of %d lives ago, confirm_data_loss() after %s s', $data_only ? ', its data only,' : '', $lives, $wait;
}

# Starts a base backup of the lease server. The copy must refuse all requests, so its address can be in the servers'
# list.
sub control_copied
{
	my ($w) = @_;
	my $control = $w->control;
	my ($primary, $standby) = ($control->primary, $control->standby);
	my $name = 'copied' . ++$control->{copies};
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
	$control->synchronous('');
	$w->churn(2);
	sleep $hold;
	# The copy must also refuse if the original is stopped.
	$control->end($primary, 'kill');
	$w->churn(1);
	sleep 1;
	is($standby->safe_psql('postgres', 'SELECT newest FROM snowflake_fleet.fleet'), $newest, 'the started base backup has granted nothing');
	$primary->start;
	$w->churn(1);
	$control->attach_standby;
	return sprintf 'a base backup of the lease server runs beside it for %.1f s', $hold;
}

sub control_readonly
{
	my ($w) = @_;
	my ($standby_only, $hold) = ($w->pick(0, 1), hold($w));
	my $control = $w->control;
	if ($standby_only)
	{
		$control->end($control->primary, 'fast');
		$w->churn(1);
		sleep $hold;
		$control->primary->start;
	}
	else
	{
		$control->sql('ALTER SYSTEM SET default_transaction_read_only = on');
		$control->sql('SELECT pg_reload_conf()');
		$w->churn(1);
		sleep $hold;
		$control->sql('ALTER SYSTEM SET default_transaction_read_only = off');
		$control->sql('SELECT pg_reload_conf()');
	}
	return sprintf '%s for %.1f s', $standby_only ? 'only the standby of the lease server' : 'lease server read-only', $hold;
}

# Suspends the lease server. Requests wait in its sockets, and the servers give up. When the lease server continues, it
# answers late.
sub control_frozen
{
	my ($w) = @_;
	my $hold = hold($w);
	$w->freeze_server($w->control->primary);
	$w->churn(1);
	sleep $hold;
	$w->thaw;
	return sprintf 'SIGSTOP of the lease server for %.1f s', $hold;
}

sub control_alone
{
	my ($w) = @_;
	my ($hold, $cancel) = (hold($w), $w->pick(0, 1));
	my $control = $w->control;
	$control->end($control->standby, 'kill');
	$w->churn(1);
	sleep $hold;
	# An operator cancels the commits that wait for the standby.
	$control->try(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'}) if $cancel;
	sleep 0.5;
	$control->standby->start;
	return sprintf 'lease server without its standby for %.1f s%s', $hold, $cancel ? ', waits cancelled' : '';
}

# Checks that a grant which did not reach the standby is not used, neither while its commit waits nor after the wait is
# cancelled.
sub control_unheard
{
	my ($w) = @_;
	my $cancels = $w->pick_hard(0, 0, 3);
	my ($control, @others) = ($w->control, $w->members);
	my $receiver = $control->standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	$w->freeze($receiver);
	# At this point a request gets no answer, or the answer of a commit whose wait was cancelled.
	$w->relive($_, 'kill') for @others;
	my $cancelled = 0;
	for (1 .. 100)
	{
		last if $cancelled >= $cancels;
		my $now = $control->try(q{SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
		$cancelled += $now =~ /^(\d+)$/ ? $1 : 0;
		sleep 0.1;
	}
	sleep 1;
	$w->mint_now($_) for @others;
	$control->end($control->primary, 'kill');
	system_or_bail('pg_ctl', '-s', '-W', '-D', $control->standby->data_dir, 'promote');
	sleep 0.3;
	$w->thaw;
	$control->standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no promotion';
	$control->swap;
	resume($w, 0);
	$w->relive($w->pick(@others), 'kill');
	return "lease server fails over to a standby that lacks the last grants, $cancelled cancelled";
}

# Makes the commit of a grant fail after its rows were sent. The next request gets the region.
sub control_uncommitted
{
	my ($w) = @_;
	my ($hold, $control, @members) = ($w->pick_hard(0.5, 1.5), $w->control, $w->members);
	$control->sql(<<~'SQL');
		CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON snowflake_fleet.region DEFERRABLE INITIALLY DEFERRED
		  FOR EACH ROW EXECUTE FUNCTION public.refuse()
		SQL
	$w->relive($_, 'kill') for @members;
	$w->mint_now($_) for @members;
	sleep $hold;
	$control->sql('DROP FUNCTION public.refuse() CASCADE');
	$w->churn(1);
	return "commits of the lease server fail for $hold s and more";
}

sub control_clock
{
	my ($w) = @_;
	my ($step, $hold) = ($w->pick(-86400, -30, -3, -1, 1, 3, 30, 86400), hold($w));
	my $control = $w->control;
	$w->set_clock($_, $step) for $control->primary, $control->standby;
	# While the lease server's clock is wrong, a copy requests a lease. The request must not end the lease of another
	# server.
	my $rival = $w->rival($w->some_member);
	$rival->{node}->start;
	$w->mint_now($rival, 1500);
	$w->churn(1);
	sleep $hold;
	$w->churn(1);
	$w->set_clock($_, 0) for $control->primary, $control->standby;
	$w->mint_now($rival, 1500);
	$w->discard($rival->{node});
	return sprintf "the lease server's clock %s s for %.1f s", $step, $hold;
}

# Changes a row by hand, which must halt the lease server.
sub control_by_hand
{
	my ($w) = @_;
	my $control = $w->control;
	my $rows = $w->pick('fleet SET halted = false', 'region SET until_ms = floor_ms, incarnation = 0, state = $$given_back$$', 'server SET last_request = now()');
	$control->sql("UPDATE snowflake_fleet.$rows");
	$w->churn(2);
	sleep $w->pick(0, 1);
	like($control->try('SELECT reason FROM snowflake_fleet.health'), qr/were written by a restore/, 'health shows that rows were changed');
	$control->recovered;
	$w->churn(1);
	return "UPDATE $rows, by hand";
}

# Restores the files of the lease server, on the same timeline. Servers cannot connect to it before confirm_data_loss().
sub control_restored
{
	my ($w) = @_;
	my ($how, $lives) = ($w->pick(qw(fast kill)), 2 + int rand 3);
	my $control = $w->control;
	$control->end($control->standby, 'immediate');
	$control->end($control->primary, 'fast');
	$control->keep_files;
	$control->primary->start;
	$control->synchronous('');
	$w->churn($lives);
	$control->end($control->primary, $how);
	$control->put_back;
	$control->fence(1);
	$control->primary->start;
	$control->synchronous('');
	my $wait = $w->pick(0, 2);
	sleep $wait;
	$control->recovered;
	$control->fence(0);
	$w->churn(2);
	$control->attach_standby;
	return "the lease server's files put back as they were $lives lives ago";
}

# A point-in-time recovery of the lease server. The recovered lease server has a new timeline, so it detects the
# recovery before the first request.
sub control_pitr
{
	my ($w) = @_;
	my ($lives, $wait) = (2 + int rand 3, $w->pick(0, 0, 3));
	my $control = $w->control;
	my $primary = $control->primary;
	my $name    = 'pitr' . ++$control->{pitrs};
	my $archive = $control->{archive};
	$control->end($control->standby, 'immediate');
	$control->synchronous('');
	$primary->backup($name);
	$w->churn(1);
	$control->sql("SELECT pg_create_restore_point('$name')");
	$w->churn($lives);
	my $segment = $control->sql('SELECT pg_walfile_name(pg_switch_wal())');
	$primary->poll_query_until('postgres', "SELECT coalesce(last_archived_wal >= '$segment', false) FROM pg_stat_archiver")
	  or die 'the archiver of the lease server did not get there';
	$control->end($primary, 'kill');
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
	$control->recovered;
	$w->churn(1);
	$control->attach_standby;
	return "point-in-time recovery of the lease server to $lives lives ago, confirm_data_loss() after $wait s";
}

# Fills the file system of the lease server's WAL.
sub control_full
{
	my ($w) = @_;
	my $hold = 1 + rand $w->beyond_the_lease;
	my ($control, $disk) = ($w->control, $w->{wal_disk});
	my $primary = $control->primary;
	my $wal     = $primary->data_dir . '/pg_wal';
	$control->end($control->standby, 'immediate');
	$control->synchronous('');
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
		$control->try(q{SELECT pg_logical_emit_message(true, 'fill', repeat('x', 100000))});
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
	$control->attach_standby;
	return sprintf 'the disk of the lease server full for %.1f s', $hold;
}

1;
