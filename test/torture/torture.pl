# Drives a run: a random schedule of faults, decided by the seed alone, against clients that write
# down every id; then the check of all ids together. Called by scripts/torture, which builds what
# this needs and names it in the environment.
use strict;
use warnings;
use Digest::MD5 qw(md5);
use FindBin;
use Getopt::Long;
use Test::More;
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);
use lib $FindBin::RealBin, "$FindBin::RealBin/../../t/lib";
use Snowflake::Node;
use PostgreSQL::Test::Utils;
use World;
use Crashes;
use Sessions;
use Copies;

my %faults = (%Crashes::faults, %Sessions::faults, %Copies::faults);
my %options = (seed => 1, seconds => 60, faults => '', clients => 3, megabytes => 400, short => 0);
GetOptions(\%options, 'seed=i', 'seconds=f', 'faults=s', 'clients=i', 'megabytes=i', 'short', 'layout=s',
	'max-lead=i', 'region=i', 'reserve=i', 'ways=s', 'wal-writer-delay=i', 'rounds=i',
	'calm=f', 'step=f') or exit 2;

# A list of faults; or one that begins with a minus, of those to leave out.
my @names = sort keys %faults;
if ($options{faults} =~ /^-/)
{
	my %without = map { s/^-//r => 1 } split /,/, $options{faults};
	@names = grep { !$without{$_} } @names;
}
elsif ($options{faults} ne '') { @names = split /,/, $options{faults}; }
my @unknown = grep { !exists $faults{$_} } @names;
BAIL_OUT("no such fault: @unknown; there are: @{[sort keys %faults]}") if @unknown;
BAIL_OUT('the fault disk_full needs SNOWFLAKE_WAL_DISK: a small file system of its own; '
	  . 'leave it out with --faults=-disk_full')
  if grep({ $_ eq 'disk_full' } @names) && !$ENV{SNOWFLAKE_WAL_DISK};

# By way of a hash: neighbouring seeds give rand() neighbouring first numbers.
sub draw { srand unpack 'L', md5("$options{seed} $_[0]"); return; }

draw(0);
my $layout   = (qw(fleet fleet instagram twitter js53))[ rand 5 ];
my $max_lead = (100, 100, 0, 1000, 60000, 60000)[ rand 6 ];
my $reserve  = (1000, 1000, 200, 3000)[ rand 4 ];
my $delay    = (200, 200, 10, 10000)[ rand 4 ];    # of the WAL writer: who else flushes the mark?
$layout   = $options{layout}             if $options{layout};
$max_lead = $options{'max-lead'}         if defined $options{'max-lead'};
$reserve  = $options{reserve}            if $options{reserve};
$delay    = $options{'wal-writer-delay'} if $options{'wal-writer-delay'};
my $w = World->new(
	dir      => PostgreSQL::Test::Utils::tempdir('torture'),
	programs => $ENV{SNOWFLAKE_TORTURE_PROGRAMS},
	wal_disk => $ENV{SNOWFLAKE_WAL_DISK},
	seed     => $options{seed},
	short    => $options{short},
	clients  => $options{clients},
	rate     => $options{megabytes} * 1e6 / (2 * $options{clients} * ($options{seconds} + 60)),
	layout   => $layout,
	region   => $options{region},
	max_lead => $max_lead,
	reserve  => $reserve,
	delay    => $delay,
	step     => $options{step},
	ways     => $options{ways} // '');

note("seed $options{seed}, " . ($options{rounds} ? "$options{rounds} rounds" : "$options{seconds} s") . ": layout $layout, region $w->{region}, max_lead $max_lead ms, reserve $reserve ms, "
	  . "wal_writer_delay $delay ms");

my $main = $w->{main} = $w->new_server('main');
$main->start;
$w->must($main, 'postgres', 'CREATE ROLE app LOGIN');
# Faults that concern one database are made in the first; the other is its neighbour.
for my $name ('d1', 'd2')
{
	$w->must($main, 'postgres', "CREATE DATABASE $name");
	$w->must($main, $name, 'CREATE EXTENSION snowflake;' . $w->schema);
	push @{ $w->{groups} },
	  { node => $main, name => $name, line => $w->new_line, clients => [], neighbour => $name eq 'd2' };
}
$w->start_clients($_) for $w->groups;
ok($w->settles(30), 'mints before the first fault');

# Every fault has its turn before any has its second.
my $end = clock_gettime(CLOCK_MONOTONIC) + $options{seconds};
my ($step, @turn) = (0);
while ($options{rounds} ? $step < $options{rounds} * @names : clock_gettime(CLOCK_MONOTONIC) < $end)
{
	draw(++$step);
	if (!@turn)
	{
		@turn = @names;
		for (my $i = @turn; --$i > 0;) { my $j = int rand($i + 1); @turn[ $i, $j ] = @turn[ $j, $i ]; }
	}
	my $name = shift @turn;
	my $calm = 0.1 + rand 0.5;
	sleep($options{calm} // $calm);
	my $begun = clock_gettime(CLOCK_MONOTONIC);
	my $what  = eval { $faults{$name}->($w) };
	if (!defined $what)
	{
		fail("$step $name: $@");
		last;
	}
	ok($w->settles(30), sprintf '%d %s: %s (%.1f s)', $step, $name, $what,
		clock_gettime(CLOCK_MONOTONIC) - $begun);
}

ok($w->settles(30), 'mints after the last fault');
$w->stop_clients($_) for $w->groups;
$w->main->stop;

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
note("$w->{client_count} clients, " . ($sessions // 0) . ' sessions; errors they met:');
note(sprintf '  %-8s %7d  %.150s', $_, @{ $seen{$_} }) for sort keys %seen;
my $violations = join '', map { slurp_file($_) } grep /\.violations$/, @logs;
is($violations, '', 'no client met an internal error, a unique violation, or silence');
my @crashes = map { slurp_file($_) =~ /^(.*(?:PANIC|TRAP):.*|.*terminated by signal (?!9:).*\n.*)$/gm } grep { !/_full\d+\.log$/ }    # there a panic is the point
  glob "$PostgreSQL::Test::Utils::log_path/*.log";
is(join("\n", @crashes), '', 'no server process crashed by itself');

my $report = `$w->{programs}/check $w->{dir}/manifest @{[grep { !/\.(stats|violations)$/ } @logs]} 2>&1`;
my $status = $?;
for (split /\n/, $report)
{
	if (/^(not )?ok - (.*)/) { ok(!$1, $2); }
	else { note($_); }
}
ok($status == 0, 'the checker is content');
if (!Test::More->builder->is_passing && $ENV{SNOWFLAKE_TORTURE_KEEP})
{
	system 'cp', '-a', $w->{dir}, $ENV{SNOWFLAKE_TORTURE_KEEP};
	note("kept: $ENV{SNOWFLAKE_TORTURE_KEEP}");
}
done_testing();
