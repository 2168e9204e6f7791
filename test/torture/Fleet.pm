# Makes the servers for the torture test that scripts/torture --fleet starts. Some servers lease one of two regions, and
# one server has a static region. One of the leasing servers has a standby. The lease server has a standby of its own.
# The base class World has the clocks, the clients, and the list of events for the checker.
package Fleet;

use strict;
use warnings;
use File::Path qw(rmtree);
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);
use World;
use LeaseServerPair;

our @ISA = ('World');

# new(..., servers, lease, skew): the dots stand for the parameters of World::new(). The parameter lease is the duration
# of a lease, and skew the greatest difference between the servers' clocks, both in ms.
sub new
{
	my ($class, %params) = @_;
	my $self = World::new($class, %params, region => -1);
	my ($regions, $shards) = $self->{layout} =~ m{^\d+/(\d+)\+(\d+)/} or die "layout $self->{layout}";
	$self->{regions} = 2**$regions;
	$self->{static}  = $self->{regions} - 1;
	# The last shard is used only by the torture program itself, in a database that the program creates and drops.
	$self->{extra}  = 2**$shards - 1;
	$self->{cold}   = 2**$shards - 2;
	$self->{shards} = 2**$shards - 2;
	$self->{stopped} = {};
	return $self;
}

sub members { my ($self) = @_; return grep { $_->{leased} } $self->groups; }

