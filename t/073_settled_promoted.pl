# Tests settled_before() on a standby that is promoted while prepared transactions have minted: it stays below each of
# them until it is committed or rolled back there.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $primary = Snowflake::Node->create_running('primary', allows_streaming => 1, conf => "max_prepared_transactions = 5\n");
$primary->safe_psql('postgres', 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), what text)');

# The id of a row that a prepared transaction has inserted.
sub prepare
{
	my ($name) = @_;
	my $session = $primary->session;
	my $id = $session->query_safe("BEGIN; INSERT INTO t (what) VALUES ('$name') RETURNING id");
	$session->query_safe("PREPARE TRANSACTION '$name'");
	$session->quit;
	return $id;
}

# One that the base backup contains, in a file; two that arrive by WAL, of which one ends before the promotion; and one
# that is only open.
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
cmp_ok($before, '<=', $old, 'the primary is behind the first');
my $reader = $standby->session;
is($reader->query_safe('SELECT snowflake.settled_before() IS NULL'), 't', 'the standby does not know');
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
my $PREPARED = 'a transaction that minted is prepared';

cmp_ok(settled(), '<=', $old, 'promoted, before its first id: behind the first as well');
cmp_ok(settled(), '>=', $before, 'not behind what the primary had said');
cmp_ok($reader->query_safe('SELECT snowflake.settled_before()'), '<=', $old, 'in a session that lived through it too');
is(held(), "$PREPARED|old", 'the view names it');
later_are_settled_but_for_it();
cmp_ok(settled(), '<=', $old, 'nor does it step past it while it mints');
is(sql("SELECT count(*) FROM t WHERE id IN ($old, $young)"), '0', 'whose rows are not visible');

sql("COMMIT PREPARED 'old'");
is(sql("SELECT what FROM t WHERE id = $old"), 'old', 'committed there, its row appears');
later_are_settled_but_for_it();
my $settled = settled();
cmp_ok($settled, '>', $old, 'and it is stepped past');
cmp_ok($settled, '<=', $young, 'as far as the next');
is(held(), "$PREPARED|young", 'which the view names');
sql("ROLLBACK PREPARED 'young'");
ok($standby->poll_query_until('postgres', "SELECT snowflake.settled_before() > $last"), 'that is rolled back: nothing is held back');
is(held(), '|', 'neither by what had ended before, nor by what was lost with the primary');
cmp_ok($lost, '<', settled(), 'whose ids are settled, without a row');
$reader->quit;

done_testing();
