# A disk that can be stalled: for the servers that are started while one is there.

package Snowflake::Disk;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use File::Spec;

sub new
{
	my ($class, $directory) = @_;
	my $self = bless { file => File::Spec->rel2abs("$directory/stalled") }, $class;
	my $library = File::Spec->rel2abs("$directory/disk.so");
	my $source = dirname(__FILE__) . '/disk.c';
	system($ENV{CC} // 'cc', '-O2', '-fPIC', '-shared', '-o', $library, $source) == 0 or die "could not build $source\n";
	$ENV{LD_PRELOAD} = $library;
	$ENV{SNOWFLAKE_STALLED} = $self->{file};
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