# Waits until all databases mint, as World::settles() does. If a server does not mint in time, prints which server holds
# each region.
sub settles
{
	my ($self, $seconds, @groups) = @_;
	return 1 if $self->SUPER::settles($seconds, @groups);
	diag($self->lease_server->try('SELECT * FROM snowflake_fleet.regions; SELECT * FROM snowflake_fleet.health'));
	for my $group ($self->groups)
	{
		my (undef, $out) = $self->query($group->{node}, $group->{name}, 'TABLE snowflake.lease');
		diag($group->{node}->name . ': ' . ($out // '?'));
	}
	return 0;
}

sub lease_server { my ($self) = @_; return $self->{lease_server}; }

# Creates the servers.

sub begin
{
	my ($self, $names) = @_;
	$self->{lease_server} = LeaseServerPair->new($self);
	$self->add_server($names->[$_], leased => sprintf '%d,%d', 2 * $_, 2 * $_ + 1) foreach 0 .. $#$names;
	$self->add_server('static');
	$self->new_standby;
	return;
}

sub add_server
{
	my ($self, $name, %is) = @_;
	my %settings = ('snowflake.lease_conninfo' => $self->lease_server->conninfo($name), $is{leased}
		? ('snowflake.leased_regions' => $is{leased}, 'snowflake.lease' => "$self->{lease}ms", 'snowflake.max_skew' => "$self->{skew}ms")
		: ('snowflake.region' => $self->{static}));
	$self->lease_server->sql("SELECT snowflake_fleet.add_server('$name')");
	my $node = $self->new_server($name, settings => \%settings);
	$node->start;
	$self->must($node, 'postgres', 'CREATE ROLE app LOGIN');
	$self->must($node, 'postgres', 'CREATE DATABASE d');
	$self->must($node, 'd', 'CREATE EXTENSION snowflake;' . $self->schema);
	my $group = { %is, title => $name, node => $node, name => 'd', line => $self->new_line, clients => [] };
	$self->say("static $group->{line} $self->{static}") unless $is{leased};
	die "$name has no region" unless $self->settles(30, $group);
	push @{ $self->{groups} }, $group;
	return $group;
}

# Makes a standby of a random server, which a later fault promotes.
sub new_standby
{
	my ($self) = @_;
	my $of = $self->some_member;
	my $name = 'standby' . ++$self->{standbys};
	$of->{node}->backup($name);
	my $node = Snowflake::Node->create_from_backup($name, $of->{node}, $name, has_streaming => 1);
	rmtree($of->{node}->backup_dir . "/$name");
	$self->set_clock($node, 0);
	$node->start;
	@$self{qw(standby standby_of)} = ($node, $of);
	return;
}

sub drop_standby
{
	my ($self) = @_;
	$self->discard(delete $self->{standby});
	return;
}

sub pick { my (undef, @choices) = @_; return $choices[ rand @choices ]; }

# Returns one of the given values at random, or the last value in a short torture run. The caller must pass the value of
# the hardest test as the last argument.
sub pick_hard { my ($self, @choices) = @_; return $self->{short} ? $choices[-1] : $self->pick(@choices); }

sub some_member { my ($self) = @_; my @all = $self->members; return $self->pick(@all); }

sub others { my ($self, $member) = @_; return grep { $_ != $member } $self->members; }

# Starts the clients that mint ids in a database. The first client mints only few ids in each call, so that its ids
# belong to many milliseconds. Two servers that mint in the same region can mint duplicates only in the same
# millisecond. The first client keeps its session after its server has lost a region. The session must not mint in the
# lost region.
sub start_clients
{
	my ($self, $group, $count) = @_;
	$count //= $self->{clients};
	return $self->SUPER::start_clients($group, $count) if $self->{ways} ne '';
	{
		local $self->{ways} = 'single,prepared,after';
		$self->SUPER::start_clients($group, 1);
	}
	$self->SUPER::start_clients($group, $count - 1) if $count > 1;
	return;
}

# Actions of the servers.

# Stops a server, and starts it with a wrong clock. A server that is stopped cleanly returns its leased region.
sub relive
{
	my ($self, $group, $how, $step) = @_;
	my $node = $group->{node};
	if ($how eq 'kill') { $node->kill_all; }
	else { $node->stop($how); }
	$self->set_clock($node, $step // 0);
	$node->start;
	return;
}

# Corrects the clock of a server. If the server minted while its clock was 3000 s or more behind, the server refuses the
# corrected clock until it is accepted.
sub correct
{
	my ($self, $group, $step) = @_;
	$self->set_clock($group->{node}, 0);
	return if $step > -3000;
	# Repeats accept_clock(), because it fails while the server has no region.
	for (1 .. 200)
	{
		my ($code) = $self->query($group->{node}, $group->{name}, 'SELECT snowflake.accept_clock()');
		return if $code eq '0';
		sleep 0.1;
	}
	die "the clock of $group->{title} cannot be accepted";
}

# Restarts some servers. After each restart a server leases one of its regions as a new incarnation.
sub churn
{
	my ($self, $count, @members) = @_;
	@members = $self->members unless @members;
	for (1 .. $count)
	{
		my $member = $self->pick(@members);
		$self->relive($member, $self->pick(qw(kill immediate fast)));
		$self->mint_now($member);
	}
	return;
}

# Copies a server, so that the copy can later lease the server's region. The copy is not started.
sub rival
{
	my ($self, $member) = @_;
	my $name = 'rival' . ++$self->{rivals};
	my $fork = World::now_ns();
	$member->{node}->backup($name);
	my $node = Snowflake::Node->create_from_backup($name, $member->{node}, $name);
	rmtree($member->{node}->backup_dir . "/$name");
	$self->set_clock($node, 0);
	return { %$member, title => $name, node => $node, clients => [], line => $self->new_line(parent => $member->{line}, fork => $fork) };
}

# Starts the copy $rival of a server, which requests the server's region when the server's lease has ended. Returns true
# if the lease server granted the region to the copy.
sub take_over
{
	my ($self, $rival, $region) = @_;
	my $taken = 0;
	$rival->{node}->start;
	for (1 .. 6)
	{
		$taken = $self->mint_now($rival, 1500) && $self->region_of($rival) == $region and last;
		$self->relive($rival, 'kill');
	}
	$self->mint_extra($rival, 'd', 4000) if $taken;
	$self->discard($rival->{node});
	return $taken;
}

# Tries to mint one id within a short time, and returns true if an id was minted.
sub mint_now
{
	my ($self, $group, $wait_ms) = @_;
	return $self->mint(@$group{qw(node name line)}, 'SET snowflake.max_wait = ' . ($wait_ms // 300) . ';') eq '';
}

# Mints ids in the shard that clients do not use, in a given database of the same server.
sub mint_extra
{
	my ($self, $group, $database, $count) = @_;
	my $sent = World::now_ns();
	my ($code, $out) = $self->query($group->{node}, $database, 
		"SET snowflake.max_wait = 10000; SELECT unnest(snowflake.next_ids($self->{extra}, $count))");
	my @ids = $out =~ /^(\d+)$/gm;
	$self->record_all($group->{line}, $sent, $self->{extra}, @ids) if @ids;
	return scalar @ids;
}

sub record_all
{
	my ($self, $line, $sent, $shard, @ids) = @_;
	print { $self->{own_log} } pack('L<5 l< L<2 q<4 q<*',
		0x534e4f57, 1, $line, ++$self->{own_sessions}, 0, $shard, scalar @ids, 0, $sent, World::now_ns(), 0, 0, @ids);
	return;
}

sub region_of
{
	my ($self, $group) = @_;
	my (undef, $out) = $self->query($group->{node}, $group->{name}, 'SELECT region FROM snowflake.lease');
	return $out =~ /^\d+$/ ? $out : -1;
}

# Stops and continues processes by signals. Lists the stopped processes, so that all of them can be continued at the end
# of the torture run.

sub freeze
{
	my ($self, @pids) = @_;
	kill 'STOP', $_ and $self->{stopped}{$_} = 1 for @pids;
	return;
}

sub freeze_server
{
	my ($self, $node) = @_;
	$self->freeze($node->{_pid});
	$self->freeze(Snowflake::Node::children_of($node->{_pid}));
	return;
}

sub thaw
{
	my ($self) = @_;
	kill 'CONT', keys %{ $self->{stopped} };
	$self->{stopped} = {};
	return;
}

sub worker_of
{
	my ($self, $group) = @_;
	for (1 .. 100)
	{
		my (undef, $pid) = $self->query($group->{node}, 'postgres',
			q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake lease'});
		return $pid if $pid =~ /^\d+$/;
		sleep 0.1;
	}
	die "$group->{title} has no worker";
}

# Returns a pattern for the logs of servers that may stop with a PANIC.
sub may_crash { my ($self) = @_; return $self->{full} ? qr/_(?:torn\d+|lease_server\d)\.log$/ : qr/_torn\d+\.log$/; }

# Returns a time in seconds after which every lease that was not renewed has ended.
sub beyond_the_lease { my ($self) = @_; return ($self->{lease} + $self->{max_lead}) / 1000 + 0.3; }

1;
