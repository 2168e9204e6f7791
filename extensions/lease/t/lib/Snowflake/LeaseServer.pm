# Makes a lease server, and sends requests for leases to it.

package Snowflake::LeaseServer;

use strict;
use warnings FATAL => 'all';

use parent 'Snowflake::Node';

use PostgreSQL::Test::Utils ();

# The id layout with 41 bits for the time, 5 for the region, 8 for the shard and 10 for the sequence. The layout is
# encoded as one number (seal), as in src/core/seal.hpp.
our $seal = 1735689600000 * 2012500 + 22 * 57500 + 5 * 2300 + 8 * 92 + 10 * 4;

# Creates a server with fsync = on, because a lease server refuses requests without fsync.
sub create
{
	my ($class, $name, %params) = @_;
	my $conf = delete $params{conf} // '';
	my $node = $class->new($name);
	$node->init(%params);
	$node->append_conf('postgresql.conf', "fsync = on\nlog_statement = none\nautovacuum = off\ntimezone = 'UTC'\n$conf");
	return $node;
}

sub install { return $_[0]->safe_psql($_[1] // 'postgres', 'CREATE EXTENSION snowflake_fleet'); }

# Sends a request for a lease, and returns the answer as a hash, or the error as {error}. The hash %request contains the
# fields "call", "server" and "incarnation", and other fields that differ from their defaults.
sub ask
{
	my ($self, %request) = @_;
	my $sql = $self->question(%request);
	my ($code, $out, $err) = $self->psql($request{database} // 'postgres', "SELECT to_jsonb(a) FROM $sql AS a",
		extra_params => [ '-U', $request{server}, '-v', 'VERBOSITY=verbose' ],
		timeout => $PostgreSQL::Test::Utils::timeout_default);
	return { error => $err } if $code != 0;
	my %answer = $out =~ /"(\w+)": (?|"([^"]*)"|(-?\d+|null))/g;
	return \%answer;
}

# Returns the arguments of ask() for a server whose newest answer is $answer.
sub known
{
	my ($self, $answer) = @_;
	return (newest => $answer->{number}, map { $_ => $answer->{$_} } qw(term region floor_ms until_ms));
}

# The regions from which each database server leases one.
our %regions = (alpha => '{0,1,2,3}', beta => '{4,5,6,7}', gamma => '{8,9}');

sub question
{
	my ($self, %r) = @_;
	$r{$_} //= 0 foreach qw(fleet term newest acked grant highest floor_ms until_ms);
	$r{region} //= $r{call} eq 'acquire' ? -1 : 0;
	$r{regions} //= $regions{ $r{server} // 'alpha' } // '{0}';
	$r{age} //= 86_400_000;
	$r{nonce} //= 1;
	$r{length} //= 10_100;
	$r{seal} //= $seal;
	my $clock = sprintf 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + %d', $r{ahead} // 0;
	return "snowflake_fleet.ask('$r{call}', $r{fleet}, $r{incarnation}, $r{term}, $r{newest}, $r{nonce}, $r{acked}, $clock, "
	  . "$r{length}, $r{age}, $r{seal}, '$r{regions}', $r{region}, $r{floor_ms}, $r{until_ms}, $r{grant}, $r{highest})";
}

1;
