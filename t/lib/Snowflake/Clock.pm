# Sets the clock of one server for a test. The server preloads the library clock.c, which reads from a file by how much
# the clock is wrong.
#
# Only CLOCK_REALTIME is changed. The time since boot and the monotonic clock stay right, as on a real machine whose
# clock is stepped.

package Snowflake::Clock;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use File::Spec;
use Time::HiRes;

# Builds the library $library, unless the library is newer than clock.c.
sub new
{
	my ($class, $file, $library) = @_;
	my $self = bless { file => File::Spec->rel2abs($file) }, $class;
	# Running servers have mapped the file, so that each change must overwrite the file in place.
	open $self->{handle}, '>:raw', $file or die "$file: $!";
	$self->set(0);
	my $source = dirname(__FILE__) . '/clock.c';
	my $shared = File::Spec->rel2abs($library // "$file.so");
	if (!-e $shared || (stat _)[9] < (stat $source)[9])
	{
		$self->{library} = build($source, "$shared.$$");
		$self->_check;
		rename $self->{library}, $shared or die "$shared: $!";
	}
	$self->{library} = $shared;
	return $self;
}

# Sets the clock to a number of seconds after the true time, or before the true time if the number is negative.
sub set
{
	my ($self, $offset) = @_;
	$self->{offset} = $offset;
	$self->_write($offset, 0);
	return;
}

# Sets whether the server's kernel reports a synchronized clock. If the argument is undef, the server reads from the
# real kernel whether the clock is synchronized.
sub synchronize
{
	my ($self, $synchronized) = @_;
	$self->{synchronized} = !defined $synchronized ? 0 : $synchronized ? 1 : 2;
	$self->_write($self->{offset}, 0);
	return;
}

# Delays the kernel's timer interrupts by some seconds, as in a virtual machine on a busy host.
sub late
{
	my ($self, $seconds) = @_;
	$self->{late} = $seconds;
	$self->_write($self->{offset}, 0);
	return;
}

# Stops the clock until the next call of set() or step().
sub freeze
{
	my ($self) = @_;
	$self->_write($self->{offset}, Time::HiRes::time() + $self->{offset});
	return;
}

# Writes the settings of the clock to the mapped file. The arguments are by how many seconds the clock is wrong, and the
# time that a stopped clock shows. The second argument is 0 if the clock runs.
sub _write
{
	my ($self, @seconds) = @_;
	sysseek $self->{handle}, 0, 0;
	my @ns = map { sprintf '%.0f', $_ * 1e9 } @seconds, $self->{late} // 0;
	my $written = syswrite $self->{handle}, pack 'q4', @ns[ 0, 1 ], $self->{synchronized} // 0, $ns[2];
	die "$self->{file}: $!" unless ($written // 0) == 32;
	return;
}

sub step
{
	my ($self, $by) = @_;
	return $self->set($self->{offset} + $by);
}

sub offset { return $_[0]{offset}; }

# Returns the environment variables with which a process uses the simulated clock.
sub environment
{
	my ($self) = @_;
	return (LD_PRELOAD => join(' ', $self->{library}, $ENV{LD_PRELOAD} // ()), SNOWFLAKE_CLOCK => $self->{file});
}

# Builds a library for LD_PRELOAD from a C file.
sub build
{
	my ($source, $target) = @_;
	system($ENV{CC} // 'cc', '-O2', '-fPIC', '-shared', '-o', $target, $source, '-ldl') == 0
	  or die "could not build $source\n";
	return $target;
}

# Checks that the library clock.c does not change the time since boot. Tests of clock jumps would pass for the wrong
# reason if the time since boot jumped with the clock.
sub _check
{
	my ($self) = @_;
	my $read =
	  'use Time::HiRes qw(clock_gettime CLOCK_REALTIME CLOCK_MONOTONIC CLOCK_BOOTTIME);'
	  . 'print join " ", map { clock_gettime($_) } CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME';
	my @true = split ' ', `$^X -e '$read'`;
	$self->set(-5000);
	my @faked = do { local %ENV = (%ENV, $self->environment); split ' ', `$^X -e '$read'` };
	$self->set(0);
	my @moved = map { $faked[$_] - $true[$_] } 0 .. 2;
	die "$self->{library} is of no use here: it moved the clocks by @moved seconds\n"
	  unless @faked == 3
	  && abs($moved[0] + 5000) < 100
	  && abs($moved[1]) < 100
	  && abs($moved[2]) < 100;
	return;
}

1;
