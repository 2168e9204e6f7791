# Tests a server that starts before its clock is set. If the clock is later set to a time shortly after the high-water
# mark, accept_clock() is not needed. If the clock is set to a time before the high-water mark, or long after the
# high-water mark, calls that mint ids fail. Tests "snowflake.unsynchronized", with which minting waits for a
# synchronized clock.

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
$node->set_preload(1);    # a preloaded library reads the clock when the server starts
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
my $behind = { sqlstate => '55000', message => 'the clock is behind the high-water mark \(sequence snowflake.high_water\)' };
my $believed = qr/LOG:  the clock was wrong when the server started, and is now accepted\n.*DETAIL:  When the server started, the clock was behind a high-water mark\. The clock has now reached this mark\. Since the server started, the clock was stepped by \d+ ms in all\. The clock shows /;

sub said { my ($pattern) = @_; my $log = $node->log_content; return scalar(() = $log =~ /$pattern/g); }

sub in_time
{
	my ($name, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	# Mints ids to raise the high-water mark. After a restart the clock must reach the high-water mark before the server
	# mints an id.
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

in_time('at first ids have the right time');
is(said('HINT:  If this database minted ids'), 0, 'the log has no hint if the clock is only a short time past the mark');
in_time('at first ids of another database have the right time', 'idle');

# When the server starts, its clock is ten years behind, as on a machine with an empty battery. Later the clock is
# corrected.
boot(-10 * $year);
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'the clock is before the epoch of the ids' }, 'before the epoch: refused');
$clock->set(0);
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health()'), 't|', 'health() shows that the database mints when the clock was set right');
in_time('when the clock was set right, ids have the right time without accept_clock()');
is(said($believed), 1, 'the log shows that the corrected clock is accepted');
is(said('LOG:  the clock jumped ahead'), 0, 'the log does not report the correction as a jump');
in_time('when the clock was set right, ids of another database have the right time', 'idle');
is($node->safe_psql('postgres', 'SELECT abs(drift_ms) < 10000 FROM snowflake.health'), 't', 'the correction has reset the base of the drift');
$node->safe_psql('fresh', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');

# After a correction of the clock, a second jump of the clock is refused.
$clock->step(+7200);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'after an accepted correction a jump is refused');
crash_restart();
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'the jump is still refused after a crash restart');
$clock->step(-7200);
in_time('until it is taken back');

# The clock is a day behind when the server starts, and is corrected before the first call of next_id().
boot(-86400);
$clock->set(0);
$node->safe_psql('postgres', 'SELECT minting FROM snowflake.health()');
$node->safe_psql('fresh', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
in_time('if the clock was corrected before the first call, ids have the right time');

boot(-2 * 3600);
$node->refuses('SELECT snowflake.next_id(1)', $behind, 'next_id() fails while the clock is two hours behind');
crash_restart();
$clock->set(0);
in_time('if a crash restart precedes the correction of the clock, ids have the right time');

# The server refuses a clock step to a time before the high-water mark.
boot(-10 * $year);
$node->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'the clock is before the epoch of the ids' }, 'before the epoch: refused');
$clock->set(-7200);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a step to a time before the mark is refused as a jump');
is($node->safe_psql('postgres', 'SELECT reason FROM snowflake.health()'), 'clock jumped ahead', 'health() shows that the clock jumped ahead');
$clock->set(0);
in_time('when the clock reaches the mark, ids have the right time');

# The high-water mark of one database is far in the future, while another database mints ids with the present time.
$node->stop;
$clock->set(20 * $year);
$node->start;
$node->safe_psql('idle', "SET snowflake.max_wait = '60s'; SELECT snowflake.next_id(1)") foreach 1, 2;
my $first = qr/LOG:  the first ids since the server start in database "idle" are 7\d\d\d\.\d days after the high-water mark\n.*DETAIL:  The high-water mark is 20.*\. The clock shows 20.*\.\n.*HINT:  If this database minted ids in the last 7\d\d\d\.\d days, correct the clock\./;
is(said($first), 1, 'the log shows once how far the clock is past the mark');
boot(0);
in_time('databases mint although another one has a mark in the future');
$node->refuses('SELECT snowflake.next_id(1)', $behind, 'the database with the mark in the future does not mint', 'idle');
my $before = said($believed);
$clock->set(21 * $year);
select undef, undef, undef, 0.5;
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump past the mark in the future is refused in its database', 'idle');
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump past the mark in the future is refused in other databases');
is(said($believed), $before, 'the log shows no accepted clock');
boot(0);
$node->refuses('SELECT snowflake.next_id(1)', $behind, 'after a restart the database with the mark in the future refuses first', 'idle');
$clock->set(10 * $year);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump to a time before the mark in the future is refused');
$clock->set(0);
in_time('when the jump is corrected, ids have the right time');
$node->safe_psql('idle', 'SELECT snowflake.set_mark(clock_timestamp())');

