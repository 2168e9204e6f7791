# The world of a run: servers with clocks that can be set, databases, clients, and the manifest that
# tells the checker what happened.
package World;

use strict;
use warnings;
use File::Path qw(rmtree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);

my %presets = (
	instagram => [ 41, 13, 10, 1 ],
	twitter   => [ 41, 10, 12, 1 ],
	js53      => [ 38, 7,  8,  10 ]);
my $epoch_ms = 1735689600000;

# new(dir, programs, faketime, seed, rate, layout, max_lead, reserve): lead and reserve in ms.
sub new
{
	my ($class, %self) = @_;
	my $self = bless {%self}, $class;
	$self->{base}   = 0;     # seconds that the world's clock is ahead of this host's
	$self->{nodes}  = {};    # by name: what we know of a server beyond its Cluster object
	$self->{lines}  = 0;
	$self->{groups} = [];
	$self->{client_count} = 0;
	$self->{replaced}     = 0;
	$self->{log_dir}      = "$self->{dir}/clients";
	mkdir $self->{log_dir} or die "$self->{log_dir}: $!";
	open $self->{manifest}, '>', "$self->{dir}/manifest" or die "manifest: $!";
	$self->{manifest}->autoflush(1);
	open $self->{own_log}, '>:raw', "$self->{log_dir}/driver.log" or die "driver.log: $!";
	$self->{own_log}->autoflush(1);

	my ($time, $shard, $sequence, $tick) = @{ $presets{ $self->{layout} } };
	$self->{shards} = 2**$shard;
	$self->{hot}    = 5;
	$self->{cold}   = $self->{shards} - 1;
	$self->say("layout $time $shard $sequence $tick $epoch_ms $self->{max_lead}");
	return $self;
}

sub say
{
	my ($self, $line) = @_;
	print { $self->{manifest} } "$line\n";
	return;
}

sub now_ns { return sprintf '%d', clock_gettime(CLOCK_MONOTONIC) * 1e9; }

# Clocks

# Sets how many seconds a server's clock is ahead of this host's; libfaketime reads the file at
# every look at the clock, so it must never be seen half-written.
sub set_clock
{
	my ($self, $node, $offset) = @_;
	$self->write_clock($node, sprintf('%+.6f', $offset));
	return;
}

sub write_clock
{
	my ($self, $node, $text) = @_;
	my $file = $self->clock_file($node);
	open my $out, '>', "$file.new" or die "$file.new: $!";
	print $out "$text\n";
	close $out;
	rename "$file.new", $file or die "$file: $!";
	$self->say('step ' . now_ns());
	return;
}

# Sets a server's clock right. Where it had started under one that was far behind, that is a jump
# ahead like any other, and an administrator has to confirm it.
sub correct_clock
{
	my ($self, $node, $step, $database) = @_;
	$self->set_clock($node, $self->{base});
	return if $step >= -3600;
	my (undef, undef, $error) = $self->query($node, $database,
		'SELECT snowflake.observe(snowflake.min_id(clock_timestamp()))');
	like($error, qr/55000.*the clock jumped ahead/s, 'a clock that jumps ahead is not believed');
	$self->must($node, $database, 'SELECT snowflake.accept_clock()');
	return;
}

sub clock_file { my ($self, $node) = @_; return "$self->{dir}/clock." . $node->name; }

# Servers

sub configure
{
	my ($self, $node, %settings) = @_;
	my %all = (
		shared_preload_libraries       => 'snowflake',
		'snowflake.layout'             => $self->{layout},
		'snowflake.max_lead'           => "$self->{max_lead}ms",
		'snowflake.reserve'            => "$self->{reserve}ms",
		'snowflake.max_databases'      => 6,
		wal_writer_delay               => "$self->{delay}ms",
		max_connections                => 40,
		superuser_reserved_connections => 8,
		shared_buffers                 => '16MB',
		restart_after_crash            => 'on',
		log_statement                  => 'none',
		log_replication_commands       => 'off',
		log_min_messages               => 'log',
		log_min_error_statement        => 'panic',
		log_autovacuum_min_duration    => -1,
		log_checkpoints                => 'off',
		wal_sender_timeout             => 0,
		wal_receiver_timeout           => 0,
		wal_retrieve_retry_interval    => '100ms',
		checkpoint_timeout             => '30s',
		wal_keep_size                  => '256MB',
		TimeZone                       => 'UTC',
		log_timezone                   => 'UTC',
		%settings);
	$node->append_conf('postgresql.conf',
		join('', map { "$_ = '$all{$_}'\n" } sort keys %all));
	return;
}

