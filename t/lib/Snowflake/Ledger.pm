# Records all ids that clients received, and checks the promise: each id is unique over all server runs, and ids of a
# shard only go up, within a session and from one run to the next. Databases are independent: of() has a ledger for
# each.

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
		last => {},       # session => shard => last id
		highest => {},    # shard => highest id of this life and the earlier ones
		floor => {},      # shard => highest id of the earlier lives
		faults => [],
		count => 0 }, $class;
}

# The ledger of another database. It shares runs and check() with this one.
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

# Records the ids of a session, in their order.
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

# The server starts again, or another takes over: later ids must be above all earlier ones.
sub new_server_run
{
	my ($self) = @_;
	$_->{floor} = { %{ $_->{highest} } } foreach $self, values %{ $self->{others} };
	return;
}

# A new name for a session each time, for clients that have ended.
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

# One test: at least this many ids were recorded, and all keep the promise.
sub check
{
	my ($self, $least, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @faults = map { @{ $_->{faults} } } $self, values %{ $self->{others} };
	push @faults, 'only ' . $self->count . " ids, expected $least" if $self->count < $least;
	ok(!@faults, "$name: no id twice, all shards ascending")
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