# The clock is right when the server starts, and jumps before the first call.
boot(0);
$clock->set(7200);
$node->refuses('SELECT snowflake.next_id(1)', $jumped, 'a jump before the first call of a server run is refused');
$node->refuses('SELECT snowflake.observe(snowflake.make_id(now(), 1, 1))', $jumped, 'observe() also fails after a jump before the first call');
$clock->set(0);
in_time('until it is taken back');

my %unsynchronized = (
	sqlstate => '55000',
	message => 'no ids are minted because the clock is not synchronized',
	detail => 'The kernel reports a maximum clock error of 16000\.500 ms\. "snowflake\.max_clock_error" is 100 ms\. "snowflake\.unsynchronized" is (?:wait_at_start|refuse)\.',
	hint => 'Check the time synchronization');
my $state = 'SELECT minting, reason, synchronized FROM snowflake.health()';

$clock->synchronize(0);
in_time('by default the database mints with a clock that is not synchronized');
$node->append_conf('postgresql.conf', 'snowflake.unsynchronized = wait_at_start');
boot(0);
is($node->safe_psql('postgres', $state), 'f|clock not synchronized|f', 'wait_at_start: health() shows that minting waits for synchronization');
$node->refuses("SET snowflake.max_wait = '50ms'; SELECT snowflake.next_id(1)",
	{ %unsynchronized, detail => '"snowflake\.unsynchronized" is wait_at_start\. The call waited [\d.]+ m?s\.' }, 'wait_at_start: next_id() fails after it has waited for max_wait');
$node->refuses('SELECT snowflake.observe(1)', \%unsynchronized, 'wait_at_start: observe() fails');
$node->refuses('DROP EXTENSION snowflake; CREATE EXTENSION snowflake', \%unsynchronized, 'wait_at_start: CREATE EXTENSION fails', 'fresh');
my $writer = $node->start_writer("SET snowflake.max_wait = '600s'; SELECT snowflake.next_id(1)");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event IN ('Extension', 'SnowflakeClock')");
$clock->synchronize(1);
my $finished = $node->finish_writer($writer);
ok($finished->{well}, 'wait_at_start: a waiting call gets its id when the clock is synchronized');
$ledger->record('writer', @{ $finished->{ids} });
$clock->synchronize(0);
like($node->error_of('SELECT snowflake.next_id(1)'), qr/^no error/, 'wait_at_start: once the clock was synchronized, its loss does not stop minting');
in_time('wait_at_start: after synchronization was lost, ids have the right time');
crash_restart();
in_time('wait_at_start: after a crash restart, ids have the right time');
is($node->safe_psql('postgres', $state), 't||f', 'wait_at_start: health() shows that the database mints');

$node->reconfigure('snowflake.unsynchronized' => 'refuse');
my $said = '';
$node->poll_query_until('postgres', q{SELECT NOT minting FROM snowflake.health()});
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$said = $node->error_of('SELECT snowflake.next_id(1)');
	last if $said =~ /ERROR/;
	select undef, undef, undef, 0.1;
}
like($said, Snowflake::Node::error_pattern(\%unsynchronized), 'unsynchronized = refuse: calls fail from the next extension of the mark on');
$clock->synchronize(1);
in_time('unsynchronized = refuse: when the clock is synchronized, ids have the right time');
$clock->synchronize(0);
select undef, undef, undef, 0.5;
$node->refuses("SET snowflake.max_wait = '600s'; SELECT snowflake.next_id(1)", \%unsynchronized, 'unsynchronized = refuse: next_id() fails again when synchronization is lost');
is($node->safe_psql('postgres', "SELECT refusals > 0 FROM snowflake.refusals WHERE cause = 'unsynchronized'"), 't', 'unsynchronized = refuse: the refused calls are counted');
# Calls that were refused because of the clock are counted even in a database that has never minted an id.
$node->refuses('SELECT snowflake.next_id(1)', \%unsynchronized, 'unsynchronized = refuse: next_id() fails in a new database', 'late');
my $counted = q{SELECT refusals, last_at IS NOT NULL, since IS NOT NULL FROM snowflake.refusals WHERE cause = 'unsynchronized'};
is($node->safe_psql('late', $counted), '1|t|t', 'refusals of a database without a slot are counted');
is($node->safe_psql('late', "SELECT snowflake.reset_stats(); $counted"), "\n0|f|t", 'reset_stats() resets the count of a database without a slot');
$node->refuses('SELECT snowflake.next_id(1)', \%unsynchronized, 'next_id() fails again after reset_stats()', 'late') for 1 .. 2;
$node->reconfigure('snowflake.clock_error' => "'5ms'");
in_time('with clock_error set, the clock counts as synchronized');
is($node->safe_psql('late', "SELECT 1 FROM snowflake.next_id(1); $counted; SELECT refusals FROM snowflake.database_stats; SELECT last_refusal_cause FROM snowflake.health()"),
	"1\n2|t|f\n2\nunsynchronized", 'refusals from before the first id are still counted after it');
$ledger->check(100, 'ids are unique over all starts and clocks');

done_testing();
