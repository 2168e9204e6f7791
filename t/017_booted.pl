# Tests a server that starts under a clock that is behind or not yet set. A step to a time that is known to be past is
# believed, any other is not. With the setting, minting waits for a synchronized clock.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	restart_after_crash = on
	snowflake.reserve = 200ms
	snowflake.max_wait = 0
	CONF
my $clock = $node->clock;
$clock->synchronize(1);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$node->create_database('idle');
$node->create_database('fresh');
$node->create_database('late');
my $ledger = Snowflake::Ledger->new;
my $year = 365 * 86400;

my $jumped = { sqlstate => '55000', message => 'the clock jumped ahead by ', hint => 'SELECT snowflake\.accept_clock\(\)' };
my $behind = { sqlstate => '55000', message => 'the clock is behind the high-water mark of this database' };
my $believed = qr/LOG:  the clock was wrong when the server started, and is accepted now\n.*DETAIL:  It was behind a high-water mark and has reached it: it moved by \d+ ms against the time since boot, and shows /;

sub said { my ($pattern) = @_; my $log = $node->log_content; return scalar(() = $log =~ /$pattern/g); }

sub in_time
{
	my ($name, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	# Sets the mark that a restart must wait for.
	my @ids = $node->mint($ledger, "SET snowflake.max_wait = '60s'; SELECT snowflake.next_id(g) FROM generate_series(0, 9) g", $database);
	is($node->safe_psql('postgres', "SELECT count(*) FROM unnest(ARRAY[" . join(',', @ids)
			. "]) AS id WHERE abs(extract(epoch FROM clock_timestamp() - snowflake.time_of(id))) > 30"), '0', $name);
	return;
}

sub boot
{
	my ($offset) = @_;
	$node->stop;
	$clock->set($offset);
	$ledger->new_server_run;
	$node->start;
	return;
}

sub crash_restart
{
	my $victim = $node->start_writer('SELECT pg_sleep(600)');
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'PgSleep'");
	$node->kill_backend($node->ids("SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'"));
	$node->finish_writer($victim);
	$ledger->new_server_run;
	return;
}

in_time('before all: ids are of the right time');
is(said('HINT:  If the database minted ids'), 0, 'a short time past the mark has no hint');
in_time('also in the other database', 'idle');

# An empty battery, and NTP a minute later.
boot(-10 * $year);
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'the clock is before the epoch' }, 'before the epoch: refused');
$clock->set(0);
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health()'), 't|', 'the clock is right: health says that it mints');
in_time('and it mints, without accept_clock()');
is(said($believed), 1, 'the log says that the clock is believed');
is(said('LOG:  the clock jumped ahead'), 0, 'and not that it jumped');
in_time('so does another database', 'idle');
is($node->safe_psql('postgres', 'SELECT abs(drift_ms) < 10000 FROM snowflake.health'), 't', 'the base was taken anew');
$node->safe_psql('fresh', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');

# The guard continues from there: a step is believed once, and not again in this run of the postmaster.
$clock->step(+7200);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump thereafter is refused');
crash_restart();
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'also after a crash');
$clock->step(-7200);
in_time('until it is taken back');

# Corrected by a day before the first call; and CREATE EXTENSION.
boot(-86400);
$clock->set(0);
$node->safe_psql('postgres', 'SELECT minting FROM snowflake.health()');
$node->safe_psql('fresh', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
in_time('a clock that was repaired before the first call is believed');

# The mark that was read is remembered over a crash.
boot(-2 * 3600);
$node->refuses('SELECT snowflake.next_id(1)', $behind, 'two hours behind: refused');
crash_restart();
$clock->set(0);
in_time('repaired: believed, over a crash as well');

# A step that does not reach the mark is a jump.
boot(-10 * $year);
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'the clock is before the epoch' }, 'before the epoch: refused');
$clock->set(-7200);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a step to before the mark has jumped');
is($node->safe_psql('postgres', 'SELECT reason FROM snowflake.health()'), 'clock jumped ahead', 'health names the jump');
$clock->set(0);
in_time('at the mark it is believed');

# The clock was right at start, and the mark is wrong, written under a clock that was far ahead. If another database
# mints under the clock, the clock counts as right.
$node->stop;
$clock->set(20 * $year);
$node->start;
$node->safe_psql('idle', "SET snowflake.max_wait = '60s'; SELECT snowflake.next_id(1)") foreach 1, 2;
my $first = qr/LOG:  snowflake begins to mint in database "idle": the clock is 7\d\d\d\.\d days past the high-water mark\n.*DETAIL:  The mark is 20.*; the clock shows 20.*\.\n.*HINT:  If the database minted ids more recently, correct the clock\./;
is(said($first), 1, 'the log shows once how far the clock is past the mark');
boot(0);
in_time('beside a mark from the future the others mint');
$node->refuses('SELECT snowflake.next_id(1)', $behind, 'the one with the mark does not', 'idle');
my $before = said($believed);
$clock->set(21 * $year);
select undef, undef, undef, 0.5;
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump to beyond the mark of the future is refused there', 'idle');
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'and here');
is(said($believed), $before, 'nothing was believed');
boot(0);
$node->refuses('SELECT snowflake.next_id(1)', $behind, 'seen first', 'idle');
$clock->set(10 * $year);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump that does not reach it is refused to all');
$clock->set(0);
in_time('and nothing came of it');
$node->safe_psql('idle', 'SELECT snowflake.set_mark(clock_timestamp())');

