# Runs the torture test of one server. The seed decides a random sequence of faults, while clients record every id.
# After the last fault, the checker compares all ids. The script scripts/torture builds the programs of the test, passes
# their paths in the environment, and starts torture.pl.
use strict;
use warnings;
use FindBin;
use Getopt::Long;
use Test::More;
use lib $FindBin::RealBin, "$FindBin::RealBin/../../t/lib";
use Snowflake::Node;
use PostgreSQL::Test::Utils;
use World;
use Schedule;
use Verdict;
use Crashes;
use Sessions;
use Copies;
use SqlEngine;

my %options = (seed => 1, seconds => 60, faults => '', clients => 3, megabytes => 400, short => 0);
GetOptions(\%options, 'seed=i', 'seconds=f', 'faults=s', 'clients=i', 'megabytes=i', 'short', 'layout=s',
	'max-lead=i', 'region=i', 'reserve=i', 'ways=s', 'wal-writer-delay=i', 'use-tsc=s', 'rounds=i',
	'calm=f', 'step=f', 'sql=s') or exit 2;
my %faults = (%Crashes::faults, %Sessions::faults, %Copies::faults);
%faults = SqlEngine::faults(%faults) if $options{sql};

my @names = Schedule::choose($options{faults}, \%faults);
BAIL_OUT('the faults disk_full and memory_full need SNOWFLAKE_WAL_DISK: a small file system of its own; '
	  . 'leave them out with --faults=-disk_full,-memory_full')
  if grep({ /_full$/ } @names) && !$ENV{SNOWFLAKE_WAL_DISK};

Schedule::draw($options{seed}, 0);
my $layout   = (qw(fleet fleet instagram twitter js53))[ rand 5 ];
my $max_lead = (100, 100, 0, 1000, 60000, 60000)[ rand 6 ];
my $reserve  = (1000, 1000, 200, 3000)[ rand 4 ];
my $delay    = (200, 200, 10, 10000)[ rand 4 ];    # at a long wal_writer_delay, only sessions flush the high-water mark
my $use_tsc  = (qw(on off))[ rand 2 ];
$layout   = $options{layout}             if $options{layout};
$max_lead = $options{'max-lead'}         if defined $options{'max-lead'};
$reserve  = $options{reserve}            if $options{reserve};
$delay    = $options{'wal-writer-delay'} if $options{'wal-writer-delay'};
$use_tsc  = $options{'use-tsc'}          if $options{'use-tsc'};
my $region;
if ($options{sql})
{
	$layout = 'fleet' if $layout =~ m{/};
	$delay  = 200;    # If wal_writer_delay is short, fewer ids may repeat after a crash
	$region = $options{region} // ($layout =~ /fleet|twitter/ ? int rand 32 : 0);
}
my $w = World->new(
	dir      => PostgreSQL::Test::Utils::tempdir('torture'),
	programs => $ENV{SNOWFLAKE_TORTURE_PROGRAMS},
	wal_disk => $ENV{SNOWFLAKE_WAL_DISK},
	seed     => $options{seed},
	short    => $options{short},
	clients  => $options{clients},
	rate     => $options{megabytes} * 1e6 / (2 * $options{clients} * ($options{seconds} + 60)),
	layout   => $layout,
	region   => $options{region} // $region,
	engine   => $options{sql} ? SqlEngine::script($options{sql}, $layout, $region, $max_lead, $reserve) : undef,
	max_lead => $max_lead,
	reserve  => $reserve,
	delay    => $delay,
	use_tsc  => $use_tsc,
	step     => $options{step},
	ways     => $options{ways} // '');

note("seed $options{seed}, " . ($options{rounds} ? "$options{rounds} rounds" : "$options{seconds} s") . ": layout $layout, region $w->{region}, max_lead $max_lead ms, reserve $reserve ms, "
	  . "wal_writer_delay $delay ms, use_tsc $use_tsc");

my $main = $w->{main} = $w->new_server('main');
$main->start;
$w->must($main, 'postgres', 'CREATE ROLE app LOGIN');
# Faults that affect one database are made in database d1. Faults in database d1 must not affect its neighbour, database
# d2.
for my $name ('d1', 'd2')
{
	$w->must($main, 'postgres', "CREATE DATABASE $name");
	$w->install($main, $name);
	$w->must($main, $name, $w->schema);
	push @{ $w->{groups} },
	  { node => $main, name => $name, line => $w->new_line, clients => [], neighbour => $name eq 'd2' };
}
$w->start_clients($_) for $w->groups;
ok($w->settles(30), 'every database mints before the first fault');

Schedule::run($w, \%faults, \@names, %options, settles => 30);

ok($w->settles(30), 'every database mints after the last fault');
$w->stop_clients($_) for $w->groups;
$w->main->stop;

Verdict::give($w, may_crash => qr/_full\d+\.log$/);    # a server whose disk is full may stop with a PANIC
done_testing();
