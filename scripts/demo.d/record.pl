# Records what the views of the extension show while the clock of a server is stepped, for scripts/demo --report.
#
#   perl -I t/lib record.pl BINDIR DIRECTORY > recording.json
#
# Starts the server with the data directory DIRECTORY/data and a simulated clock (t/lib/Snowflake/Clock.pm). While
# clients mint in four shards and the clock is stepped, the program reads the views five times a second. The server
# continues to run when the program ends.

use strict;
use warnings FATAL => 'all';

use IPC::Open2;
use JSON::PP;
use POSIX qw(WNOHANG);
use Snowflake::Clock;
use Time::HiRes qw(sleep time);

my ($bin, $directory) = @ARGV;
my $INTERVAL = 0.2;

# Lists the steps of the clock and a burst of ids, each with its time in seconds after the start of the recording.
my @EVENTS = (
	{ at => 4, what => 'burst', seconds => 3 },
	{ at => 10, what => 'step', by => -0.6 },
	{ at => 14, what => 'step', by => -2.5 },
	{ at => 19, what => 'step', by => +3.1 },
	{ at => 23.5, what => 'step', by => +7200 },
	{ at => 25.5, what => 'step', by => -7200 });
my $END = 29;

# Sets the number of transactions per second in each shard, with one id per transaction. In shard number $BURSTING, one
# client mints batches.
my %RATE = (1 => 300, 2 => 120, 3 => 30);
my $BURSTING = 5;

my $clock = Snowflake::Clock->new("$directory/clock");
{
	local %ENV = (%ENV, $clock->environment);
	run("$bin/pg_ctl", qw(start -s -w -D), "$directory/data", '-l', "$directory/server.log");
}
my $client = start_client();
ask($client, <<'SQL');
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE TABLE photos (id bigint PRIMARY KEY, caption text);
CREATE TABLE batches (ids bigint[]);
ALTER TABLE batches ALTER ids SET STORAGE EXTERNAL;
-- A client that tries again when it is refused, as an application does.
CREATE FUNCTION post(shard int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO photos VALUES (snowflake.next_id(shard), 'first light');
  RETURN true;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  RETURN false;
END $$;
SQL

my %settings = map { $_ => ask($client, "SELECT setting FROM pg_settings WHERE name = 'snowflake.$_'") }
  qw(max_lead max_wait max_forward_jump reserve);
my $began = time;
my $log_from = -s "$directory/server.log";
my @load = map { load("post_$_", "SELECT post($_) \\gset\n\\if :post\n\\else\n\\sleep 100 ms\n\\endif", '-R', $RATE{$_}, '-T', $END) } sort keys %RATE;

my (@samples, @done);
while ((my $now = time - $began) < $END)
{
	while (@EVENTS && $EVENTS[0]{at} <= $now)
	{
		push @samples, sample();    # the last sample before the event (a clock step or a burst of ids)
		my $event = shift @EVENTS;
		$event->{at} = time - $began;
		$clock->step($event->{by}) if $event->{what} eq 'step';
		push @load, load('burst', "INSERT INTO batches VALUES (snowflake.next_ids($BURSTING, 4000));", '-T', $event->{seconds})
		  if $event->{what} eq 'burst';
		push @done, $event;
	}
	push @samples, sample();
	my $pause = $now + $began + $INTERVAL - time;
	sleep($pause) if $pause > 0;
}
finish($_) foreach @load;
push @samples, sample();

my $count = ask($client, <<'SQL');
WITH every AS (SELECT id FROM photos UNION ALL SELECT unnest(ids) FROM batches)
SELECT json_build_object('ids', count(*), 'distinct', count(DISTINCT id)) FROM every
SQL
my $server = ask($client, <<'SQL');
SELECT json_build_object('postgres', current_setting('server_version'), 'snowflake', extversion, 'layout', bits,
                         'ids_per_second', ids_per_second)
  FROM pg_extension, snowflake.layout WHERE extname = 'snowflake'
SQL
print JSON::PP->new->canonical->encode({
	settings => \%settings, events => \@done, samples => \@samples, end => $END, rate => \%RATE,
	bursting => $BURSTING, count => decode_json($count), server => decode_json($server), log => log_lines(),
	began => $began });

# Reads all recorded values with one statement, which returns one row. The program reads the true time before and after
# the statement.
sub sample
{
	my $before = time;
	my $sample = decode_json(ask($client, <<'SQL'));
SELECT json_build_object('clock', extract(epoch FROM c.clock), 'minting', c.minting, 'reason', c.reason,
         'lead_ms', c.lead_ms, 'backward_steps', backward_steps, 'total',
         (SELECT json_build_object('ids', ids, 'waits', waits, 'wait_ms', wait_time, 'refusals', refusals)
            FROM snowflake.database_stats), 'shards',
         (SELECT coalesce(json_agg(json_build_object('shard', shard, 'ids', ids, 'last', extract(epoch FROM last_time))), '[]')
            FROM snowflake.shard_stats))
  FROM snowflake.health c, snowflake.clock_history
SQL
	my $true = ($before + time) / 2;
	$sample->{at} = $true - $began;
	$sample->{offset} = $sample->{clock} - $true;
	return $sample;
}

sub start_client
{
	my $pid = open2(my $from, my $to, "$bin/psql", qw(-XAtq -v ON_ERROR_STOP=1));
	return { pid => $pid, from => $from, to => $to };
}

sub ask
{
	my ($client, $sql) = @_;
	print { $client->{to} } "$sql;\n\\echo =end=\n";
	$client->{to}->flush;
	my $answer = '';
	while (defined(my $line = readline $client->{from}))
	{
		return $answer =~ s/\n\z//r if $line eq "=end=\n";
		$answer .= $line;
	}
	die "psql has ended: $sql\n";
}

# Runs pgbench with this machine's clock instead of the simulated clock.
sub load
{
	my ($name, $sql, @options) = @_;
	open my $script, '>', "$directory/$name.sql" or die "$name: $!";
	print $script "$sql\n";
	close $script;
	my $pid = fork // die "fork: $!";
	if ($pid == 0)
	{
		open STDOUT, '>', "$directory/$name.log";
		open STDERR, '>&', \*STDOUT;
		exec "$bin/pgbench", '-n', @options, '-f', "$directory/$name.sql" or die "pgbench: $!";
	}
	return { name => $name, pid => $pid };
}

sub finish
{
	my ($load) = @_;
	waitpid $load->{pid}, 0;
	die "pgbench failed: see $directory/$load->{name}.log\n" if $?;
	return;
}

# Returns the lines that the server wrote to its log during the recording.
sub log_lines
{
	open my $log, '<', "$directory/server.log" or die "server.log: $!";
	seek $log, $log_from, 0;
	my @lines;
	while (my $line = <$log>)
	{
		push @lines, { severity => $1, text => $2 }
		  if $line =~ /(WARNING|LOG|DETAIL|HINT):  (.*)/ && $2 !~ /^(?:checkpoint|statement:|duration:)/;
	}
	return \@lines;
}

sub run
{
	system(@_) == 0 or die "@_ failed\n";
	return;
}
