# Tests calls that mint ids after other commands have raised, lowered, locked or replaced the high-water mark.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', conf => 'snowflake.max_lead = 60s');
$node->safe_psql('postgres', 'CREATE ROLE visitor');

my $ledger = Snowflake::Ledger->new;

# The session $old reads the high-water mark before all changes, so that its cached value is outdated.
my $old = $node->session;

sub both_mint
{
	my $sql = 'SELECT snowflake.next_id(g) FROM generate_series(0, 3) g';
	$node->mint($ledger, $sql);
	$ledger->record('old', split /\n/, $old->query_safe($sql));
	return;
}

# Checks that the high-water mark is above all ids that the test has minted.
sub covered
{
	my ($name) = @_;
	my $highest = $ledger->highest(0);
	is($node->safe_psql('postgres',
			"SELECT extract(epoch FROM snowflake.time_of($highest)) * 1000 < last_value FROM snowflake.high_water"),
		't', $name);
	return;
}

# A new session reads a raised high-water mark at once. An open session can continue to mint reserved ids before it
# reads a raised high-water mark.
both_mint();
my $raised = $node->mark + 20_000;
$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $raised)");
my $is_raised = "snowflake.time_of(snowflake.next_id(0)) >= to_timestamp($raised / 1000.0)";
is($node->safe_psql('postgres', "SELECT $is_raised"), 't', 'a new session mints above a raised mark');
is($old->query_safe("SELECT $is_raised"), 't', 'an old session mints above a raised mark after a new session did');
$raised = $node->mark + 20_000;
$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $raised)");
$node->clock->step(+25);
is($old->query_safe("SELECT $is_raised"), 't', 'an old session mints above a raised mark although no new session did');
both_mint();
cmp_ok($node->mark, '>=', $raised, 'later calls do not lower a raised mark');
covered('a raised mark covers all ids');

foreach my $lowered (12345, $node->mark - 86_400_000)
{
	$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $lowered)");
	$node->safe_psql('postgres', 'SELECT snowflake.next_id(1)');
	covered("a mark lowered to $lowered is repaired by the first call of a session");
	$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $lowered)");
	$node->clock->step(+60);
	$ledger->record('old', split /\n/, $old->query_safe('SELECT snowflake.next_id(0)'));
	covered("a mark lowered to $lowered is repaired by the next extension of an old session");
}
both_mint();

like($old->query('BEGIN; ALTER SEQUENCE snowflake.high_water RESTART; SELECT snowflake.next_id(0)') . $old->{stderr},
	qr/sequence snowflake.high_water has been altered in this transaction/, 'a transaction that restarted the mark cannot mint');
$old->{stderr} = '';
$old->query_safe('ROLLBACK');
both_mint();
covered('the mark covers all ids after a restart of the sequence that was rolled back');
$node->refuses(
	'BEGIN; ALTER SEQUENCE snowflake.high_water RESTART; SELECT snowflake.next_id(0)',
	{
		sqlstate => '55000',
		message => 'sequence snowflake.high_water has been altered in this transaction',
		detail => 'ids that it minted could be minted again',
		hint => 'Commit the transaction first'
	},
	'the error has SQLSTATE, detail and hint if the transaction restarted the mark');
$node->safe_psql('postgres', 'BEGIN; ALTER SEQUENCE snowflake.high_water RESTART; COMMIT');
both_mint();
covered('the mark covers all ids after a restart of the sequence that was committed');

# While another transaction locks the high-water mark, a call that must raise the high-water mark waits. A call that
# waits for the locked high-water mark can be cancelled.
foreach my $statement ('ALTER SEQUENCE snowflake.high_water RESTART', 'DROP EXTENSION snowflake')
{
	my $holder = $node->session;
	$holder->query_safe("BEGIN; $statement");
	$node->clock->step(+60);
	$old->query("SET statement_timeout = '300ms'; SELECT snowflake.next_id(0)");
	like($old->{stderr}, qr/canceling statement due to statement timeout/,
		"$statement in an open transaction: a call that waits for the mark can be cancelled");
	$old->{stderr} = '';
	$old->query_safe('RESET statement_timeout');
	my $waiter = $node->start_writer('SELECT snowflake.next_id(0)');
	$node->poll_query_until('postgres',
		"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE application_name = 'writer'")
	  or BAIL_OUT('nobody waits');
	$holder->query_safe('ROLLBACK');
	$holder->quit;
	my $end = $node->finish_writer($waiter);
	is(scalar(@{ $end->{ids} }), 1, "$statement in an open transaction: a waiting call gets its id when the transaction ends");
	$ledger->record($waiter->{name}, @{ $end->{ids} });
	both_mint();
}

