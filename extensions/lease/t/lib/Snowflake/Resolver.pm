# Simulates DNS for a server. The preloaded library resolver.c reads from a file the addresses of host names, and how
# long each look-up takes.

package Snowflake::Resolver;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);

sub new
{
	my ($class, $node) = @_;
	my $self = bless { file => $node->basedir . '/names' }, $class;
	$self->set;
	$node->preload(dirname(__FILE__) . '/resolver.c', SNOWFLAKE_RESOLVER => $self->{file});
	return $self;
}

# Sets the result of DNS for host names. The hash %names maps each host name to [ seconds until the answer, addresses ].
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
