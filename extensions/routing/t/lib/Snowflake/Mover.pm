# Runs snowflake-move-shard, and clients that write to the moved shard.

package Snowflake::Mover;

use strict;
use warnings FATAL => 'all';

use Carp;
use File::Basename qw(dirname);
use IPC::Run;
use PostgreSQL::Test::Utils ();
use Snowflake::Fleet;
use Test::More ();
use Time::HiRes qw(sleep time);

sub new
{
	my ($class, $fleet) = @_;
	my $program = dirname(__FILE__) . '/../../../bin/snowflake-move-shard';
	my $self = bless { fleet => $fleet, program => $program, work => $fleet->node('control')->basedir }, $class;
	return $self;
}

sub command { my ($self, @arguments) = @_; return ($self->{program}, '--control' => $self->{fleet}->conninfo('control'), @arguments); }

sub run { my ($self, @arguments) = @_; return _run($self->command(@arguments)); }
sub run_without_map { my ($self, @arguments) = @_; return _run($self->{program}, @arguments); }

# Runs a killed snowflake-move-shard again, with --force if it was killed before it had counted the rows.
sub run_again
{
	my ($self, @arguments) = @_;
	my $run = $self->run(@arguments);
	return $run if $run->{output} !~ /ended before it had counted the rows/;
	my $second = $self->run(@arguments);
	Test::More::is("$run->{status} $second->{status}", '1 1', 'a later run fails if the rows were not counted');
	return $self->run(@arguments, '--force');
}

sub _run
{
	my @command = @_;
	my $output = '';
	my $run = IPC::Run::start(\@command, '<', \undef, '>&', \$output, IPC::Run::timeout(100));
	eval { $run->finish; 1 } or do { $run->kill_kill; croak "$@: $output" };
	return { status => $run->full_result >> 8, output => $output };
}

# Starts snowflake-move-shard in the background.
sub start
{
	my ($self, @arguments) = @_;
	my $move = { output => '' };
	$move->{run} = IPC::Run::start([ $self->command(@arguments) ], '<', \undef, '>&', \$move->{output}, IPC::Run::timeout(180));
	return $move;
}

sub wait_for
{
	my ($self, $move, $pattern) = @_;
	$move->{run}->pump while $move->{output} !~ $pattern && $move->{run}->pumpable;
	return if $move->{output} =~ $pattern;
	Test::More::fail("the program says $pattern");
	croak "it said: $move->{output}";
}

sub finish
{
	my ($self, $move) = @_;
	$move->{run}->finish;
	return { status => $move->{run}->full_result >> 8, output => $move->{output} };
}

# Kills snowflake-move-shard by SIGKILL, so that the program cannot remove its objects.
sub kill_it
{
	my ($self, $move) = @_;
	$move->{run}->signal('KILL');
	eval { $move->{run}->finish };
	return;
}

# Returns the slots, subscriptions, publications and records that a finished move should have removed, but not the old
# schemas.
sub leftovers
{
	my ($self) = @_;
	return join '', map {
		my $found = $_->safe_psql('postgres', <<~'SQL');
			SELECT 'publication ' || pubname FROM pg_publication UNION ALL
			SELECT 'subscription ' || subname FROM pg_subscription UNION ALL
			SELECT 'slot ' || slot_name FROM pg_replication_slots UNION ALL
			SELECT 'origin ' || roname FROM pg_replication_origin UNION ALL
			SELECT 'trigger on ' || tgrelid::regclass FROM pg_trigger WHERE tgname = 'snowflake_move'
			   AND tgrelid NOT IN (SELECT snowflake_fleet.tables_of(schema) FROM snowflake_fleet.moving WHERE state = 'kept') UNION ALL
			SELECT 'role ' || rolname FROM pg_roles AS r WHERE rolname ~ '^snowflake_move' AND NOT EXISTS (SELECT FROM pg_namespace WHERE nspowner = r.oid) UNION ALL
			SELECT 'moving ' || shard || ' ' || state FROM snowflake_fleet.moving WHERE state NOT IN ('kept', 'here')
			SQL
		$found eq '' ? '' : $_->name . ": $found\n"
	} $self->{fleet}->nodes;
}

# Compares the rows of a shard with the expected rows, and returns some differences as text.
sub differences
{
	my ($self, $node, $shard, $expected) = @_;
	my %is = map { split /\|/ } split /\n/, $node->safe_psql('postgres', "SELECT id, name FROM shard_$shard.users");
	my @wrong = (
		(map { "missing: $_ $expected->{$_}" } grep { !exists $is{$_} } keys %$expected),
		(map { "unexpected: $_ $is{$_}" } grep { !exists $expected->{$_} } keys %is),
		(map { "is $is{$_}, not $expected->{$_}: $_" } grep { exists $is{$_} && $is{$_} ne $expected->{$_} } keys %$expected));
	return join "\n", (splice @wrong, 0, 5), @wrong ? scalar(@wrong) . ' more' : ();
}

# Starts a client that writes to a shard and adds a line to a file (journal) for each committed change.
sub start_writer
{
	my ($self, $shard, $number, %params) = @_;
	my $journal = "$self->{work}/journal_${shard}_$number";
	my $stop = "$self->{work}/stop";
	unlink $stop;
	my $script = dirname(__FILE__) . '/../writer.pl';
	my $errors = "$journal.err";
	my $run = IPC::Run::start([ $^X, $script, $self->{fleet}->conninfo('control'), $shard, $number, $journal, $stop ],
		'<', \undef, '>', '/dev/null', '2>', $errors);
	my $writer = { run => $run, journal => $journal, number => $number, shard => $shard, stop => $stop };
	push @{ $self->{writers} }, $writer;
	return $writer;
}

sub stop_writers
{
	my ($self) = @_;
	foreach my $writer (@{ $self->{writers} })
	{
		PostgreSQL::Test::Utils::append_to_file($writer->{stop}, '');
	}
	$_->{run}->finish foreach @{ $self->{writers} };
	unlink map { $_->{stop} } @{ $self->{writers} };
	$self->{writers} = [];
	return;
}

# A line in a client's file is "insert ID NAME SERVER", "update ID NAME SERVER", "delete ID - SERVER", "refused" or
# "error ...".
sub result_of
{
	my ($self, $writer) = @_;
	my %result = (rows => {}, deleted => {}, refused => 0, after => 0, errors => PostgreSQL::Test::Utils::slurp_file("$writer->{journal}.err"));
	foreach my $line (split /\n/, PostgreSQL::Test::Utils::slurp_file($writer->{journal}))
	{
		my ($what, $id, $name, $server) = split / /, $line;
		if ($what eq 'refused') { $result{refused}++; next; }
		if ($what eq 'error') { $result{errors} .= "$line\n"; next; }
		$result{after}++ if $server eq 'b';
		if ($what eq 'delete') { delete $result{rows}{$id}; $result{deleted}{$id} = 1; next; }
		$result{minted}{$id}++ if $what eq 'insert';
		$result{rows}{$id} = $name;
	}
	return \%result;
}

1;
