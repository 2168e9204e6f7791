# A name server of its own for a server: a library (resolver.c) that is told through a file what names
# mean, and how long it takes to be told.

package Snowflake::Resolver;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);

# For a server that has not been started.
sub new
{
	my ($class, $node) = @_;
	my $self = bless { file => $node->basedir . '/names' }, $class;
	$self->set;
	$node->preload(dirname(__FILE__) . '/resolver.c', SNOWFLAKE_RESOLVER => $self->{file});
	return $self;
}

# %names: [ seconds, addresses ] by name.
sub set
{
	my ($self, %names) = @_;
	open my $file, '>', "$self->{file}.new" or die "$self->{file}.new: $!";
	print $file join(' ', $_, @{ $names{$_} }), "\n" foreach sort keys %names;
	close $file or die "$self->{file}.new: $!";
	rename "$self->{file}.new", $self->{file} or die "$self->{file}: $!";
	return;
}

1;
