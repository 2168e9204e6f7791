# Tests which functions of snowflake work on a streaming standby. Ids must stay unique if the standby is promoted while
# its clock is behind.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

# With wal_consistency_checking, a standby stops if the replay of a high-water mark gives another page than on the
# primary.
my $primary = Snowflake::Node->create_running('primary', allows_streaming => 1,
	extra => ['--data-checksums'], conf => <<~'CONF');
	wal_consistency_checking = all
	wal_keep_size = 64MB
	snowflake.max_lead = 60s
	snowflake.reserve = 200ms
	CONF
$primary->safe_psql('postgres', <<~'SQL');
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int);
	SQL
my $ledger = Snowflake::Ledger->new;

sub mint
{
	my ($node) = @_;
	$node->mint($ledger);
	$node->mint($ledger, <<~'SQL');
		INSERT INTO photos (n) SELECT g FROM generate_series(1, 100) g RETURNING id;
		BEGIN;
		INSERT INTO photos (n) SELECT g FROM generate_series(1, 100) g RETURNING id;
		ROLLBACK;
		SQL
	return;
}

sub add_standby
{
	my ($name, $source) = @_;
	$source->backup("for_$name");
	my $standby = Snowflake::Node->create_from_backup($name, $source, "for_$name", has_streaming => 1);
	$standby->clock->set($source->clock->offset);
	$standby->start;
	return $standby;
}

mint($primary);
my $standby = add_standby('standby', $primary);
my $cascade = add_standby('cascade', $standby);
mint($primary);
$primary->wait_for_catchup($standby, 'replay');

my $session = $standby->session;
my ($id) = $standby->ids('SELECT max(id) FROM photos');
my %recovering = (
	sqlstate => '25006',
	message => 'cannot execute \S+\(\) during recovery',
	detail => 'This server is a standby',
	hint => 'Connect to the primary server');
$standby->refuses($_, \%recovering, "a standby refuses $_")
  foreach 'SELECT snowflake.next_id(5)', 'SELECT snowflake.next_ids(5, 10)', "SELECT snowflake.observe($id)";
is($standby->safe_psql('postgres', "SELECT shard FROM snowflake.decode($id)"), '5', 'decode() works on a standby');
is($standby->safe_psql('postgres', "SELECT count(*) FROM photos WHERE snowflake.created_within(id, now() - interval '1 hour', now() + interval '1 hour')"),
	'200', 'created_within() works on a standby');
is($session->query_safe('SELECT bits FROM snowflake.layout'), '41/5+8/10', 'the view layout works on a standby');
is($session->query_safe('SELECT count(*) FROM snowflake.shard_stats'), '0', 'the view shard_stats works on a standby');
is($session->query_safe('SELECT clock IS NOT NULL AND covered_until IS NULL AND NOT minting AND reason = \'standby\' FROM snowflake.health'),
	't', 'health on a standby shows the clock and the reason "standby"');
$primary->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET UNLOGGED');
$primary->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 'f|standby', 'health on a standby does not read an unlogged mark, which has no file there');
$primary->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET LOGGED');
my $reading = $standby->session;
$reading->query_safe('BEGIN; SELECT 1');

# After its promotion the standby must use the last high-water mark that it received, not a value that it cached before.
$_->clock->step(+2) foreach $primary, $standby;
mint($primary);
my @last = $primary->ids('SELECT snowflake.next_id(g % 40) FROM generate_series(1, 400) g');
$ledger->record('last', @last);
$primary->safe_psql('postgres', 'INSERT INTO photos (id, n) VALUES (' . $last[-1] . ', 0)');
$primary->wait_for_catchup($standby, 'replay');
$primary->stop('immediate');

is($standby->safe_psql('postgres', 'SELECT count(*) FROM snowflake.databases'), '0', 'calls that failed on the standby have taken no slot for databases');
$standby->clock->step(-10);
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
$ledger->new_server_run;
$ledger->record('lived through', split /\n/, $session->query_safe('SELECT snowflake.next_id(g % 40) FROM generate_series(1, 100) g'));
mint($standby);
$ledger->check(15_000, 'ids are unique over a promotion with the clock 10 s back, in new sessions and in one from before');
$reading->query('SELECT snowflake.next_id(5)');
like($reading->{stderr}, qr/read-only transaction|during recovery/, 'a transaction that began before the promotion stays read-only');
$reading->{stderr} = '';
$reading->query_safe('ROLLBACK');
$ledger->record('reader', split /\n/, $reading->query_safe('SELECT snowflake.next_id(5)'));
$_->quit foreach $session, $reading;

# A cascading standby, whose clock is even further behind, is promoted after the first standby.
mint($standby);
$standby->wait_for_catchup($cascade, 'replay');
$standby->stop('immediate');
$cascade->clock->set($standby->clock->offset - 10);
$cascade->promote;
$ledger->new_server_run;
mint($cascade);
$ledger->check(26_000, 'ids are unique over a second failover');

# Promotes a standby whose base backup was taken while the primary minted ids.
mint($cascade);
my $writer = $cascade->start_writer("SELECT snowflake.next_id(g % 5) FROM generate_series(1, 20) g; SELECT pg_sleep(0.005);\n" x 300);
my $third = add_standby('third', $cascade);
my $end = $cascade->finish_writer($writer);
is($end->{errors}, '', 'a base backup causes no error in a session that mints');
$ledger->record($writer->{name}, @{ $end->{ids} });
$cascade->wait_for_catchup($third, 'replay');
$cascade->stop;
$third->clock->step(-10);
$third->promote;
$ledger->new_server_run;
mint($third);
$ledger->check(38_000, 'ids are unique over a third failover');
is($third->safe_psql('postgres', 'SELECT count(*) = count(DISTINCT id) FROM photos'), 't', 'the committed ids of all primaries are unique after three failovers');

foreach my $node ($standby, $cascade, $third)
{
	unlike($node->log_content, qr/inconsistent page|PANIC|TRAP/, $node->name . ' replayed the mark without an inconsistent page');
}

done_testing();
