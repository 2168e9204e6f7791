# Chooses the torture faults that apply to the SQL engine, and makes a fault with prepared transactions.
package SqlEngine;

use strict;
use warnings;
use Time::HiRes qw(sleep);
use Crashes;

# Returns the output of scripts/engine-sql for a torture run. The clock may jump ahead by up to an hour, as for the
# library in torture runs.
sub script
{
	my ($program, $layout, $region, $max_lead, $reserve) = @_;
	my $script = `$program --layout $layout --region $region --max-lead $max_lead --reserve $reserve --max-forward-jump 3600000`;
	die "$program failed" if $? != 0;
	return $script;
}

# Lists the faults that do not need the library. The fault that kills one backend is missing, because the server
# restarts its processes at once. Clients would mint before this program can tell the checker which ids may be
# duplicates.
my @apply = qw(immediate server_kill restart_loop clock_back clock_forward clock_jitter clock_slow clock_frozen cancel connections
  failover_async failover_sync switchover pitr base_backup dump_restore template);

sub faults
{
	my %faults = @_;
	return (map({ $_ => $faults{$_} } @apply), prepared => \&prepared);
}

# Prepares transactions that have minted ids. The transactions remain prepared while other transactions mint, and in
# some runs during a crash.
sub prepared
{
	my ($w) = @_;
	my ($crash, $step) = (rand() < 0.5, Crashes::step($w, 0, -0.5, -30));
	my $group = $w->{groups}[0];
	my $node = $w->main;
	$w->must($node, $group->{name}, "BEGIN; INSERT INTO app.hot (client) SELECT 0 FROM generate_series(1, 50); PREPARE TRANSACTION 'p$_'") for 1 .. 3;
	sleep 0.3;
	Crashes::between_server_runs($w, 'kill', $step, 0.3) if $crash;
	$w->must($node, $group->{name}, "COMMIT PREPARED 'p1'");
	$w->must($node, $group->{name}, "ROLLBACK PREPARED 'p$_'") for 2, 3;
	return 'three transactions prepared' . ($crash ? ", SIGKILL of the server, clock $step s" : '');
}

1;
