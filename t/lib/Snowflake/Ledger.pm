# Records all ids that clients received, and checks that each id is unique even after restarts of the server. The ids of
# a shard must ascend within a session and from one server run to the next. Each database has a separate record of ids
# (ledger), because two databases may mint the same id.

package Snowflake::Ledger;

use strict;
use warnings FATAL => 'all';

use Test::More;

sub new
{
	my ($class, %bits) = @_;
	return bless {
		sequence_bits => $bits{sequence_bits} // 10,
		shard_bits => $bits{shard_bits} // 13,
		others => {},     # database => ledger
		holder => {},     # id => session
		last => {},       # the last id that each session received in each shard
		highest => {},    # the highest id of each shard in all server runs
		floor => {},      # the highest id of each shard in the earlier server runs
		faults => [],
		count => 0 }, $class;
}

# Returns the record of ids (ledger) of a database. The methods new_server_run() and check() of one ledger apply to the
# ledgers of all databases.
sub of
{
	my ($self, $database) = @_;
	return $self if ($database // 'postgres') eq 'postgres';
	return $self->{others}{$database} //=
	  __PACKAGE__->new(sequence_bits => $self->{sequence_bits}, shard_bits => $self->{shard_bits});
}

sub shard_of
{
	my ($self, $id) = @_;
	return ($id >> $self->{sequence_bits}) & ((1 << $self->{shard_bits}) - 1);
}

# Records the ids of a session in the order in which they were returned.
sub record
{
	my ($self, $session, @ids) = @_;
	foreach my $id (@ids)
	{
		my $shard = $self->shard_of($id);
		my $before = $self->{last}{$session}{$shard};
		my $holder = $self->{holder}{$id};
		$self->_fault("$id was given to $holder and to $session") if defined $holder;
		$self->_fault("$session was given $id of shard $shard after $before")
		  if defined $before && $id <= $before;
		$self->_fault("$session was given $id of shard $shard; an earlier life gave $self->{floor}{$shard}")
		  if defined $self->{floor}{$shard} && $id <= $self->{floor}{$shard};
		$self->{holder}{$id} = $session;
		$self->{last}{$session}{$shard} = $id;
		$self->{highest}{$shard} = $id
		  if !defined $self->{highest}{$shard} || $id > $self->{highest}{$shard};
		$self->{count}++;
	}
	return;
}

# Call new_server_run() after a restart or failover, because later ids must then be greater than all earlier ids.
sub new_server_run
{
	my ($self) = @_;
	$_->{floor} = { %{ $_->{highest} } } foreach $self, values %{ $self->{others} };
	return;
}

sub anonymous
{
	my ($self) = @_;
	return 'client ' . ++$self->{clients};
}

sub count
{
	my ($self) = @_;
	my $count = 0;
	$count += $_->{count} foreach $self, values %{ $self->{others} };
	return $count;
}

sub highest
{
	my ($self, $shard) = @_;
	return $self->{highest}{$shard};
}

# Tests that at least $least ids were recorded, that ids are unique, and that the ids of a shard ascend.
sub check
{
	my ($self, $least, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @faults = map { @{ $_->{faults} } } $self, values %{ $self->{others} };
	push @faults, 'only ' . $self->count . " ids, expected $least" if $self->count < $least;
	ok(!@faults, "$name (ids are unique, and ascend in each shard)")
	  or diag(join "\n", splice(@faults, 0, 10), @faults ? scalar(@faults) . ' more' : ());
	return;
}

sub _fault
{
	my ($self, $fault) = @_;
	push @{ $self->{faults} }, $fault;
	return;
}

1;
