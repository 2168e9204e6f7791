# Chooses the torture faults and their times, which depend only on the seed.
package Schedule;

use strict;
use warnings;
use Digest::MD5 qw(md5);
use Test::More;
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);

# Hashes the seed, because rand() returns similar first numbers for similar seeds.
sub draw
{
	my ($seed, $step) = @_;
	srand unpack 'L', md5("$seed $step");
	return;
}

# Parses a list of faults. If the list of faults begins with a minus, returns all faults that are not in the list.
sub choose
{
	my ($wanted, $faults) = @_;
	my @names = sort keys %$faults;
	if ($wanted =~ /^-/)
	{
		my %without = map { s/^-//r => 1 } split /,/, $wanted;
		@names = grep { !$without{$_} } @names;
	}
	elsif ($wanted ne '') { @names = split /,/, $wanted; }
	my @unknown = grep { !exists $faults->{$_} } @names;
	BAIL_OUT("no such fault: @unknown; there are: @{[sort keys %$faults]}") if @unknown;
	return @names;
}

# In each round, makes all chosen faults in a new random order. Stops after the given time or number of rounds. The
# option "settles" is the time in seconds in which all databases must mint again after a fault. Returns the number of
# faults.
sub run
{
	my ($w, $faults, $names, %options) = @_;
	my $end = clock_gettime(CLOCK_MONOTONIC) + $options{seconds};
	my ($step, @turn) = (0);
	while ($options{rounds} ? $step < $options{rounds} * @$names : clock_gettime(CLOCK_MONOTONIC) < $end)
	{
		draw($options{seed}, ++$step);
		if (!@turn)
		{
			@turn = @$names;
			for (my $i = @turn; --$i > 0;) { my $j = int rand($i + 1); @turn[ $i, $j ] = @turn[ $j, $i ]; }
		}
		my $name = shift @turn;
		my $calm = 0.1 + rand 0.5;
		sleep($options{calm} // $calm);
		my $begun = clock_gettime(CLOCK_MONOTONIC);
		my $what  = eval { $faults->{$name}->($w) };
		if (!defined $what)
		{
			fail("$step $name: $@");
			last;
		}
		ok($w->settles($options{settles}), sprintf '%d %s: %s (%.1f s)', $step, $name, $what,
			clock_gettime(CLOCK_MONOTONIC) - $begun);
	}
	return $step;
}

1;