# A right clock, a restart within the reserve, and a jump before the first call: no mark shows that the clock was wrong.
boot(0);
$clock->set(7200);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump before the first call of a life is refused');
$node->refuses('SELECT snowflake.observe(snowflake.make_id(now(), 1, 1))', $jumped, 'for observe() as well');
$clock->set(0);
in_time('until it is taken back');

# A synchronized clock
my %unsynchronized = (
	sqlstate => '55000',
	message => 'the clock is not synchronized, and minting waits for synchronization',
	detail => 'The kernel reports a maximum error of 16000\.500 ms; "snowflake\.max_clock_error" is 100 ms\. "snowflake\.unsynchronized" is (?:wait_at_start|refuse)[.,]',
	hint => 'Check the time synchronization');
my $state = 'SELECT minting, reason, synchronized FROM snowflake.health()';

$clock->synchronize(0);
in_time('a clock that is not synchronized mints by default');
$node->append_conf('postgresql.conf', 'snowflake.unsynchronized = wait_at_start');
boot(0);
is($node->safe_psql('postgres', $state), 'f|clock not synchronized|f', 'wait_at_start: health says what is waited for');
$node->refuses("SET snowflake.max_wait = '50ms'; SELECT snowflake.next_id(1)",
	{ %unsynchronized, detail => '"snowflake\.unsynchronized" is wait_at_start, the call waited [\d.]+ m?s\.' }, 'a call is refused when it has waited');
$node->refuses('SELECT snowflake.observe(1)', \%unsynchronized, 'and observe()');
$node->refuses('DROP EXTENSION snowflake; CREATE EXTENSION snowflake', \%unsynchronized, 'and CREATE EXTENSION', 'fresh');
my $writer = $node->start_writer("SET snowflake.max_wait = '600s'; SELECT snowflake.next_id(1)");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event IN ('Extension', 'SnowflakeClock')");
$clock->synchronize(1);
my $finished = $node->finish_writer($writer);
ok($finished->{well}, 'a call that waits for longer gets its id when the clock is synchronized');
$ledger->record('writer', @{ $finished->{ids} });
$clock->synchronize(0);
like($node->error_of('SELECT snowflake.next_id(1)'), qr/^no error/, 'from then on it refuses nothing');
in_time('and mints on, synchronized or not');
crash_restart();
in_time('also after a crash');
is($node->safe_psql('postgres', $state), 't||f', 'and health says so');

$node->reconfigure('snowflake.unsynchronized' => 'refuse');
my $said = '';
$node->poll_query_until('postgres', q{SELECT NOT minting FROM snowflake.health()});
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$said = $node->error_of('SELECT snowflake.next_id(1)');
	last if $said =~ /ERROR/;
	select undef, undef, undef, 0.1;
}
like($said, Snowflake::Node::error_pattern(\%unsynchronized), 'refuse: from the next extension of the mark on');
$clock->synchronize(1);
in_time('until it is synchronized');
$clock->synchronize(0);
select undef, undef, undef, 0.5;
$node->refuses("SET snowflake.max_wait = '600s'; SELECT snowflake.next_id(1)", \%unsynchronized, 'at once, where it is not again');
is($node->safe_psql('postgres', "SELECT refusals > 0 FROM snowflake.refusals WHERE cause = 'unsynchronized'"), 't', 'refusals are counted');
# Before a database's first id it has no slot to count in.
$node->refuses('SELECT snowflake.next_id(1)', \%unsynchronized, 'a new database', 'late');
my $counted = q{SELECT refusals, last_at IS NOT NULL, since IS NOT NULL FROM snowflake.refusals WHERE cause = 'unsynchronized'};
is($node->safe_psql('late', $counted), '1|t|t', 'it counts as well');
is($node->safe_psql('late', "SELECT snowflake.reset_stats(); $counted"), "\n0|f|t", 'and begins anew');
$node->refuses('SELECT snowflake.next_id(1)', \%unsynchronized, 'it goes on', 'late') for 1 .. 2;
$node->reconfigure('snowflake.clock_error' => "'5ms'");
in_time('what the administrator says of the error counts as well');
is($node->safe_psql('late', "SELECT 1 FROM snowflake.next_id(1); $counted; SELECT refusals FROM snowflake.database_stats; SELECT last_refusal_cause FROM snowflake.health()"),
	"1\n2|t|f\n2\nunsynchronized", 'what was refused before the first id is remembered after it');
$ledger->check(100, 'booted under whatever clock');

done_testing();
