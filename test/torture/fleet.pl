# Runs the torture test of servers that lease regions. scripts/torture --fleet starts this program. The seed decides a
# random sequence of faults of the servers and of the lease server. After the last fault, the checker compares the ids
# of all servers.
use strict;
use warnings;
use FindBin;
use Getopt::Long;
use Test::More;
use lib $FindBin::RealBin, "$FindBin::RealBin/../../t/lib", "$FindBin::RealBin/../../extensions/lease/t/lib";
use PostgreSQL::Test::Utils;
use Schedule;
use Verdict;
use Fleet;
use FleetFaults;
use FleetCopies;
use LeaseServerFaults;

delete $ENV{SNOWFLAKE_PRELOAD};    # leases need shared_preload_libraries
my %faults = (%FleetFaults::faults, %FleetCopies::faults, %LeaseServerFaults::faults);
my %options = (seed => 1, seconds => 300, faults => '', clients => 2, megabytes => 400, short => 0);
GetOptions(\%options, 'seed=i', 'seconds=f', 'faults=s', 'clients=i', 'megabytes=i', 'short', 'layout=s',
	'max-lead=i', 'reserve=i', 'wal-writer-delay=i', 'rounds=i', 'calm=f', 'ways=s', 'lease=i', 'use-tsc=s') or exit 2;

my @names = Schedule::choose($options{faults}, \%faults);
BAIL_OUT('the fault lease_server_full needs SNOWFLAKE_WAL_DISK: a small file system of its own; '
	  . 'leave it out with --faults=-lease_server_full')
  if grep({ $_ eq 'lease_server_full' } @names) && !$ENV{SNOWFLAKE_WAL_DISK};

Schedule::draw($options{seed}, 0);
my %drawn = (
	layout   => (qw(41/3+8/10 41/3+8/12))[ rand 2 ],
	max_lead => (100, 100, 0, 1000)[ rand 4 ],
	reserve  => (1000, 1000, 200, 3000)[ rand 4 ],
	delay    => (200, 200, 10)[ rand 3 ],
	lease    => (4000, 4000, 6000)[ rand 3 ],
	use_tsc  => (qw(on off))[ rand 2 ]);
for ([ layout => 'layout' ], [ max_lead => 'max-lead' ], [ reserve => 'reserve' ], [ delay => 'wal-writer-delay' ],
	[ lease => 'lease' ], [ use_tsc => 'use-tsc' ])
{
	my ($name, $option) = @$_;
	$drawn{$name} = $options{$option} if defined $options{$option};
}
my $clients = 4 * $options{clients};
my $w = Fleet->new(
	dir      => PostgreSQL::Test::Utils::tempdir('torture'),
	programs => $ENV{SNOWFLAKE_TORTURE_PROGRAMS},
	wal_disk => $ENV{SNOWFLAKE_WAL_DISK},
	seed     => $options{seed},
	short    => $options{short},
	clients  => $options{clients},
	rate     => $options{megabytes} * 1e6 / ($clients * ($options{seconds} + 60)),
	ways     => $options{ways} // '',
	skew     => 1300,
	%drawn);
END { $w->thaw if defined $w; }

note("seed $options{seed}, " . ($options{rounds} ? "$options{rounds} rounds" : "$options{seconds} s") . ': '
	  . join ', ', map { "$_ $drawn{$_}" } sort keys %drawn);
$w->begin([qw(alpha beta gamma)]);
$w->start_clients($_) for $w->groups;
ok($w->settles(40), 'every server mints before the first fault');
my $made = Schedule::run($w, \%faults, \@names, %options, settles => 40);
ok($w->settles(40), 'every server mints after the last fault');
$w->stop_clients($_) for $w->groups;
$w->drop_standby;
$_->{node}->stop for $w->groups;
$w->lease_server->stop;
note("$made faults");
Verdict::give($w, may_crash => $w->may_crash);
done_testing();
