# Replaces the files that identify the machine and the disk of a server.

package Snowflake::Machine;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Spec;

# Makes the files that describe a simulated machine to a server. The server must not be running when the files are made.
sub new
{
	my ($class, $node) = @_;
	my $directory = File::Spec->rel2abs($node->basedir . '/machine');
	make_path($directory);
	$node->preload(dirname(__FILE__) . '/machine.c', SNOWFLAKE_MACHINE => $directory);
	return bless { directory => $directory }, $class;
}

sub set_id { my ($self, $id) = @_; return $self->_write('machine-id', $id); }

# Sets the files that describe the block device in sysfs. The keys of %says are the names of files below the directory
# of the block device.
sub set_disk
{
	my ($self, %says) = @_;
	remove_tree("$self->{directory}/disk");
	$self->_write("disk/$_", $says{$_}) foreach keys %says;
	return;
}

# Sets the clock source of the kernel and the flags of the processor. If the clock source or the flags are undef, the
# corresponding file does not exist.
sub set_clock_source
{
	my ($self, $source, $flags) = @_;
	$self->_write('cpuinfo', defined $flags ? "processor\t: 0\nvendor_id\t: none\nflags\t\t: $flags\nbugs\t\t: \n\nprocessor\t: 1" : undef);
	return $self->_write('clocksource', $source);
}

sub _write
{
	my ($self, $name, $text) = @_;
	my $file = "$self->{directory}/$name";
	unlink $file;
	return unless defined $text;
	make_path(dirname($file));
	open my $handle, '>', $file or die "$file: $!";
	print $handle "$text\n";
	close $handle or die "$file: $!";
	return;
}

1;
