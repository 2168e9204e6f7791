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
	snowflake.max_databases = 4
	CONF
my $ledger = Snowflake::Ledger->new;

sub mint
{
	my ($database) = @_;
	$node->mint($ledger, 'SELECT snowflake.next_id(g % 5) FROM generate_series(1, 200) g', $database);
	return;
}

# While sessions mint. One statement continues over the change: it calls the old function and must use the new mark.
# Others run in the gap without the extension, and fail.
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
		unlike($end->{errors}, qr/XX000|cache lookup|could not open/, "$writer->{name}: no internal error");
		$ledger->record($writer->{name}, @{ $end->{ids} });
	}
	mint();
	$ledger->check(1_000, "while clients mint: $recreate");
}
$node->crash($ledger, -3);
mint();
# A new extension must cover the old one's ids before its first call.
$node->safe_psql('postgres', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
$node->crash($ledger, -3);
mint();
$ledger->check(2_000, 'a new extension, an immediate stop and a clock that is behind');

# Even if it is replaced first after a server start, with the clock behind.
$node->crash($ledger, -3);
$node->safe_psql('postgres', 'DROP EXTENSION snowflake');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
mint();
$ledger->check(2_200, 'a new extension before the first call of a server run');

# In one transaction: a change that may be rolled back protects no id.
$node->refuses(
	'BEGIN; SELECT snowflake.next_id(1); DROP EXTENSION snowflake; CREATE EXTENSION snowflake; SELECT snowflake.next_id(1)',
	{
		sqlstate => '55000',
		message => 'extension "snowflake" has been dropped and created again in this transaction',
		detail => 'would lose their protection',
		hint => 'Commit the transaction first'
	},
	'no ids between DROP and CREATE EXTENSION and their commit');
mint();
$node->safe_psql('postgres', 'BEGIN; DROP EXTENSION snowflake; CREATE EXTENSION snowflake; ROLLBACK');
mint();
$node->crash($ledger, -3);
mint();
$ledger->check(2_500, 'an extension that was not recreated after all');

# Created, minted, and rolled back repeatedly, without using up slots.
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
$ledger->check(3_000, 'an extension whose creation was rolled back');

# A copy of a database begins above the ids that it contains.
$node->safe_psql('fickle', 'CREATE TABLE t AS SELECT snowflake.next_id(1) AS id FROM generate_series(1, 100)');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE fickle');
$node->crash($ledger, -3);
mint('copy');
is($node->safe_psql('copy', 'SELECT snowflake.next_id(1) > max(id) FROM t'), 't', 'a copy begins above its rows');
mint('fickle');

# Slots: three are taken.
$node->safe_psql('postgres', 'CREATE DATABASE fourth; CREATE DATABASE fifth');
$node->safe_psql($_, 'CREATE EXTENSION snowflake') foreach qw(fourth fifth);
mint();
mint('fourth');
my %full = (
	sqlstate => '53400',
	message => 'too many databases use snowflake',
	detail => '"snowflake.max_databases" is 4, and as many databases have a slot',
	hint => 'SELECT \* FROM snowflake.databases.*raise "snowflake.max_databases" and restart the server');
$node->refuses('SELECT snowflake.next_id(1)', \%full, 'a database too many is refused an id', 'fifth');
$node->refuses('SELECT snowflake.next_ids(1, 5)', \%full, 'a database too many is refused a batch', 'fifth');
is($node->safe_psql('fifth', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 7, 1))'), '7', 'a database too many may decode');
mint($_) foreach qw(postgres fickle copy fourth);
pass('a database too many does not keep the others from minting');
$node->safe_psql('postgres', 'DROP DATABASE copy');
mint('fifth');
pass('the slot of a dropped database is used again');
$node->safe_psql('postgres', 'CREATE DATABASE sixth TEMPLATE fickle');
$node->refuses('SELECT snowflake.next_id(1)', \%full, 'the slot of a dropped database is used by one other', 'sixth');

# The oid of a dropped database, with the relations of its template: its slot looks the same.
$node->safe_psql('postgres', 'DROP DATABASE sixth; DROP DATABASE fourth; DROP DATABASE fifth');
$node->create_database('model');
$node->safe_psql('postgres', 'CREATE DATABASE twin TEMPLATE model OID = 90001');
mint('twin');
$node->clock->step(+1);
mint('twin');
$node->safe_psql('postgres', 'DROP DATABASE twin; CREATE DATABASE twin TEMPLATE model OID = 90001');
mint('twin');
is( $node->safe_psql('twin', <<~"SQL"), 't', 'a database with the oid of another does not live on its limit');
	SELECT extract(epoch FROM snowflake.time_of(${\ $ledger->of('twin')->highest(1)})) * 1000 < last_value
	  FROM snowflake.high_water
	SQL
$node->crash($ledger, -3);
mint('twin');
mint();
$ledger->check(5_000, 'databases that come and go');

done_testing();
