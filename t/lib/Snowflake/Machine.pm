# Replaces files of the operating system from which a server reads the identifiers of its machine and disk.

package Snowflake::Machine;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Spec;

# Lets a server read its machine-id and the sysfs files of its disk from a directory of the test. The server must not be
# running.
sub new
{
	my ($class, $node) = @_;
	my $directory = File::Spec->rel2abs($node->basedir . '/machine');
	make_path($directory);
	$node->preload(dirname(__FILE__) . '/machine.c', SNOWFLAKE_MACHINE => $directory);
	return bless { directory => $directory }, $class;
}

sub set_id { my ($self, $id) = @_; return $self->_write('machine-id', $id); }

# Writes the files in the simulated sysfs directory of the disk. The hash %says maps file names to contents.
sub set_disk
{
	my ($self, %says) = @_;
	remove_tree("$self->{directory}/disk");
	$self->_write("disk/$_", $says{$_}) foreach keys %says;
	return;
}

# Sets the kernel's clock source and the processor's flags.
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
