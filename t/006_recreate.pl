# Tests extensions and databases that are dropped and created while ids are minted.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', conf => <<~'CONF');
	snowflake.max_lead = 60s
	snowflake.reserve = 100ms
	CONF
my $ledger = Snowflake::Ledger->new;

sub mint
{
	my ($database) = @_;
	$node->mint($ledger, 'SELECT snowflake.next_id(g % 5) FROM generate_series(1, 200) g', $database);
	return;
}

# Drops and creates the extension while a long statement mints ids. A statement that began before DROP EXTENSION, and
# goes on after CREATE EXTENSION, must use the new high-water mark.
foreach my $recreate ('DROP EXTENSION snowflake; CREATE EXTENSION snowflake',
	'BEGIN; DROP EXTENSION snowflake; CREATE EXTENSION snowflake; COMMIT')
{
	my $long = $node->start_writer(
		'SELECT id FROM (SELECT snowflake.next_id(3) AS id, pg_sleep(0.001) FROM generate_series(1, 1500)) s');
	my @short = map { $node->start_writer("SELECT snowflake.next_id(g % 5) FROM generate_series(1, 20) g;\n" x 2000) } 1, 2;
	$node->wait_for_output($_, 4096) foreach @short;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'PgSleep'");
	foreach my $round (1 .. 3)
	{
		$node->safe_psql('postgres', $recreate);
		mint();
	}
	foreach my $writer ($long, @short)
	{
		my $end = $node->finish_writer($writer);
		unlike($end->{errors}, qr/XX000|cache lookup|could not open/, "recreated while $writer->{name} mints: no internal error");
		$ledger->record($writer->{name}, @{ $end->{ids} });
	}
	mint();
	$ledger->check(1_000, "ids are unique over this statement while clients mint: $recreate");
}
$node->crash($ledger, -3);
mint();
# Before the first call the high-water mark of a new extension must be above the ids of the dropped extension.
$node->safe_psql('postgres', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
$node->crash($ledger, -3);
mint();
$ledger->check(2_000, 'ids are unique over a new extension, an immediate stop and a clock that is behind');

$node->crash($ledger, -3);
$node->safe_psql('postgres', 'DROP EXTENSION snowflake');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
mint();
$ledger->check(2_200, 'ids are unique if the extension is recreated before the first call of a server run');

# A transaction that has dropped and created the extension cannot mint ids, because a rollback would remove the new
# high-water mark.
$node->refuses(
	'BEGIN; SELECT snowflake.next_id(1); DROP EXTENSION snowflake; CREATE EXTENSION snowflake; SELECT snowflake.next_id(1)',
	{
		sqlstate => '55000',
		message => 'extension "snowflake" has been dropped and created again in this transaction',
		detail => 'ids that it minted could be minted again',
		hint => 'Commit the transaction first'
	},
	'a transaction that has recreated the extension cannot mint before its commit');
mint();
$node->safe_psql('postgres', 'BEGIN; DROP EXTENSION snowflake; CREATE EXTENSION snowflake; ROLLBACK');
mint();
$node->crash($ledger, -3);
mint();
$ledger->check(2_500, 'ids are unique if recreating the extension is rolled back');

$node->safe_psql('postgres', 'CREATE DATABASE fickle');
foreach my $round (1 .. 6)
{
	$node->mint($ledger, <<~'SQL', 'fickle');
		BEGIN;
		CREATE EXTENSION snowflake;
		SELECT snowflake.next_id(g % 5) FROM generate_series(1, 50) g;
		ROLLBACK;
		SQL
}
$node->safe_psql('fickle', 'CREATE EXTENSION snowflake');
mint('fickle');
$node->crash($ledger, -3);
mint('fickle');
mint();
$ledger->check(3_000, 'ids are unique if creating the extension is rolled back');

$node->safe_psql('fickle', 'CREATE TABLE t AS SELECT snowflake.next_id(1) AS id FROM generate_series(1, 100)');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE fickle');
$node->crash($ledger, -3);
mint('copy');
is($node->safe_psql('copy', 'SELECT snowflake.next_id(1) > max(id) FROM t'), 't', 'a copy of a database mints above its rows');
mint('fickle');

# The new database has the OID of a dropped database, and both databases were made from the same template. The library
# must not use the dropped database's state in shared memory for the new database.
$node->create_database('model');
$node->safe_psql('postgres', 'CREATE DATABASE twin TEMPLATE model OID = 90001');
mint('twin');
$node->clock->step(+1);
mint('twin');
$node->safe_psql('postgres', 'DROP DATABASE twin; CREATE DATABASE twin TEMPLATE model OID = 90001');
mint('twin');
is( $node->safe_psql('twin', <<~"SQL"), 't', 'a database with the oid of a dropped one does not use the published limit of the dropped one');
	SELECT extract(epoch FROM snowflake.time_of(${\ $ledger->of('twin')->highest(1)})) * 1000 < last_value
	  FROM snowflake.high_water
	SQL
$node->crash($ledger, -3);
mint('twin');
mint();
$ledger->check(5_000, 'ids of each database are unique over all these changes');

done_testing();
