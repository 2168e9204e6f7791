# Runs four pgbench clients that write until the test stops the clients.

package Snowflake::Writers;

use strict;
use warnings FATAL => 'all';

use Carp;
use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Time::HiRes qw(sleep);

# Starts the clients. The arguments are the server, the database and the pgbench scripts of the clients. Each
# transaction of a client runs one of the scripts at random.
sub start
{
	my ($class, $node, $database, @scripts) = @_;
	my $base = $node->basedir . "/writers_$database";
	my @files;
	foreach my $number (0 .. $#scripts)
	{
		append_to_file("$base.$number.sql", $scripts[$number]);
		push @files, '-f', "$base.$number.sql";
	}
	my $run = IPC::Run::start([ qw(pgbench -n -c 4 -T 3600 -l), "--log-prefix=$base.log", @files, '-h', $node->host, '-p', $node->port, $database ],
		'<', \undef, '>', "$base.out", '2>', "$base.err");
	return bless { run => $run, errors => "$base.err", log => "$base.log", node => $node, database => $database }, $class;
}

# Waits until a query about the written rows returns true.
sub write_until
{
	my ($self, $query) = @_;
	$self->{node}->poll_query_until($self->{database}, $query) or croak "the writers do not get as far as: $query\n" . $self->errors;
	return;
}

sub errors
{
	my ($self) = @_;
	return join '', grep { /error|aborted|terminat/i } split /^/, slurp_file($self->{errors});
}

# Returns the duration of the longest transaction in milliseconds. The last transactions of each client (about a
# hundred) are missing in the result, because pgbench has not logged them yet.
sub longest
{
	my ($self) = @_;
	my $longest = 0;
	foreach my $line (map { split /\n/, slurp_file($_) } glob "$self->{log}.*")
	{
		my ($took) = $line =~ /^\d+ \d+ (\d+) \d/ or next;
		$longest = $took if $took > $longest;
	}
	return $longest / 1000;
}

# Stops the clients, and returns their errors.
sub stop
{
	my ($self) = @_;
	my $errors = $self->errors;
	$self->{run}->signal('TERM');
	$self->{run}->finish;
	$self->{node}->poll_query_until($self->{database},
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench' AND datname = current_database()})
	  or croak 'the writers do not end';
	return $errors;
}

1;
