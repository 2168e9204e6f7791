# A clock of a server, and a disk of its WAL that stands still when told (disk.c).

package Snowflake::Disk;

use strict;
use warnings FATAL => 'all';

use parent 'Snowflake::Clock';

use File::Basename qw(dirname);

# For a server that is not started yet.
sub under
{
	my ($class, $node) = @_;
	my $self = bless $node->clock, $class;
	$self->{sign} = $node->basedir . '/disk_hangs';
	$self->{library} = $node->basedir . '/disk.so';
	system($ENV{CC} // 'cc', '-O2', '-fPIC', '-shared', '-o', $self->{library}, dirname(__FILE__) . '/disk.c', '-ldl') == 0
	  or die "could not build disk.c\n";
	return $self;
}

sub hang
{
	my ($self) = @_;
	open my $sign, '>', $self->{sign} or die "$self->{sign}: $!";
	return;
}

sub answer { unlink $_[0]{sign} or die "$_[0]{sign}: $!"; return; }

sub environment
{
	my ($self) = @_;
	my %environment = $self->SUPER::environment;
	return (%environment, LD_PRELOAD => "$environment{LD_PRELOAD}:$self->{library}", SNOWFLAKE_DISK => $self->{sign});
}

1;
