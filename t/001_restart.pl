# Tests that ids stay unique over every kind of restart, with a clock that is behind afterwards.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

# With a lead of a minute a server mints at once even if its clock is behind. So if the mark were lost, ids would be in
# the past, instead of calls waiting. A batch may use half of the lead, more than all steps together.
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

# Clients that mint while the server ends. Each has received ids by then.
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
		ok(!$end->{well}, "$writer->{name} was cut off");
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
	$ledger->check(10_000, "$end with the clock 6 s back");
}

# A crash restart: shared memory is laid out again under the same postmaster.
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
$ledger->check(25_000, 'a killed backend with the clock 6 s back');

# Restarts within the reserve, each with the clock a little further back.
foreach my $round (1 .. 3)
{
	$node->crash($ledger, -0.3);
	mint();
}
$ledger->check(40_000, 'three immediate stops in a row');

is($node->safe_psql('postgres', 'SELECT count(*) = count(DISTINCT id) FROM photos'),
	't', 'the ids that were committed are all there');

done_testing();
