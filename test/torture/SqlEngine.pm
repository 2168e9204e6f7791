# Chooses the torture faults for servers without the library, which mint with a script of generator_sql(). Makes a fault
# with prepared transactions.
package SqlEngine;

use strict;
use warnings;
use Time::HiRes qw(sleep);
use Crashes;

# Returns the output of scripts/engine-sql for a torture run. In torture runs, the SQL version of snowflake accepts
# clock jumps of up to an hour, like the extension.
sub script
{
	my ($program, $layout, $region, $max_lead, $reserve) = @_;
	my $script = `$program --layout $layout --region $region --max-lead $max_lead --reserve $reserve --max-forward-jump 3600000`;
	die "$program failed" if $? != 0;
	return $script;
}

# Lists the torture faults that do not need the extension's shared library. The list lacks the fault backend_kill, which
# kills one server process. After backend_kill, clients would mint ids before the checker knows which ids may be
# duplicates, because the server restarts its processes at once.
my @apply = qw(immediate server_kill restart_loop clock_back clock_forward clock_jitter clock_slow clock_frozen cancel connections
  failover_async failover_sync switchover pitr base_backup dump_restore template);

sub faults
{
	my %faults = @_;
	return (map({ $_ => $faults{$_} } @apply), prepared => \&prepared);
}

# Mints ids in transactions, and prepares these transactions. The prepared transactions stay open while other
# transactions mint ids, and in some torture runs during a crash.
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
