# A clock of its own for a server: libfaketime, told by a file how far the wall clock is off.
#
# Only CLOCK_REALTIME is faked. Time since boot and the monotonic clock stay true, as they do when
# an administrator or NTP steps the clock of a real machine.
#
# A signal handler that interrupts select() or epoll_wait() sees the true time: libfaketime's doing.
# So statement_timeout fires late where a clock is ahead of the true time; use it where it is behind.

package Snowflake::Clock;

use strict;
use warnings FATAL => 'all';

use File::Spec;
use List::Util qw(first);
use POSIX qw(strftime);

sub new
{
	my ($class, $file) = @_;
	# A server changes its directory, and libfaketime takes a file that it cannot find for "no offset".
	my $self = bless { file => File::Spec->rel2abs($file), library => _library() }, $class;
	$self->set(0);
	$self->_check;
	return $self;
}

# Moves the clock to this many seconds after the true time (before it, where negative).
# Renamed into place: a server that reads a half-written file would see a clock of its own.
sub set
{
	my ($self, $offset) = @_;
	$self->_write(sprintf '%+.6f', $offset);
	$self->{offset} = $offset;
	return;
}

# Stops the clock at what it says now, in whole seconds, until it is set again.
sub freeze
{
	my ($self) = @_;
	$self->_write(strftime('%Y-%m-%d %H:%M:%S', localtime int(time + $self->{offset})));
	return;
}

sub _write
{
	my ($self, $text) = @_;
	my $new = "$self->{file}.new";
	open my $handle, '>', $new or die "$new: $!";
	print $handle "$text\n";
	close $handle or die "$new: $!";
	rename $new, $self->{file} or die "$self->{file}: $!";
	return;
}

sub step
{
	my ($self, $by) = @_;
	return $self->set($self->{offset} + $by);
}

sub offset { return $_[0]{offset}; }

# What to start a process with for it to go by this clock.
sub environment
{
	my ($self) = @_;
	return (
		LD_PRELOAD => $self->{library},
		FAKETIME_TIMESTAMP_FILE => $self->{file},
		FAKETIME_NO_CACHE => 1,
		FAKETIME_DONT_FAKE_MONOTONIC => 1,
		NO_FAKE_STAT => 1);
}

sub _library
{
	my $library = first { -e } map { glob "$_/faketime/libfaketime.so.1" } qw(/usr/lib/* /usr/lib /usr/lib64);
	return $library // die "libfaketime.so.1 was not found: install libfaketime\n";
}

# A library that fakes time since boot as well would make every test of the forward-jump guard
# pass for the wrong reason.
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
