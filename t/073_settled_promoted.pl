# Tests settled_before() on a promoted standby with prepared transactions that have minted ids. The result of
# settled_before() stays below the ids of a prepared transaction until the transaction ends.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $primary = Snowflake::Node->create_running('primary', allows_streaming => 1, conf => "max_prepared_transactions = 5\n");
$primary->safe_psql('postgres', 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), what text)');

# Inserts a row, prepares the transaction, and returns the id of the row.
sub prepare
{
	my ($name) = @_;
	my $session = $primary->session;
	my $id = $session->query_safe("BEGIN; INSERT INTO t (what) VALUES ('$name') RETURNING id");
	$session->query_safe("PREPARE TRANSACTION '$name'");
	$session->quit;
	return $id;
}

# The prepared transaction "old" is in the base backup. The prepared transactions "over" and "young" reach the standby
# by WAL. The prepared transaction "over" ends before the promotion.
my $old = prepare('old');
$primary->backup('with a prepared transaction');
my $standby = Snowflake::Node->create_from_backup('standby', $primary, 'with a prepared transaction', has_streaming => 1);
$standby->start;
prepare('over');
my $young = prepare('young');
$primary->safe_psql('postgres', "COMMIT PREPARED 'over'");
my $session = $primary->session;
my $lost = $session->query_safe('BEGIN; INSERT INTO t DEFAULT VALUES RETURNING id');
my $last = $primary->safe_psql('postgres', 'INSERT INTO t DEFAULT VALUES RETURNING id');
$primary->wait_for_catchup($standby, 'replay');
my $before = $primary->safe_psql('postgres', 'SELECT snowflake.settled_before()');
cmp_ok($before, '<=', $old, 'the result on the primary does not exceed the id of the oldest prepared transaction');
my $reader = $standby->session;
is($reader->query_safe('SELECT snowflake.settled_before() IS NULL'), 't', 'settled_before() returns NULL on the standby');
$primary->stop('immediate');
eval { $session->quit };

$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or BAIL_OUT('no promotion');
sub sql { return $standby->safe_psql('postgres', $_[0]); }
sub settled { return sql('SELECT snowflake.settled_before()'); }
sub held { return sql('SELECT held_back_by, gid FROM snowflake.settled'); }
sub later_are_settled_but_for_it
{
	my $later = sql('INSERT INTO t DEFAULT VALUES RETURNING id');
	$standby->poll_query_until('postgres', "SELECT clock_timestamp() > snowflake.time_of($later) + interval '2 ms'") or BAIL_OUT('the clock stands still');
	return;
}
my $PREPARED = 'a prepared transaction has minted ids';

cmp_ok(settled(), '<=', $old, 'after the promotion the result does not exceed the id of the oldest prepared transaction');
cmp_ok(settled(), '>=', $before, 'after the promotion the result is not less than on the primary');
cmp_ok($reader->query_safe('SELECT snowflake.settled_before()'), '<=', $old, 'in a session from before the promotion the result does not exceed the id of the oldest prepared transaction');
is(held(), "$PREPARED|old", 'the view settled names the oldest prepared transaction');
later_are_settled_but_for_it();
cmp_ok(settled(), '<=', $old, 'while the promoted server mints, the result does not exceed the id of the oldest prepared transaction');
is(sql("SELECT count(*) FROM t WHERE id IN ($old, $young)"), '0', 'the rows of the prepared transactions are not visible');

sql("COMMIT PREPARED 'old'");
is(sql("SELECT what FROM t WHERE id = $old"), 'old', 'after COMMIT PREPARED the row of the oldest transaction is visible');
later_are_settled_but_for_it();
my $settled = settled();
cmp_ok($settled, '>', $old, 'after COMMIT PREPARED the result is above the id of the oldest transaction');
cmp_ok($settled, '<=', $young, 'the result does not exceed the id of the next prepared transaction');
is(held(), "$PREPARED|young", 'the view settled names the next prepared transaction');
sql("ROLLBACK PREPARED 'young'");
ok($standby->poll_query_until('postgres', "SELECT snowflake.settled_before() > $last"), 'after ROLLBACK PREPARED of the next transaction all committed ids are settled');
is(held(), '|', 'neither the transaction that ended before the promotion nor the lost one holds the result back');
cmp_ok($lost, '<', settled(), 'the id of the transaction that was lost with the primary is settled');
$reader->quit;

done_testing();
