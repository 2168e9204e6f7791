# Evaluates a torture run at its end: errors that clients received, the servers' logs, and the checker's result for all
# ids.
package Verdict;

use strict;
use warnings;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

# Reports the results of a torture run in TAP. The parameter may_crash is a pattern for the logs of servers that may
# crash.
sub give
{
	my ($w, %params) = @_;
	my $may_crash = $params{may_crash};
	my @logs = glob "$w->{log_dir}/*";
	my (%seen, $sessions);
	for my $stats (grep /\.stats$/, @logs)
	{
		for (split /\n/, slurp_file($stats))
		{
			if (/^ids (\d+) sessions (\d+)/) { $sessions += $2; }
			elsif (/^(\S+) (\d+) (.*)/) { $seen{$1}[0] += $2; $seen{$1}[1] //= $3; }
		}
	}
	note("$w->{client_count} clients, " . ($sessions // 0) . ' sessions; errors that clients received:');
	note(sprintf '  %-8s %7d  %.150s', $_, @{ $seen{$_} }) for sort keys %seen;
	my $violations = join '', map { slurp_file($_) } grep /\.violations$/, @logs;
	is($violations, '', 'no client received an internal error or a unique violation, or waited without a response');
	my @crashes = map { slurp_file($_) =~ /^(.*(?:PANIC|TRAP):.*|.*terminated by signal (?!9:).*\n.*)$/gm }
	  grep { !/$may_crash/ } glob "$PostgreSQL::Test::Utils::log_path/*.log";
	is(join("\n", @crashes), '', 'no server process crashed by itself');

	my $report = `$w->{programs}/check $w->{dir}/manifest @{[grep { !/\.(stats|violations)$/ } @logs]} 2>&1`;
	my $status = $?;
	for (split /\n/, $report)
	{
		if (/^(not )?ok - (.*)/) { ok(!$1, $2); }
		else { note($_); }
	}
	ok($status == 0, 'the checker found no violation');
	if (!Test::More->builder->is_passing && $ENV{SNOWFLAKE_TORTURE_KEEP})
	{
		system 'cp', '-a', $w->{dir}, $ENV{SNOWFLAKE_TORTURE_KEEP};
		note("kept: $ENV{SNOWFLAKE_TORTURE_KEEP}");
	}
	return;
}

1;
