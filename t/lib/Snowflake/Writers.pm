# Four clients that go on writing until they are stopped, each statement a transaction; the first error of any of
# them is remembered.

package Snowflake::Writers;

use strict;
use warnings FATAL => 'all';

use Carp;
use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Time::HiRes qw(sleep);

# start NODE, DATABASE, SCRIPT...: scripts of pgbench, drawn at random.
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

# Until a query that was false returns true; by then they have written something.
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

# How long the longest of their transactions has taken, in milliseconds; without each client's last hundred, which pgbench
# has not written down yet.
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

# Ends them between two statements; returns their errors.
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
