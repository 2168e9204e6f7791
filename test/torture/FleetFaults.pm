# Makes torture faults of one of several leasing servers: the server crashes, is suspended, loses its region, or has a
# wrong clock. As in Crashes.pm, each fault first chooses its random parameters. After each fault the clock of the
# server is right again.
package FleetFaults;

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use World;

our %faults = (
	server_kill    => \&server_kill,
	power_cut      => \&power_cut,
	restarts       => \&restarts,
	backend_kill   => \&backend_kill,
	worker_kill    => \&worker_kill,
	worker_frozen  => \&worker_frozen,
	postmaster_frozen => \&postmaster_frozen,
	server_frozen  => \&server_frozen,
	revoke         => \&revoke,
	clock_step     => \&clock_step,
	clock_jitter   => \&clock_jitter,
	observe        => \&observe,
	recreate       => \&recreate,
);

my @back  = (-0.001, -0.05, -0.5, -1, -3, -30, -600, -86400);
my @ahead = (0.5, 1, 3, 30, 3500, 86400);

# Limits a step ahead to 1 s if the server has a static region. A server with a static region cannot detect that its
# clock is ahead, so its ids would follow the clock.
sub bearable
{
	my ($group, $step) = @_;
	return !$group->{leased} && $step > 1 ? 1 : $step;
}

sub server_kill
{
	my ($w) = @_;
	my ($group, $how, $step, $hold) =
	  ($w->pick($w->groups), $w->pick(qw(kill kill immediate fast)), $w->pick(0, @back, @ahead), 0.5 + rand 1.5);
	$step = bearable($group, $step);
	$w->relive($group, $how, $step);
	$w->mint_now($group);
	sleep $hold;
	$w->correct($group, $step);
	return "$group->{title}: $how, its clock $step s between the lives";
}

# Kills all servers at once. When the servers start again, together they request more regions than are free.
sub power_cut
{
	my ($w) = @_;
	my @steps = map { [ $_, $w->pick(0, -0.5, -1, -30) ] } $w->groups;
	$_->[0]{node}->kill_all for @steps;
	$w->relive($_->[0], 'immediate', $_->[1]) for @steps;
	$w->mint_now($_->[0]) for @steps;
	$w->correct(@$_) for @steps;
	return 'SIGKILL of all servers, their clocks ' . join(', ', map { $_->[1] } @steps) . ' s';
}

sub restarts
{
	my ($w) = @_;
	my $member = $w->some_member;
	my $lives  = 4;
	my $minted = 0;
	for (1 .. $lives)
	{
		$w->relive($member, 'kill', $w->pick(0, 0, -0.05, -0.5));
		$minted += $w->mint_now($member);
	}
	$w->correct($member, 0);
	return "$member->{title}: $lives lives, $minted of them minted at once, of two regions";
}

# Kills a backend, which makes the server restart its processes. A server that restarts its processes after a crash
# keeps its leased region.
sub backend_kill
{
	my ($w) = @_;
	my ($member, $step) = ($w->some_member, $w->pick(0, -0.05, -0.5, -3));
	my $pid = $w->query($member->{node}, 'postgres', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'torture' LIMIT 1});
	$w->set_clock($member->{node}, $step);
	kill 9, $pid if $pid =~ /^\d+$/;
	sleep 0.3;
	$w->mint_now($member);
	$w->set_clock($member->{node}, 0);
	return "$member->{title}: SIGKILL of a backend, clock $step s";
}

sub worker_kill
{
	my ($w) = @_;
	my ($member, $signal, $step) = ($w->some_member, $w->pick(qw(KILL KILL TERM)), $w->pick(0, -0.5, -3));
	my $worker = $w->worker_of($member);
	$w->set_clock($member->{node}, $step);
	kill $signal, $worker;
	sleep 0.3;
	$w->mint_now($member);
	sleep $w->pick(0, 1);
	$w->set_clock($member->{node}, 0);
	return "$member->{title}: SIG$signal of the worker, clock $step s";
}

# Suspends the worker that renews the lease. If the lease ends while its worker is suspended, a copy of the server
# leases the region.
sub worker_frozen
{
	my ($w) = @_;
	my $member = $w->some_member;
	my ($hold, $step) = ($w->pick_hard(0.5, $w->beyond_the_lease), $w->pick_hard(-86400, -3, -0.5, 0, 0));
	my $rival = $hold > 1 ? $w->rival($member) : undef;
	my $region = $w->region_of($member);
	$w->freeze($w->worker_of($member));
	sleep $hold;
	# A step back of the clock must not prolong the server's lease.
	$w->set_clock($member->{node}, $step);
	my $taken = $rival && $w->take_over($rival, $region);
	$w->mint_now($member);
	sleep 0.5;
	$w->thaw;
	$w->set_clock($member->{node}, 0);
	return sprintf "%s: SIGSTOP of the worker for %.1f s and more, its region %staken by a copy, clock %s s",
	  $member->{title}, $hold, $taken ? '' : 'not ', $step;
}

sub postmaster_frozen
{
	my ($w) = @_;
	my ($member, $hold) = ($w->some_member, $w->pick(0.5, $w->beyond_the_lease));
	$w->freeze($member->{node}{_pid});
	sleep $hold;
	$w->churn(1, $w->others($member));
	$w->thaw;
	return sprintf "%s: SIGSTOP of the postmaster for %.1f s", $member->{title}, $hold;
}