sub new_server
{
	my ($self, $name, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $settings = delete $init{settings} // {};
	$node->init(allows_streaming => 1, %init);
	$self->configure($node, %$settings);
	$self->adopt($node);
	return $node;
}

sub adopt
{
	my ($self, $node) = @_;
	$self->{nodes}{ $node->name } = { node => $node, lines => {}, life => undef };
	$self->set_clock($node, $self->{base});
	return $node;
}

sub start
{
	my ($self, $node, %params) = @_;
	local $ENV{LD_PRELOAD}                    = $self->{faketime};
	local $ENV{FAKETIME_TIMESTAMP_FILE}       = $self->clock_file($node);
	local $ENV{FAKETIME_NO_CACHE}             = 1;
	local $ENV{FAKETIME_DONT_FAKE_MONOTONIC}  = 1;
	local $ENV{TZ}                            = 'UTC';
	my $started = $node->start(%params);
	$self->life_begins($node) if $started;
	return $started;
}

sub stop
{
	my ($self, $node, $mode) = @_;
	$self->life_ends($node);
	$node->stop($mode);
	return;
}

# SIGKILL for every process of a server, the postmaster first so that nobody is replaced.
sub kill_server
{
	my ($self, $node) = @_;
	my $postmaster = $node->{_pid};
	$self->life_ends($node);
	my @children = children_of($postmaster);
	$node->kill9;
	kill 9, @children;
	my $deadline = clock_gettime(CLOCK_MONOTONIC) + 20;
	while (grep { -d "/proc/$_" && !is_zombie($_) } $postmaster, @children)
	{
		kill 9, children_of($postmaster);
		die "the server's processes outlive SIGKILL" if clock_gettime(CLOCK_MONOTONIC) > $deadline;
		sleep 0.02;
	}
	# Until it is reaped a dead postmaster looks alive to the next.
	unlink $node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock';
	return;
}

sub stat_of
{
	my ($pid) = @_;
	open my $file, '<', "/proc/$pid/stat" or return;
	my $line = <$file> // '';
	return $line =~ /\) (\S) (\d+)/ ? ($1, $2) : ();
}

sub is_zombie { my ($state) = stat_of(@_); return defined $state && $state eq 'Z'; }

sub children_of
{
	my ($parent) = @_;
	opendir my $proc, '/proc' or die "/proc: $!";
	return grep { my (undef, $of) = stat_of($_); defined $of && $of == $parent }
	  grep { /^\d+$/ } readdir $proc;
}

sub discard
{
	my ($self, $node) = @_;
	$self->life_ends($node);
	$node->stop('immediate');
	delete $self->{nodes}{ $node->name };
	rmtree($_) for $node->data_dir, $node->backup_dir, $node->archive_dir;
	return;
}

# A life lasts from one loss of the shared memory to the next.
sub life_begins
{
	my ($self, $node) = @_;
	$self->{nodes}{ $node->name }{life} = now_ns();
	return;
}

sub life_ends
{
	my ($self, $node) = @_;
	my $known = $self->{nodes}{ $node->name };
	return unless defined $known->{life};
	$self->say(join ' ', 'life', $known->{life}, now_ns(), sort keys %{ $known->{lines} })
	  if %{ $known->{lines} };
	$known->{life} = undef;
	return;
}

# SQL

sub query
{
	my ($self, $node, $database, $sql, %params) = @_;
	my ($timed_out, $out, $err) = (0, '', '');
	my $code = $node->psql(
		$database, $sql,
		stdout    => \$out,
		stderr    => \$err,
		timeout   => 60,
		timed_out => \$timed_out,
		extra_params => [ '-v', 'VERBOSITY=verbose' ],
		%params);
	$code = 'timeout' if $timed_out;
	return wantarray ? ($code, $out, $err) : $out;
}

sub must
{
	my ($self, $node, $database, $sql) = @_;
	my ($code, $out, $err) = $self->query($node, $database, $sql);
	die "\"$sql\" failed: $err" unless $code eq '0';
	return $out;
}

# One id for the driver itself, recorded as any client's. Returns the error where there is none.
sub mint
{
	my ($self, $node, $database, $line) = @_;
	my $sent = now_ns();
	my ($code, $out, $err) =
	  $self->query($node, $database, "SELECT snowflake.next_id($self->{hot})");
	return $err || 'no answer' unless $code eq '0' && $out =~ /^\d+$/;
	$self->record($line, $sent, $out);
	$self->{last_id} = $out;
	return '';
}

