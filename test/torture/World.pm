# Contains the state of a torture run: servers whose clocks can be set, databases, clients, and a file (manifest). The
# manifest lists all events for the checker.
package World;

use strict;
use warnings;
use File::Path qw(rmtree);
use POSIX ();
use Snowflake::Form;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);

# Lists the layouts for torture runs: the bits of time, region, shard and sequence, and the unit of time in ms.
my %presets = (
	fleet     => [ 41, 5, 8,  10, 1 ],
	instagram => [ 41, 0, 13, 10, 1 ],
	twitter   => [ 41, 5, 5,  12, 1 ],
	js53      => [ 38, 0, 7,  8,  10 ]);
our $epoch_ms = 1735689600000;

# new(dir, programs, seed, rate, layout, region, max_lead, reserve, use_tsc): max_lead and reserve are in ms. If no
# region is given, a random region is used.
sub new
{
	my ($class, %self) = @_;
	my $self = bless {%self}, $class;
	$self->{base}   = 0;     # seconds by which the clocks of all servers are ahead of this machine's clock
	$self->{lines}  = 0;
	$self->{groups} = [];
	$self->{client_count} = 0;
	$self->{log_dir}      = "$self->{dir}/clients";
	mkdir $_ or die "$_: $!" for $self->{log_dir}, "$self->{dir}/library";
	$self->install_library(0, 1) if !$self->{engine};
	open $self->{manifest}, '>', "$self->{dir}/manifest" or die "manifest: $!";
	$self->{manifest}->autoflush(1);
	open $self->{own_log}, '>:raw', "$self->{log_dir}/driver.log" or die "driver.log: $!";
	$self->{own_log}->autoflush(1);

	my ($time, $region, $shard, $sequence, $tick) = @{ $presets{ $self->{layout} } // [ $self->{layout} =~ m{^(\d+)/(\d+)\+(\d+)/(\d+)$}, 1 ] };
	$self->{region} //= int rand 2**$region;
	$self->{shards} = 2**$shard;
	$self->{ids_per_tick} = 2**$sequence;
	$self->{ids_per_ms}   = 2**$sequence / $tick;
	$self->{hot}    = 5;
	$self->{cold}   = $self->{shards} - 1;
	$self->say(join ' ', 'layout', $time, $region, $shard, $sequence, $tick, $epoch_ms, $self->{max_lead},
		$self->{region});
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

# Sets a server's clock the given number of seconds ahead of this machine's clock.
sub set_clock
{
	my ($self, $node, $offset) = @_;
	my $from = now_ns();
	$node->clock->set($offset);
	$self->say("step $from " . now_ns());
	return;
}

sub freeze_clock
{
	my ($self, $node) = @_;
	my $from = now_ns();
	$node->clock->freeze;
	$self->say("step $from " . now_ns());
	return;
}

# Corrects a server's clock. If the server was started with a clock far behind its high-water mark, the server must
# accept the corrected clock without accept_clock().
sub correct_clock
{
	my ($self, $node, $step, $database) = @_;
	$self->set_clock($node, $self->{base});
	return if $step >= -3600;
	# Observes an id of the present time, because with max_lead = 0 a server refuses an id of a later time.
	my (undef, undef, $error) = $self->query($node, $database,
		'SELECT snowflake.observe(snowflake.max_id(clock_timestamp()))');
	is($error, '', 'a clock that was behind the marks at the start is accepted when it is corrected');
	return;
}

# Servers

sub new_server
{
	my ($self, $name, %init) = @_;
	my %settings = (
		'snowflake.layout'             => $self->{layout},
		'snowflake.region'             => $self->{region},
		'snowflake.max_lead'           => "$self->{max_lead}ms",
		'snowflake.reserve'            => "$self->{reserve}ms",
		'snowflake.use_tsc'            => $self->{use_tsc},
		'snowflake.max_forward_jump'   => '1h',
		autovacuum                     => 'on',
		wal_writer_delay               => "$self->{delay}ms",
		max_connections                => 40,
		superuser_reserved_connections => 8,
		shared_buffers                 => '16MB',
		restart_after_crash            => 'on',
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
		dynamic_library_path           => "$self->{dir}/library:\$libdir",
		TimeZone                       => 'UTC',
		log_timezone                   => 'UTC',
		%{ delete $init{settings} // {} });
	%settings = (%settings, shared_preload_libraries => '', max_prepared_transactions => 5) if $self->{engine};
	my $node = Snowflake::Node->create($name, allows_streaming => 1, %init,
		conf => join('', map { "$_ = '$settings{$_}'\n" } sort keys %settings));
	$self->set_clock($node, $self->{base});
	return $node;
}

# Installs the extension in a database, or the SQL version of snowflake if the torture run tests the SQL version.
sub install
{
	my ($self, $node, $database) = @_;
	$self->must($node, $database, $self->{engine} // 'CREATE EXTENSION snowflake');
	return;
}

# Replaces the library of all servers by a rename of the new file. The library with the build number 0 is the installed
# library. The environment variable SNOWFLAKE_TORTURE_BUILD can name the file of another build of the library.
sub install_library
{
	my ($self, $build, $abi) = @_;
	chomp(my $installed = `pg_config --pkglibdir`);
	Snowflake::Form::write_copy($build && $ENV{SNOWFLAKE_TORTURE_BUILD} || "$installed/snowflake.so", "$self->{dir}/library/snowflake.so",
		abi => $self->{abi} = $abi);
	return;
}

sub is_preloaded
{
	my ($self) = @_;
	return $self->must($self->main, 'postgres', 'SHOW shared_preload_libraries') ne '';
}

sub discard
{
	my ($self, $node) = @_;
	$node->stop('immediate');
	rmtree($_) for $node->data_dir, $node->backup_dir, $node->archive_dir;
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

# Mints one id, and records it for the checker as if a client had minted it. Returns the error message if the id could
# not be minted.
sub mint
{
	my ($self, $node, $database, $line, $settings) = @_;
	my $sent = now_ns();
	my ($code, $out, $err) =
	  $self->query($node, $database, ($settings // '') . "SELECT snowflake.next_id($self->{hot})");
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

# The functions in this section write the histories of ids, which check.cpp reads.

sub new_line
{
	my ($self, %of) = @_;
	my $number = ++$self->{lines};
	$self->say(join ' ', 'line', $number, $of{parent} // 0, $of{fork} // 0, $of{mode} // 'plain');
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

# Starts the clients of a database. The hash $group describes the database: {node, name, line, clients, neighbour}. If
# "neighbour" is true, clients request single ids and wait at most 50 ms, because faults must not affect their database.
sub start_clients
{
	my ($self, $group, $count) = @_;
	my $node = $group->{node};
	my @manner = $group->{neighbour} ? ('max_wait=50', 'only=single') : ("only=$self->{ways}");
	my $name = $group->{neighbour} ? 'neighbour' : 'torture';
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
			  . " dbname=$group->{name} user=app application_name=$name connect_timeout=5",
			  "log=$log", "line=$group->{line}", 'seed=' . ($self->{seed} * 1000 + $id),
			  'shards=' . join(',', @shards), "rate=$self->{rate}", @manner
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
		@left = grep { waitpid($_, 1) == 0 } @left;    # the constant WNOHANG is 1
		kill 'KILL', @left if clock_gettime(CLOCK_MONOTONIC) > $deadline;
		sleep 0.01 if @left;
	}
	$group->{clients} = [];
	return;
}

# Call crash_begins() before a crash, and pass its result to continue_after() before the server starts. Before
# PostgreSQL 17, the SQL version of snowflake cannot flush its high-water mark. An id that was returned shortly before a
# crash may then be minted again, unless a committed transaction used the id.
sub crash_begins
{
	my ($self) = @_;
	return undef if !$self->{engine} || $self->must($self->main, 'postgres', 'SHOW server_version_num') >= 170000;
	return now_ns() - 3_000_000_000;
}

sub continue_after
{
	my ($self, $fork) = @_;
	return if !defined $fork;
	for my $group ($self->groups)
	{
		my $clients = @{ $group->{clients} };
		$self->stop_clients($group);
		$group->{line} = $self->new_line(parent => $group->{line}, fork => $fork, mode => 'committed');
		$self->start_clients($group, $clients);
	}
	return;
}

# Accepts the clock after the start of a server, because the clock may be far ahead of the high-water mark. Only the SQL
# version of snowflake needs accept_clock() after each start of the server. The library accepts the clock at the start
# of the server.
sub confirm_clock
{
	my ($self, $node) = @_;
	return if !$self->{engine};
	$self->must($node, $_->{name}, 'SELECT snowflake.accept_clock()') for $self->groups;
	return;
}

sub groups { my ($self) = @_; return @{ $self->{groups} }; }
sub main { my ($self) = @_; return $self->{main}; }

# Waits until every database mints while the clock is right. Returns false if a database does not mint ids in time.
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

# Runs an action that affects only the first database of the torture run. The checker verifies that no call in the
# neighbouring database failed or waited while next_door() ran the action. The action of next_door() must not crash the
# server or step the clock, because both affect all databases.
sub next_door
{
	my ($self, $do) = @_;
	my ($neighbour) = grep { $_->{neighbour} } $self->groups;
	# Waits until the neighbouring database mints without a wait, because calls may still wait after an earlier crash or
	# step back of the clock.
	my $deadline = clock_gettime(CLOCK_MONOTONIC) + 30;
	my $error;
	until (($error = $self->mint(@$neighbour{qw(node name line)}, 'SET snowflake.max_wait = 0;')) eq '')
	{
		die "the neighbour does not mint: $error" if clock_gettime(CLOCK_MONOTONIC) > $deadline;
		sleep 0.02;
	}
	my $from = now_ns();
	my @result = $do->();
	$self->say(join ' ', 'apart', $from, now_ns(), $neighbour->{line});
	return $result[0];
}

# Returns the process ids of the server processes that serve the clients.
sub victims
{
	my ($self) = @_;
	return split /\n/, $self->query($self->main, 'postgres',
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'torture' ORDER BY pid");
}

1;
