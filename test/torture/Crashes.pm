# Makes torture faults that stop the server, and faults that step the clock while the server runs or is stopped.
#
# Each fault chooses its random parameters first, so that only the seed decides them. Each fault returns a description
# with its random parameters. After each fault the clock of the server is right again. Clients also mint for a while
# with the wrong clock, because a server with an error could mint duplicate ids in this time.
package Crashes;

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);

our %faults = (
	backend_kill  => \&backend_kill,
	immediate     => \&immediate,
	server_kill   => \&server_kill,
	restart_loop  => \&restart_loop,
	clock_back    => \&clock_back,
	clock_forward => \&clock_forward,
	clock_jitter  => \&clock_jitter,
	clock_slow    => \&clock_slow,
	clock_frozen  => \&clock_frozen,
	preload_switched  => \&preload_switched,
	library_exchanged => \&library_exchanged,
);

my @back    = (-0.001, -0.05, -0.09, -0.5, -3, -30, -600, -86400);
my @forward = (2, 3599);

sub pick { my @choices = @_; return $choices[ rand @choices ]; }

# Returns a random step of the clock, or the value of the option --step.
sub step
{
	my ($w, @choices) = @_;
	my $drawn = pick(@choices);
	return $w->{step} // $drawn;
}

sub backend_kill
{
	my ($w) = @_;
	my ($kills, $step) = (1 + int rand 3, pick(0, @back[ 0 .. 4 ]));
	my $which = rand;
	for (1 .. $kills)
	{
		my @pids = $w->victims or next;
		$w->set_clock($w->main, $w->{base} + $step);
		kill 9, $pids[ $which * @pids ];
		sleep 0.1;
		$w->settles(30);
	}
	$w->set_clock($w->main, $w->{base});
	return "SIGKILL of $kills backends, the clock stepping by $step s";
}

# Stops the server, steps the clock, starts the server, lets clients mint for a while, and corrects the clock.
sub between_server_runs
{
	my ($w, $how, $step, $hold) = @_;
	my $node = $w->main;
	my $fork = $how eq 'fast' ? undef : $w->crash_begins;
	if ($how eq 'kill') { $node->kill_all; }
	else { $node->stop($how); }
	$w->set_clock($node, $w->{base} + $step);
	$w->continue_after($fork);
	$node->start;
	$w->confirm_clock($node) if $step > 3600;
	$w->mint($node, $_->{name}, $_->{line}) for $w->groups;
	sleep $hold;
	$w->{base} += $step if $step > 0;    # from now on all clocks of the torture run are this far ahead
	$w->correct_clock($node, $step, $w->{groups}[0]{name});
	return;
}

# Chooses a random step of the clock. A step of ten years ahead is rare, because all clocks of the torture run stay
# ahead after such a step.
sub draw_step
{
	my ($w) = @_;
	my ($step, $years) = (step($w, 0, @back, @back, @forward), rand);
	if ($years < 0.05 && !defined $w->{step} && $w->{base} < 86400 * 3650) { $step = 86400 * 3652; }
	return $step;
}

sub immediate
{
	my ($w) = @_;
	my ($step, $hold) = (draw_step($w), 0.3 + rand 0.7);
	between_server_runs($w, 'immediate', $step, $hold);
	return "immediate shutdown, $step s between the lives";
}

sub server_kill
{
	my ($w) = @_;
	my ($step, $hold) = (draw_step($w), 0.3 + rand 0.7);
	between_server_runs($w, 'kill', $step, $hold);
	return "SIGKILL of the whole server, $step s between the lives";
}

sub restart_loop
{
	my ($w) = @_;
	my @loop = map { [ pick('fast', 'immediate', 'kill'), pick(@back[ 0 .. 4 ]), rand 0.2 ] } 1 .. 3;
	between_server_runs($w, @$_) for @loop;
	return 'restart loop: ' . join ', ', map { "$_->[0] $_->[1] s" } @loop;
}

# Restarts the server, and adds the library to shared_preload_libraries or removes it from there.
sub preload_switched
{
	my ($w) = @_;
	my ($how, $step, $hold) = (pick('fast', 'immediate', 'kill'), step($w, @back), 0.3 + rand 0.7);
	my $preload = !$w->is_preloaded;
	$w->main->set_preload($preload);
	between_server_runs($w, $how, $step, $hold);
	return "$how, clock $step s, then a server run " . ($preload ? 'with' : 'without') . ' the preload';
}