# Suspends all processes of a server, as if the machine were suspended. When the suspended processes continue, sessions
# are in the middle of a call.
sub server_frozen
{
	my ($w) = @_;
	my ($member, $step) = ($w->some_member, $w->pick(0, -0.5, -3, -30));
	my $rival = $w->rival($member);
	my $region = $w->region_of($member);
	$w->freeze_server($member->{node});
	sleep $w->beyond_the_lease;
	my $taken = $w->take_over($rival, $region);
	$w->set_clock($member->{node}, $step);
	$w->thaw;
	sleep 0.3;
	$w->set_clock($member->{node}, 0);
	return "$member->{title}: SIGSTOP of all of it beyond its lease, "
	  . 'its region ' . ($taken ? '' : 'not ') . "taken by a copy, clock $step s afterwards";
}

sub revoke
{
	my ($w) = @_;
	my $member = $w->some_member;
	my $hold = $w->pick_hard(0.5, $w->beyond_the_lease);
	my $rival = $hold > 1 ? $w->rival($member) : undef;
	my $region = $w->region_of($member);
	my $said = $w->lease_server->try("SELECT snowflake_fleet.revoke_lease($region)");
	$w->churn(1, $w->others($member)) if rand() < 0.5;
	sleep $hold;
	my $taken = $rival && $w->take_over($rival, $region);
	return "$member->{title}: the lease of region $region revoked" . ($said =~ /is revoked/ ? '' : ', which it did not hold')
	  . ($taken ? ', and a copy took it' : '');
}

sub clock_step
{
	my ($w) = @_;
	my ($group, $step, $hold) =
	  ($w->pick($w->groups), $w->pick(@back, @ahead), $w->pick(0.5, 1.5, $w->beyond_the_lease));
	$step = bearable($group, $step);
	$w->set_clock($group->{node}, $step);
	sleep $hold / 2;
	# At random, restarts the server, because the lease server must detect the wrong clock of a restarted server, too.
	my $renewed = rand() < 0.3;
	$w->relive($group, 'kill', $step) if $renewed;
	sleep $hold / 2;
	$w->set_clock($group->{node}, 0);
	$w->correct($group, $step) if $renewed;
	return sprintf "%s: clock %s s for %.1f s%s", $group->{title}, $step, $hold, $renewed ? ', killed under it' : '';
}

sub clock_jitter
{
	my ($w) = @_;
	my ($amplitude, $until) = ($w->pick(0.05, 0.2, 1, 2), 1 + rand 2);
	my @groups = $w->groups;
	for (my $t = 0; $t < $until; $t += 0.05)
	{
		$w->set_clock($_->{node}, $amplitude * (2 * rand() - 1)) for @groups;
		sleep 0.05;
	}
	$w->set_clock($_->{node}, 0) for @groups;
	return "clock jitter of $amplitude s on all servers";
}

# Passes an id of another server to observe(). After a server has passed an id to observe(), all its later ids must be
# greater than the passed id, in every region.
sub observe
{
	my ($w) = @_;
	my ($from, $crash, $step) = ($w->pick($w->groups), $w->pick(0, 1, 1), $w->pick(0, -0.5, -1, -30));
	my $to = $w->pick(grep { $_ != $from } $w->groups);
	$w->settles(30, $from);
	my $id = $w->{last_id};
	my ($code, $error) = ('', '');
	for (1 .. 100)
	{
		($code, undef, $error) = $w->query($to->{node}, $to->{name}, "SELECT snowflake.observe($id)");
		last if $code eq '0';
		sleep 0.1;
	}
	die "an id cannot be observed: $error" unless $code eq '0';
	$w->say(join ' ', 'observed', $to->{line}, World::now_ns(), $id);
	if ($crash)
	{
		$w->relive($to, 'kill', $step);
		$w->mint_now($to);
		$w->correct($to, $step);
	}
	return "an id of $from->{title} observed by $to->{title}" . ($crash ? ", then SIGKILL, clock $step s" : '');
}

# Drops and creates a database while the clock is set back. The new database contains no record of the ids that were
# already minted in the same region.
sub recreate
{
	my ($w) = @_;
	my ($member, $crash, $step) = ($w->some_member, $w->pick(0, 1), $w->pick_hard(-0.5, -1, -3));
	my $node = $member->{node};
	my $make = sub {
		$w->must($node, 'postgres', 'CREATE DATABASE extra');
		$w->must($node, 'extra', 'CREATE EXTENSION snowflake');
	};
	$make->();
	my $before = $w->mint_extra($member, 'extra', 5000);
	$w->set_clock($node, $step);
	if ($crash)
	{
		my $pid = $w->query($node, 'postgres', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'torture' LIMIT 1});
		kill 9, $pid if $pid =~ /^\d+$/;
		sleep 0.3;
		$w->settles(30, $member);
	}
	$w->must($node, 'postgres', 'DROP DATABASE extra WITH (FORCE)');
	$make->();
	my $after = $w->mint_extra($member, 'extra', 5000);
	$w->set_clock($node, 0);
	$w->must($node, 'postgres', 'DROP DATABASE extra WITH (FORCE)');
	return "$member->{title}: a database dropped and made again, clock $step s" . ($crash ? ', after a crash' : '') . ", $before and $after ids";
}

1;
