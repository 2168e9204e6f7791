# The SQL engine as a kind of server: which faults apply to it, and one of its own.
package SqlEngine;

use strict;
use warnings;
use Time::HiRes qw(sleep);
use Crashes;

# The script for a run, printed by scripts/engine-sql. Its clock may be an hour ahead of the mark, as the library's in these runs.
sub script
{
	my ($program, $layout, $region, $max_lead, $reserve) = @_;
	my $script = `$program --layout $layout --region $region --max-lead $max_lead --reserve $reserve --max-forward-jump 3600000`;
	die "$program failed" if $? != 0;
	return $script;
}

# Faults of %faults that need no library. A backend cannot be killed by itself: the clients would be back before the driver has told
# the checker what the crash restart can bring again.
my @apply = qw(immediate server_kill restart_loop clock_back clock_forward clock_jitter clock_slow clock_frozen cancel connections
  failover_async failover_sync switchover pitr base_backup dump_restore template);

sub faults
{
	my %faults = @_;
	return (map({ $_ => $faults{$_} } @apply), prepared => \&prepared);
}

# Transactions that minted stay prepared, over a crash and the minting of others.
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
