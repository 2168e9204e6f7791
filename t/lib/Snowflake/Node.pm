# A PostgreSQL server that preloads the library snowflake, and whose clock the test sets.

package Snowflake::Node;

use strict;
use warnings FATAL => 'all';

# All tests of a run share the directory $work.
my $work;

# By default PostgreSQL::Test stores used port numbers in the server's installation, which may not be writable.
BEGIN
{
	$work = $ENV{TESTDATADIR} // (defined $ENV{TESTDIR} ? "$ENV{TESTDIR}/tmp_check" : 'tmp_check');
	$ENV{PG_TEST_PORT_DIR} //= "$work/ports";
}

use parent 'PostgreSQL::Test::Cluster';

use Carp;
use File::Basename qw(basename);
use File::Spec;
use IPC::Run;
# Imports only two functions of PostgreSQL::Test::Utils, because its other functions would hide inherited methods with
# the same names.
use PostgreSQL::Test::Utils qw(slurp_file append_to_file);
use Snowflake::Clock;
use Snowflake::Template;
use Test::More;

# Replaces init() of PostgreSQL::Test::Cluster. Without special options, init() copies a data directory, because initdb
# takes longer.
sub init
{
	my ($self, %params) = @_;
	return $self->SUPER::init(%params) if $params{extra} || $params{force_initdb} || $self->install_path;
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;
	no warnings 'redefine';
	local *PostgreSQL::Test::Utils::system_or_bail = sub {
		return $run->(@_) if $_[0] ne 'initdb';
		return Snowflake::Template::instantiate($work, $self->data_dir, @_);
	};
	return $self->SUPER::init(%params);
}

# Creates a server, but does not start the server. The hash %params can contain conf (settings), install_path (the
# directory of another PostgreSQL version), and the parameters of init(). With a tenth of the default
# "snowflake.max_lead", ids soon reach the limit.
sub create
{
	my ($class, $name, %params) = @_;
	my $conf = delete $params{conf} // '';
	my $install_path = delete $params{install_path};
	my $node = $class->new($name, $install_path ? (install_path => $install_path) : ());
	$node->init(%params);
	# PostgreSQL::Test of version 18 writes autovacuum_worker_slots for every server, but older servers do not start
	# with this setting.
	$node->adjust_conf('postgresql.conf', 'autovacuum_worker_slots', undef) if $install_path;
	$node->set_preload;
	$node->append_conf('postgresql.conf',
		# A killed server does not remove its dynamic shared memory. With "mmap", dynamic shared memory is deleted together
		# with the data directory.
		"dynamic_shared_memory_type = mmap\n"
		# Tests step the clock by minutes, so the server must accept jumps of up to an hour.
		. "log_statement = none\nautovacuum = off\nsnowflake.max_lead = '100ms'\nsnowflake.max_forward_jump = 1h\n$conf");
	return $node;
}

# Sets whether the server preloads the library at its next start. By default a server preloads the library unless the
# environment has SNOWFLAKE_PRELOAD=off.
sub set_preload
{
	my ($self, $on) = @_;
	$on //= ($ENV{SNOWFLAKE_PRELOAD} // 'on') ne 'off';
	$self->append_conf('postgresql.conf', "shared_preload_libraries = '" . ($on ? 'snowflake' : '') . "'");
	return;
}

# Starts a new server with the extension in the database postgres. In %params, "clock" is the number of seconds by which
# the clock is wrong.
sub create_running
{
	my ($class, $name, %params) = @_;
	my $clock = delete $params{clock} // 0;
	my $node = $class->create($name, %params);
	$node->clock->set($clock);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $node;
}

# Makes a server from a backup, like init_from_backup() of PostgreSQL::Test::Cluster.
sub create_from_backup
{
	my ($class, $name, $source, $backup, %params) = @_;
	my $conf = delete $params{conf} // '';
	my $node = $class->new($name);
	$node->init_from_backup($source, $backup, %params);
	$node->append_conf('postgresql.conf', $conf);
	return $node;
}

sub clock
{
	my ($self) = @_;
	$self->{snowflake_clock} //= Snowflake::Clock->new($self->basedir . '/clock', "$work/clock.so");
	return $self->{snowflake_clock};
}