foreach my $sql (
	"SELECT setval('snowflake.high_water', 1)", "SELECT nextval('snowflake.high_water')",
	'ALTER SEQUENCE snowflake.high_water RESTART')
{
	$node->refuses("SET ROLE visitor; $sql", { sqlstate => '42501', message => '(?:permission denied|must be owner)' },
		"an ordinary role may not run: $sql");
}

# A crash resets an unlogged sequence, so calls fail if the sequence of the high-water mark is unlogged.
$node->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET UNLOGGED');
$node->refuses(
	'SELECT snowflake.next_id(0)',
	{
		sqlstate => '55000',
		message => 'the high-water mark \(sequence snowflake.high_water\) would not survive a crash',
		detail => 'Sequence snowflake.high_water is not a permanent relation',
		hint => 'ALTER SEQUENCE snowflake.high_water SET LOGGED'
	},
	'a new session refuses an unlogged mark');
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'),
	'f|sequence snowflake.high_water is not a permanent relation', 'an unlogged mark: health shows that it prevents minting');
$old->query('SELECT snowflake.next_id(0)');
like($old->{stderr}, qr/would not survive a crash/, 'an old session refuses an unlogged mark');
$old->{stderr} = '';
$node->safe_psql('postgres', 'ALTER SEQUENCE snowflake.high_water SET LOGGED');
both_mint();
covered('a mark that is logged again covers all ids');

# Replaces the extension's sequence of the high-water mark by another sequence. PostgreSQL sends no invalidation message
# when the sequence of an extension is replaced. New and old sessions must detect the replaced sequence when they raise
# the high-water mark.
my $burst = 'SELECT count(snowflake.next_ids(9, 1000000)) FROM generate_series(1, 4)';

sub covers
{
	my ($mark, $id, $name) = @_;
	is($node->safe_psql('postgres',
			"SELECT extract(epoch FROM snowflake.time_of($id)) * 1000 < last_value FROM $mark"), 't', $name);
	return;
}

both_mint();
$node->safe_psql('postgres', 'ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water');
$node->refuses($burst, { sqlstate => '55000', message => 'lacks a sequence or table' },
	'a new session does not extend a mark that is not a member');
$old->query($burst);
like($old->{stderr}, qr/lacks a sequence or table/, 'an old session does not extend a mark that is not a member');
$old->{stderr} = '';

$node->safe_psql('postgres', <<~'SQL');
	CREATE SCHEMA elsewhere;
	CREATE SEQUENCE elsewhere.high_water MINVALUE 0;
	ALTER EXTENSION snowflake ADD SEQUENCE elsewhere.high_water;
	SQL
my $heard = $node->safe_psql('postgres', <<~'SQL');
	SELECT snowflake.make_id(clock_timestamp() + interval '5 s', 0, 0) AS id \gset
	SELECT snowflake.observe(:id);
	SELECT :id;
	SQL
$heard =~ s/\s//g;
covers('elsewhere.high_water', $heard, 'observe() raises the new mark, not the former one');
covers('elsewhere.high_water', $node->safe_psql('postgres', "SELECT snowflake.last_id() FROM ($burst) AS b"),
	'a new session raises the new mark, not the former one');
covers('elsewhere.high_water', $old->query_safe("SELECT snowflake.last_id() FROM ($burst) AS b"), 'an old session raises the new mark, not the former one');

