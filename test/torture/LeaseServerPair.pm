# Manages the lease server and its synchronous standby. The lease server and its standby can exchange their roles.
package LeaseServerPair;

use strict;
use warnings;
use File::Path qw(rmtree);
use PostgreSQL::Test::Utils qw(slurp_file system_or_bail);
use Snowflake::LeaseServer;
use Test::More;
use Time::HiRes qw(sleep);
use World;

sub new
{
	my ($class, $world) = @_;
	my $self = bless { world => $world }, $class;
	my $primary = $self->{primary} = Snowflake::LeaseServer->create('lease_server1', allows_streaming => 1,
		has_archiving => 1, extra => ['--wal-segsize=1'], conf => <<~'CONF');
		shared_buffers = 16MB
		max_connections = 50
		min_wal_size = 2MB
		max_wal_size = 4MB
		wal_keep_size = 4MB
		wal_recycle = off
		restart_after_crash = on
		wal_sender_timeout = 0
		wal_receiver_timeout = 0
		wal_retrieve_retry_interval = 100ms
		log_min_messages = log
		log_min_error_statement = panic
		log_checkpoints = off
		log_timezone = UTC
		CONF
	$self->{archive} = $primary->archive_dir;    # the lease server and its standby archive into the same directory
	$self->{standby} = Snowflake::LeaseServer->new('lease_server2');
	$primary->start;
	$primary->install;
	$self->sql(sprintf q{SELECT snowflake_fleet.create_fleet(lease => '%d ms', max_lead => '1 s', max_skew => '%d ms')},
		$world->{lease}, $world->{skew});
	$self->attach_standby;
	return $self;
}

sub primary { return $_[0]{primary}; }
sub standby { return $_[0]{standby}; }

# Returns a connection string with the addresses of both servers, for the worker that leases. libpq connects to the
# server that accepts writes.
sub conninfo
{
	my ($self, $role) = @_;
	my @nodes = @$self{qw(primary standby)};
	return 'host=' . join(',', map { $_->host } @nodes) . ' port=' . join(',', map { $_->port } @nodes)
	  . " dbname=postgres user=$role target_session_attrs=read-write";
}

sub sql { my ($self, $sql) = @_; return $self->{world}->must($self->{primary}, 'postgres', $sql); }

sub try
{
	my ($self, $sql) = @_;
	my (undef, $out, $err) = $self->{world}->query($self->{primary}, 'postgres', $sql, timeout => 10);
	return $out . $err;
}

# Sets whether commits of the lease server wait for a standby.
sub synchronous
{
	my ($self, $names) = @_;
	$self->sql("ALTER SYSTEM SET synchronous_standby_names = '$names'");
	$self->sql('SELECT pg_reload_conf()');
	$self->{primary}->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '$names'")
	  or die 'no reload of the lease server';
	return;
}

# Makes the server that is not the lease server a new standby of the lease server.
sub attach_standby
{
	my ($self) = @_;
	my ($primary, $standby) = @$self{qw(primary standby)};
	my $name = 'backup' . ++$self->{backups};
	$standby->stop('immediate');
	rmtree($standby->data_dir);
	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	rmtree($primary->backup_dir . "/$name");
	$self->{world}->set_clock($standby, 0);
	$standby->start;
	$self->synchronous('*');
	$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'})
	  or die 'no synchronous standby of the lease server';
	return;
}

sub end
{
	my ($self, $node, $how) = @_;
	if ($how eq 'kill') { $node->kill_all; }
	else { $node->stop($how); }
	return;
}

sub swap { my ($self) = @_; @$self{qw(primary standby)} = @$self{qw(standby primary)}; return; }

# Allows or refuses connections of ordinary roles to the lease server. Connections must be refused while an operator
# does not know which commits the lease server has lost.
sub fence
{
	my ($self, $on) = @_;
	my $file  = $self->{primary}->data_dir . '/pg_hba.conf';
	my $owner = getpwuid $<;
	my $rules = slurp_file($file) =~ s/\A(?:.*# fence\n)+//r;
	$rules = "local all $owner trust # fence\nlocal all all reject # fence\n$rules" if $on;
	open my $out, '>', $file or die "$file: $!";
	print $out $rules;
	close $out;
	$self->sql('SELECT pg_reload_conf()') if $self->{primary}{_pid};
	return;
}

sub recovered
{
	my ($self) = @_;
	$self->sql('SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true, although_healthy => true)');
	return;
}

# Stores a copy of the lease server's data files, for a later restore.
sub keep_files
{
	my ($self) = @_;
	$self->{kept} = $self->{primary}->basedir . '/kept';
	rmtree($self->{kept});
	system_or_bail('cp', '-a', $self->{primary}->data_dir, $self->{kept});
	return;
}

sub put_back
{
	my ($self) = @_;
	rmtree($self->{primary}->data_dir);
	system_or_bail('mv', delete $self->{kept}, $self->{primary}->data_dir);
	return;
}

sub stop
{
	my ($self) = @_;
	$_->stop('immediate') for @$self{qw(standby primary)};
	return;
}

1;
