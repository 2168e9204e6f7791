# Tests that ids stay unique over every kind of restart if the clock is set back during the restart.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

# "snowflake.max_lead" is set to a minute, so the server mints ids at once even if its clock is behind. A server that
# lost its high-water mark would return ids that are smaller than its earlier ids.
my $node = Snowflake::Node->create_running('main', conf => "restart_after_crash = on\nsnowflake.max_lead = 60s\n");
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int);
	SQL

my $ledger = Snowflake::Ledger->new;

sub mint
{
	$node->mint($ledger);
	$node->mint($ledger, <<~'SQL');
		INSERT INTO photos (n) SELECT g FROM generate_series(1, 100) g RETURNING id;
		BEGIN;
		INSERT INTO photos (n) SELECT g FROM generate_series(1, 100) g RETURNING id;
		ROLLBACK;
		SQL
	return;
}

# Starts clients that mint ids until the server ends, and waits until each client has received ids.
sub start_writers
{
	my $script = <<~'SQL' x 10_000;
		SELECT unnest(snowflake.next_ids(7, 20));
		SELECT snowflake.next_id(g) FROM generate_series(1, 10) g;
		BEGIN;
		SELECT snowflake.next_id(7);
		ROLLBACK;
		SELECT pg_sleep(0.002);
		SQL
	my @writers = map { $node->start_writer($script) } 1 .. 3;
	$node->wait_for_output($_, 30_000) foreach @writers;
	return @writers;
}

sub finish_writers
{
	foreach my $writer (@_)
	{
		my $end = $node->finish_writer($writer);
		ok(!$end->{well}, "the end of the server ended $writer->{name}");
		$ledger->record($writer->{name}, @{ $end->{ids} });
	}
	return;
}

my %ends = (
	'a restart' => sub { $node->stop },
	'an immediate stop' => sub { $node->stop('immediate') },
	'SIGKILL of the whole server' => sub { $node->kill_all });

foreach my $end (sort keys %ends)
{
	mint();
	my @writers = $end eq 'a restart' ? () : start_writers();
	$ends{$end}->();
	finish_writers(@writers);
	$node->clock->step(-6);
	$ledger->new_server_run;
	$node->start;
	mint();
	$ledger->check(10_000, "ids are unique over $end with the clock set 6 s back");
}

# Tests a crash restart, in which the same postmaster initializes shared memory again.
my @writers = start_writers();
my ($victim) = $node->ids(<<~'SQL');
	SELECT pid FROM pg_stat_activity
	 WHERE application_name = 'writer' LIMIT 1
	SQL
$node->clock->step(-6);
$node->kill_backend($victim);
finish_writers(@writers);
$ledger->new_server_run;
mint();
$ledger->check(25_000, 'ids are unique over a crash restart with the clock set 6 s back');

# Restarts the server three times. Before each restart the test sets the server's clock back by less than
# "snowflake.reserve".
foreach my $round (1 .. 3)
{
	$node->crash($ledger, -0.3);
	mint();
}
$ledger->check(40_000, 'ids are unique over three immediate stops in a row');

is($node->safe_psql('postgres', 'SELECT count(*) = count(DISTINCT id) FROM photos'),
	't', 'the committed ids of the table are unique');

done_testing();