$node->safe_psql('postgres', <<~'SQL');
	ALTER EXTENSION snowflake DROP SEQUENCE elsewhere.high_water;
	ALTER EXTENSION snowflake ADD SEQUENCE snowflake.high_water;
	SQL
covers('snowflake.high_water', $old->query_safe("SELECT snowflake.last_id() FROM ($burst) AS b"),
	'if the former sequence is the mark again, an old session raises it');
$node->safe_psql('postgres', 'DROP SCHEMA elsewhere CASCADE');
both_mint();
covered('the former mark, which was too low, covers all ids again');

my $seen = $node->safe_psql('postgres', "SELECT snowflake.make_id(clock_timestamp() + interval '50 s', 0, 1023)");
$node->refuses("SET ROLE visitor; SELECT snowflake.observe($seen)",
	{ sqlstate => '42501', message => 'permission denied for function observe' }, 'an ordinary role may not call observe()');
$node->safe_psql('postgres', "SELECT snowflake.observe($seen)");
$old->quit;
$node->crash($ledger, -2);
$old = $node->session;
is($node->safe_psql('postgres',
		"SELECT bool_and(snowflake.next_id(g) > $seen) FROM (VALUES (0), (1), (255)) v(g)"),
	't', 'after an immediate stop every shard is above an observed id');
both_mint();

$node->safe_psql('postgres', <<~'SQL');
	BEGIN;
	ALTER EXTENSION snowflake DROP SEQUENCE snowflake.high_water;
	DROP SEQUENCE snowflake.high_water;
	CREATE SEQUENCE snowflake.high_water MINVALUE 0 START 0;
	ALTER EXTENSION snowflake ADD SEQUENCE snowflake.high_water;
	COMMIT;
	SQL
$old->quit;
$node->crash($ledger);
$node->refuses(
	'SELECT snowflake.next_id(0)',
	{
		sqlstate => '55000',
		message => 'the high-water mark \(sequence snowflake.high_water\) of this database is lost',
		detail => 'Sequence snowflake.high_water contains 0 ms since 1970, which is before the epoch \(1735689600000 ms\)',
		hint => 'Run SELECT snowflake.set_mark\(...\) with a time'
	},
	'next_id() fails if the mark is lost');
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'),
	'f|high-water mark (sequence snowflake.high_water) lost', 'a lost mark: health shows that it prevents minting');
$node->safe_psql('postgres', 'SELECT snowflake.set_mark(snowflake.time_of(' . $ledger->highest(0) . ") + interval '1 ms')");
$old = $node->session;
both_mint();
$old->quit;

# Tests high-water marks with times that are too late to be stored in an id. The lower 54 bits of the first value are a
# valid time, so the test detects a library that drops the upper bits.
foreach my $absurd ('(1::bigint << 54) + 1735689600050', '9223372036854775807')
{
	my $good = $node->mark;
	$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $absurd)");
	$node->refuses("SET statement_timeout = '60s'; SELECT snowflake.next_id(0), pg_sleep(1.5), snowflake.next_id(0)",
		{ sqlstate => '55000', message => 'the clock is behind the high-water mark \(sequence snowflake.high_water\)', hint => 'run SELECT snowflake.set_mark\(...\) with a time after every id' },
		"next_id() fails with a mark of $absurd");
	is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'),
		'f|high-water mark (sequence snowflake.high_water) ahead of the clock', "a mark of $absurd: health shows that it prevents minting");
	$node->safe_psql('postgres', "SELECT setval('snowflake.high_water', $good)");
	$node->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 3) g');
}

my $altering = $node->session;
$altering->query_safe('BEGIN; ALTER SEQUENCE snowflake.high_water SET UNLOGGED; ALTER SEQUENCE snowflake.high_water SET LOGGED');
is($node->safe_psql('postgres', q{SET statement_timeout = '60s'; SELECT minting, reason FROM snowflake.health}),
	'f|another session has locked a sequence of the extension', 'health shows at once that the extension is being altered');
$altering->query_safe('ROLLBACK');
$altering->quit;
$node->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 3) g');
$ledger->check(70, 'ids are unique over all these changes of the mark');

done_testing();