sub record
{
	my ($self, $line, $sent, $id) = @_;
	print { $self->{own_log} } pack('L<5 l< L<2 q<5',
		0x534e4f57, 1, $line, ++$self->{own_sessions}, 0, $self->{hot}, 1, 0, $sent, now_ns(), 0, 0, $id);
	return;
}

# Lines of history, see check.cpp

sub new_line
{
	my ($self, $node, %of) = @_;
	my $number = ++$self->{lines};
	$self->say(join ' ', 'line', $number, $of{parent} // 0, $of{fork} // 0, $of{mode} // 'plain');
	$self->{nodes}{ $node->name }{lines}{$number} = 1;
	return $number;
}

# Clients

sub schema
{
	my ($self) = @_;
	my $table = sub {
		my ($name, $shard) = @_;
		return <<"SQL";
CREATE TABLE app.$name (before timestamptz DEFAULT clock_timestamp(),
  id bigint PRIMARY KEY DEFAULT snowflake.next_id($shard),
  after timestamptz DEFAULT clock_timestamp(), client int, n int, copy bigint);
CREATE INDEX ON app.$name (client, copy);
SQL
	};
	return "CREATE SCHEMA app;" . $table->('hot', $self->{hot}) . $table->('cold', $self->{cold}) . <<'SQL';
CREATE FUNCTION app.block(shard int, n int)
  RETURNS TABLE (before timestamptz, id bigint, after timestamptz) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..n LOOP
    BEGIN
      before := clock_timestamp();
      id := snowflake.next_id(shard);
      after := clock_timestamp();
      RETURN NEXT;
      IF i % 3 = 0 THEN RAISE EXCEPTION USING ERRCODE = 'P0001'; END IF;
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
  END LOOP;
END $$;
GRANT USAGE ON SCHEMA app TO app;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA app TO app;
SQL
}

# A database of a server that clients mint in: {node, name, line, clients}.
sub start_clients
{
	my ($self, $group, $count) = @_;
	my $node = $group->{node};
	for (1 .. $count // $self->{clients})
	{
		my $id  = ++$self->{client_count};
		my $log = sprintf '%s/client-%04d', $self->{log_dir}, $id;
		my @shards = ($self->{hot}, $self->{cold}, map { ($id * 37 + $_ * 11) % $self->{shards} } 1 .. 6);
		my $pid = fork() // die "fork: $!";
		if ($pid == 0)
		{
			exec "$self->{programs}/client",
			  'conninfo=' . "host=" . $node->host . " port=" . $node->port
			  . " dbname=$group->{name} user=app application_name=torture connect_timeout=5",
			  "log=$log", "line=$group->{line}", 'seed=' . ($self->{seed} * 1000 + $id),
			  'shards=' . join(',', @shards), "rate=$self->{rate}", "only=$self->{ways}"
			  or POSIX::_exit(127);
		}
		push @{ $group->{clients} }, $pid;
	}
	return;
}

sub stop_clients
{
	my ($self, $group) = @_;
	my @left = @{ $group->{clients} };
	kill 'TERM', @left;
	my $deadline = clock_gettime(CLOCK_MONOTONIC) + 6;
	while (@left)
	{
		@left = grep { waitpid($_, 1) == 0 } @left;    # 1: WNOHANG
		kill 'KILL', @left if clock_gettime(CLOCK_MONOTONIC) > $deadline;
		sleep 0.01 if @left;
	}
	$group->{clients} = [];
	return;
}

sub groups { my ($self) = @_; return @{ $self->{groups} }; }
sub main { my ($self) = @_; return $self->{main}; }

# Whether every database mints again, with its clock right.
sub settles
{
	my ($self, $seconds, @groups) = @_;
	@groups = $self->groups unless @groups;
	my $deadline = clock_gettime(CLOCK_MONOTONIC) + ($seconds // 30);
	for my $group (@groups)
	{
		my $error;
		while (($error = $self->mint($group->{node}, $group->{name}, $group->{line})) ne '')
		{
			if (clock_gettime(CLOCK_MONOTONIC) > $deadline)
			{
				diag("$group->{name} does not mint: $error");
				return 0;
			}
			sleep 0.1;
		}
	}
	return 1;
}

# What nobody returned from: backends of clients, by pid.
sub victims
{
	my ($self) = @_;
	return split /\n/, $self->query($self->main, 'postgres',
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'torture' ORDER BY pid");
}

1;