# Builds a library from a C file and preloads the library into the server, and sets environment variables of the server.
# The argument $source can be undef, to set only environment variables.
sub preload
{
	my ($self, $source, %environment) = @_;
	push @{ $self->{snowflake_libraries} },
	  Snowflake::Clock::build($source, File::Spec->rel2abs($self->basedir . '/' . basename($source, '.c') . '.so')) if defined $source;
	$self->{snowflake_environment} = { %{ $self->{snowflake_environment} // {} }, %environment };
	return;
}

sub _environment
{
	my ($self) = @_;
	my %clock = $self->clock->environment;
	return (%clock, LD_PRELOAD => join(':', $clock{LD_PRELOAD}, @{ $self->{snowflake_libraries} // [] }),
		%{ $self->{snowflake_environment} // {} });
}

sub start
{
	my ($self, %params) = @_;
	local %ENV = (%ENV, $self->_environment);
	my $started = $self->SUPER::start(%params);
	$self->_check_clock if $started;
	return $started;
}

# Starts or restarts the server with the given settings, which replace the settings of the last call.
sub start_with
{
	my ($self, $settings, $mode) = @_;
	my $file = $self->data_dir . '/tested.conf';
	$self->append_conf('postgresql.conf', "include = 'tested.conf'") if !-e $file;
	unlink $file;
	append_to_file($file, "$settings\n");
	$self->stop($mode);
	return $self->start;
}

sub restart
{
	my ($self, %params) = @_;
	local %ENV = (%ENV, $self->_environment);
	return $self->SUPER::restart(%params);
}

# Stops the server immediately, steps its clock, and starts the server. Later ids must be greater than all earlier ids.
sub crash
{
	my ($self, $ledger, $step) = @_;
	$self->stop('immediate');
	$self->clock->step($step // 0);
	$ledger->new_server_run;
	$self->start;
	return;
}

# Checks that the server uses the simulated clock, because many tests would also pass with the real clock.
sub _check_clock
{
	my ($self) = @_;
	my $off = $self->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())') - time;
	BAIL_OUT("the server's clock is off by $off s instead of " . $self->clock->offset . ' s')
	  if abs($off - $self->clock->offset) > 10;
	return;
}

sub reconfigure
{
	my ($self, %settings) = @_;
	foreach my $name (sort keys %settings)
	{
		$self->append_conf('postgresql.conf', "$name = $settings{$name}");
	}
	$self->reload;
	foreach my $name (sort keys %settings)
	{
		(my $value = $settings{$name}) =~ s/^'(.*)'$/$1/;
		$self->poll_query_until('postgres',
			"SELECT current_setting('$name') = '$value'")
		  or croak "$name did not become $value";
	}
	# Commits wait for a standby only after the checkpointer process has read synchronous_standby_names. CHECKPOINT waits
	# for that process.
	$self->safe_psql('postgres', 'CHECKPOINT') if exists $settings{synchronous_standby_names};
	return;
}

sub create_database
{
	my ($self, $database) = @_;
	$self->safe_psql('postgres', "CREATE DATABASE $database");
	$self->safe_psql($database, 'CREATE EXTENSION snowflake');
	return;
}

sub add_tools
{
	my ($self, $database) = @_;
	$self->safe_psql($database // 'postgres', 'CREATE EXTENSION snowflake_shards; CREATE EXTENSION snowflake_migrate');
	return;
}

# Creates functions for base32 and ULIDs, whose C code is in the library snowflake, without the extension
# snowflake_alias.
sub add_text_forms
{
	my ($self, $database) = @_;
	$self->safe_psql($database, <<~'SQL');
		CREATE FUNCTION snowflake.to_base32(id bigint, check_symbol boolean DEFAULT false) RETURNS text LANGUAGE C IMMUTABLE STRICT AS 'snowflake', 'snowflake_to_base32';
		CREATE FUNCTION snowflake.from_base32(encoded text, check_symbol boolean DEFAULT false) RETURNS bigint LANGUAGE C IMMUTABLE STRICT AS 'snowflake', 'snowflake_from_base32';
		CREATE FUNCTION snowflake.to_ulid(id bigint) RETURNS text LANGUAGE C IMMUTABLE STRICT AS 'snowflake', 'snowflake_to_ulid';
		CREATE FUNCTION snowflake.from_ulid(encoded text) RETURNS bigint LANGUAGE C IMMUTABLE STRICT AS 'snowflake', 'snowflake_from_ulid';
		SQL
	return;
}

# Returns the ids that a query selects. Dies if the query fails.
sub ids
{
	my ($self, $sql, $database) = @_;
	return split /\n/, $self->safe_psql($database // 'postgres', $sql);
}

# The statements of a typical application: single ids, batches, and transactions that roll back.
my $MIX = <<'SQL';
SELECT snowflake.next_id(g % 40) FROM generate_series(1, 400) g;
SELECT unnest(snowflake.next_ids(7, 5000));
BEGIN;
SELECT snowflake.next_id(7);
SAVEPOINT s;
SELECT unnest(snowflake.next_ids(39, 50));
ROLLBACK TO s;
SELECT snowflake.next_id(7);
ROLLBACK;
SELECT snowflake.next_id(7);
SQL

# Runs a statement (by default $MIX), and records the returned ids in a ledger. The calls of a test never overlap, so
# the ledger treats all calls as one session.
sub mint
{
	my ($self, $ledger, $sql, $database) = @_;
	my @ids = $self->ids($sql // $MIX, $database);
	$ledger->of($database)->record('psql', @ids);
	return @ids;
}

# Returns the high-water mark of a database in milliseconds since 1970.
sub mark
{
	my ($self, $database) = @_;
	return $self->safe_psql($database // 'postgres', 'SELECT last_value FROM snowflake.high_water');
}

# Returns the error of a statement that must fail, with SQLSTATE, detail and hint.
sub error_of
{
	my ($self, $sql, $database) = @_;
	my ($code, $out, $err) = $self->psql($database // 'postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose' ], on_error_stop => 1);
	return $code == 0 ? "no error; returned \"$out\"" : $err;
}

# Runs a statement that must fail, and checks its error. The hash %expected contains the SQLSTATE, and patterns for
# message, detail and hint.
sub refuses
{
	my ($self, $sql, $expected, $name, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like($self->error_of($sql, $database), error_pattern($expected), $name);
}

sub error_pattern
{
	my ($expected) = @_;
	my $pattern = "(?:ERROR|FATAL):  $expected->{sqlstate}: .*?(?:$expected->{message})";
	$pattern .= "(?s:.*)\nDETAIL:  .*?(?:$expected->{detail})" if defined $expected->{detail};
	$pattern .= "(?s:.*)\nHINT:  .*?(?:$expected->{hint})" if defined $expected->{hint};
	return qr/$pattern/;
}

# Starts psql in the background. This psql continues after a failed statement.
sub session
{
	my ($self, $database, %params) = @_;
	return $self->background_psql($database // 'postgres', on_error_stop => 0, %params);
}

# Starts a client in the background, which runs an SQL script and writes the returned ids to a file.
sub start_writer
{
	my ($self, $script, $database) = @_;
	my $number = ++$self->{snowflake_writers};
	my $base = $self->basedir . "/writer_$number";
	append_to_file("$base.sql", $script);
	append_to_file("$base.out", '');
	my $run = IPC::Run::start(
		[
			'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', "$base.sql",
			'-d', $self->connstr($database // 'postgres') . ' application_name=writer'
		],
		'<', \undef, '>', "$base.out", '2>', "$base.err");
	return { name => $self->name . "/writer $number", run => $run, base => $base };
}

# Waits until a client of start_writer() has received an id.
sub wait_for_output
{
	my ($self, $writer, $bytes) = @_;
	my $tries = 50 * $PostgreSQL::Test::Utils::timeout_default;
	while (-s "$writer->{base}.out" < $bytes)
	{
		croak "$writer->{name} was given nothing: " . slurp_file("$writer->{base}.err")
		  if --$tries == 0;
		select undef, undef, undef, 0.02;
	}
	return;
}

# Waits until a client of start_writer() has ended. Returns a hash with the keys well (whether the client succeeded),
# ids and errors.
sub finish_writer
{
	my ($self, $writer) = @_;
	my $well = $writer->{run}->finish;
	my @ids = grep { /^\d+$/ } split /\n/, slurp_file("$writer->{base}.out");
	return { well => $well, ids => \@ids, errors => slurp_file("$writer->{base}.err") };
}

# Kills all processes of the server by SIGKILL, as if the machine had stopped. The postmaster must be killed first,
# because it could start new processes.
sub kill_all
{
	my ($self) = @_;
	my $postmaster = $self->{_pid};
	my @children = children_of($postmaster);
	$self->kill9;
	kill 9, @children;
	my $tries = 50 * $PostgreSQL::Test::Utils::timeout_default;
	# Waits until all processes of the server have ended or are zombies. Both kill() and a new postmaster that reads
	# postmaster.pid would treat a zombie as a running process.
	while (grep { (_stat_of($_))[0] =~ /[^Z]/ } $postmaster, @children)
	{
		kill 9, children_of($postmaster);
		croak 'processes of the server outlive SIGKILL' if --$tries == 0;
		select undef, undef, undef, 0.02;
	}
	unlink $self->data_dir . '/postmaster.pid', $self->host . '/.s.PGSQL.' . $self->port . '.lock';
	return;
}

# Returns the state and the parent of a process, or empty strings if the process does not exist.
sub _stat_of
{
	my ($pid) = @_;
	open my $file, '<', "/proc/$pid/stat" or return ('', '');
	return (<$file> // '') =~ /.*\) (\S) (\d+)/ ? ($1, $2) : ('', '');
}

sub children_of
{
	my ($parent) = @_;
	return grep { (_stat_of($_))[1] eq $parent } map { m{/proc/(\d+)$} } glob '/proc/[0-9]*';
}

sub log_content { return slurp_file($_[0]->logfile); }

# Repeats a query until the query returns true. A broken pipe is ignored, because psql ends if the server stops while
# psql connects.
sub poll_query_until
{
	my ($self, @arguments) = @_;
	while (1)
	{
		my $found = eval { $self->SUPER::poll_query_until(@arguments) };
		return $found if $@ eq '';
		die $@ if $@ !~ /Broken pipe: write\(/;
	}
}

# Kills a backend by SIGKILL, and waits until the postmaster has restarted the server's processes.
sub kill_backend
{
	my ($self, $pid) = @_;
	my $since = -s $self->logfile;
	kill 9, $pid or croak "could not kill backend $pid";
	$self->wait_for_log(qr/all server processes terminated; reinitializing/, $since);
	$self->poll_query_until('postgres', 'SELECT true') or croak 'no crash restart';
	return;
}

1;
