# Tests a streaming standby: what it may do, and its promotion with a clock that is behind.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

# wal_consistency_checking: a standby stops if its replay of the mark gives another page than the primary's.
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

# Reading on a standby.
my $session = $standby->session;
my ($id) = $standby->ids('SELECT max(id) FROM photos');
my %recovering = (
	sqlstate => '25006',
	message => 'cannot execute \S+\(\) during recovery',
	detail => 'This server is a standby',
	hint => 'Connect to the primary server');
$standby->refuses($_, \%recovering, "a standby refuses $_")
  foreach 'SELECT snowflake.next_id(5)', 'SELECT snowflake.next_ids(5, 10)', "SELECT snowflake.observe($id)";
is($standby->safe_psql('postgres', "SELECT shard FROM snowflake.decode($id)"), '5', 'a standby decodes');
is($standby->safe_psql('postgres', "SELECT count(*) FROM photos WHERE snowflake.created_within(id, now() - interval '1 hour', now() + interval '1 hour')"),
	'200', 'a standby finds rows by time');
is($session->query_safe('SELECT bits FROM snowflake.layout'), '41/5+8/10', 'the view layout works on a standby');
is($session->query_safe('SELECT count(*) FROM snowflake.shard_stats'), '0', 'the view shard_stats works on a standby');
is($session->query_safe('SELECT clock IS NOT NULL AND covered_until IS NULL AND NOT minting AND reason = \'standby\' FROM snowflake.health'),
	't', 'health shows a clock and says that this is a standby');
my $reading = $standby->session;
$reading->query_safe('BEGIN; SELECT 1');

# The primary continues after the standby has read the mark. The mark at the promotion counts.
$_->clock->step(+2) foreach $primary, $standby;
mint($primary);
my @last = $primary->ids('SELECT snowflake.next_id(g % 40) FROM generate_series(1, 400) g');
$ledger->record('last', @last);
$primary->safe_psql('postgres', 'INSERT INTO photos (id, n) VALUES (' . $last[-1] . ', 0)');
$primary->wait_for_catchup($standby, 'replay');
$primary->stop('immediate');

# Promotion, ten seconds back.
is($standby->safe_psql('postgres', 'SELECT count(*) FROM snowflake.databases'), '0', 'what a standby refuses takes no slot');
$standby->clock->step(-10);
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
$ledger->new_server_run;
$ledger->record('lived through', split /\n/, $session->query_safe('SELECT snowflake.next_id(g % 40) FROM generate_series(1, 100) g'));
mint($standby);
$ledger->check(15_000, 'promotion with the clock 10 s back, in a session that lived through it and in new ones');
$reading->query('SELECT snowflake.next_id(5)');
like($reading->{stderr}, qr/read-only transaction|during recovery/, 'a transaction begun on the standby stays read-only');
$reading->{stderr} = '';
$reading->query_safe('ROLLBACK');
$ledger->record('reader', split /\n/, $reading->query_safe('SELECT snowflake.next_id(5)'));
$_->quit foreach $session, $reading;

# A second failover, to the standby's standby, with a clock that is further behind.
mint($standby);
$standby->wait_for_catchup($cascade, 'replay');
$standby->stop('immediate');
$cascade->clock->set($standby->clock->offset - 10);
$cascade->promote;
$ledger->new_server_run;
mint($cascade);
$ledger->check(26_000, 'a second failover');

# A new standby of the new primary, taken while it mints, and promoted while the primary runs.
mint($cascade);
my $writer = $cascade->start_writer("SELECT snowflake.next_id(g % 5) FROM generate_series(1, 20) g; SELECT pg_sleep(0.005);\n" x 300);
my $third = add_standby('third', $cascade);
my $end = $cascade->finish_writer($writer);
is($end->{errors}, '', 'a base backup does not disturb who mints');
$ledger->record($writer->{name}, @{ $end->{ids} });
$cascade->wait_for_catchup($third, 'replay');
$cascade->stop;
$third->clock->step(-10);
$third->promote;
$ledger->new_server_run;
mint($third);
$ledger->check(38_000, 'a third failover');
is($third->safe_psql('postgres', 'SELECT count(*) = count(DISTINCT id) FROM photos'), 't', 'the committed rows of all primaries are there after three failovers');

foreach my $node ($standby, $cascade, $third)
{
	unlike($node->log_content, qr/inconsistent page|PANIC|TRAP/, $node->name . ' replayed the mark faithfully');
}

done_testing();
