# Lets a test stall the disk of a server.

package Snowflake::Disk;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use File::Spec;

# Creates an object that can stall the disk of a node. The server must not be running when this constructor is called.
sub new
{
	my ($class, $node) = @_;
	my $self = bless { file => File::Spec->rel2abs($node->basedir . '/stalled') }, $class;
	$node->preload(dirname(__FILE__) . '/disk.c', SNOWFLAKE_STALLED => $self->{file});
	return $self;
}

sub stall
{
	my ($self) = @_;
	open my $file, '>', $self->{file} or die "$self->{file}: $!";
	return;
}

sub answer { unlink $_[0]{file}; return; }

sub DESTROY { $_[0]->answer; return; }

1;