# Replaces the library while clients mint, as an upgrade of the package does. Sessions that have loaded the old library
# continue. If the ABI number of the new library differs, sessions that load the new library get errors until the server
# restarts.
sub library_exchanged
{
	my ($w) = @_;
	my ($build, $differs, $how, $step, $hold) = (pick(0, 1), pick(0, 1), pick('fast', 'immediate', 'kill'), step($w, @back), 0.5 + rand 1);
	my ($node, $group) = ($w->main, $w->{groups}[0]);
	my $former = $node->session($group->{name});
	my $mint = sub {
		my $sent = World::now_ns();
		my $id = $former->query_safe("SET snowflake.max_wait = '10s'; SELECT snowflake.next_id($w->{hot})");
		$w->record($group->{line}, $sent, $id);
	};
	$mint->();
	$w->install_library($build, $w->{abi} + $differs);
	if ($differs && !$w->is_preloaded)
	{
		like($w->mint($node, $_->{name}, $_->{line}), qr/55000.*another version of the library snowflake/, "a new library is refused in $_->{name}") for $w->groups;
	}
	else { ok($w->settles(30), 'sessions with the new library mint'); }
	sleep $hold;
	$mint->();
	$former->quit;
	between_server_runs($w, $how, $step, $hold);
	return "library exchanged by build $build with ABI number $w->{abi}, then $how, clock $step s";
}

sub clock_back
{
	my ($w) = @_;
	my ($step, $hold) = (step($w, @back), 0.3 + rand 1.2);
	$w->set_clock($w->main, $w->{base} + $step);
	sleep $hold;
	$w->set_clock($w->main, $w->{base});
	return "clock $step s for $hold s";
}

# Steps the clock of a server ahead, and corrects the clock later. If the clock steps ahead by less than
# "snowflake.max_forward_jump" (an hour), ids follow the clock, and are ahead of the corrected clock. If the clock steps
# ahead by more than "snowflake.max_forward_jump", calls fail until the clock is corrected or accepted.
sub clock_forward
{
	my ($w) = @_;
	my ($step, $hold, $confirm) =
	  (pick(2, 2, 3599, 3601, 86400 * 3652, 86400 * 3652), 0.3 + rand 0.7, rand);
	$confirm = $confirm < 0.2 && $step != 2 && ($step < 86400 || $w->{base} < 86400 * 3650);
	$w->set_clock($w->main, $w->{base} + $step);
	# Calls accept_clock() in each database. In the SQL version of snowflake, accept_clock() applies to one database only.
	my $accept = sub { $w->must($w->main, $_->{name}, 'SELECT snowflake.accept_clock()') for $w->groups; return; };
	$accept->() if $confirm;
	sleep $hold;
	if ($confirm || $step == 3599)
	{
		$w->{base} += $step;
		$accept->();
	}
	$w->set_clock($w->main, $w->{base});
	return "clock +$step s for $hold s" . ($confirm ? ', confirmed' : '');
}

sub clock_jitter
{
	my ($w) = @_;
	my ($amplitude, $until) = (pick(0.002, 0.05, 0.2, 1.5), 1 + rand 1);
	for (my $t = 0; $t < $until; $t += 0.03)
	{
		$w->set_clock($w->main, $w->{base} + $amplitude * (2 * rand() - 1));
		sleep 0.03;
	}
	$w->set_clock($w->main, $w->{base});
	return "clock jitter of $amplitude s";
}

sub clock_slow
{
	my ($w) = @_;
	my ($rate, $until) = (pick(0.1, 0.5, 0.9), 1 + rand 1);
	for (my $t = 0; $t < $until; $t += 0.02)
	{
		$w->set_clock($w->main, $w->{base} - $t * (1 - $rate));
		sleep 0.02;
	}
	$w->set_clock($w->main, $w->{base});
	return "clock at $rate of its rate for $until s";
}

sub clock_frozen
{
	my ($w) = @_;
	my $hold = 0.5 + rand 1.5;
	my $kill = pick(0, 1);
	$w->freeze_clock($w->main);
	sleep $hold;
	if ($kill)
	{
		my $fork = $w->crash_begins;
		$w->main->kill_all;
		$w->continue_after($fork);
		$w->main->start;
		sleep 0.3;
	}
	$w->set_clock($w->main, $w->{base});
	return "clock frozen for $hold s" . ($kill ? ', killed and started under it' : '');
}

1;
