# The lease server alone. It is made with and without the extension. Many servers ask at once, and wait for a lock. It is
# dumped, restored in several ways and copied. And the views of its operator.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use List::Util qw(uniq);
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
$control->install;
sub sql { my ($sql, $database, $node) = @_; return ($node // $control)->safe_psql($database // 'postgres', $sql); }
# As a function would have written it.
sub rewrite { return sql("BEGIN; UPDATE snowflake_fleet.region SET $_[0]; SELECT snowflake_fleet.sign_rows(); COMMIT"); }
# As a monitoring role reads it.
sub health
{
	my ($columns, $database, $node) = @_;
	return ($node // $control)->safe_psql($database // 'postgres', "SELECT $columns FROM snowflake_fleet.health", extra_params => [ '-U', 'watch' ]);
}
sub lines_of { my ($pattern) = @_; return scalar(() = slurp_file($control->logfile) =~ /$pattern/g); }
sql('CREATE ROLE watch LOGIN; GRANT pg_monitor TO watch');
sql(q{ALTER ROLE watch SET default_transaction_read_only = on; ALTER ROLE watch SET synchronous_commit = off});
is(health('*'), 'f|the fleet does not exist yet|Run snowflake_fleet.add_server() for each server.|', 'no fleet');
# While another session makes the fleet, add_server() waits, and makes no second one with the default lease.
my $maker = $control->background_psql('postgres');
$maker->query_safe(q{BEGIN; SELECT snowflake_fleet.create_fleet(lease => '30 min')});
my $adder = IPC::Run::start([ 'psql', '-XAtq', '-d', $control->connstr('postgres'), '-c', q{SELECT snowflake_fleet.add_server('alpha')} ],
	'<', \undef, '>', \my $added, '2>', \my $refused);
$control->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 'snowflake_fleet.fleet'::regclass}) or die 'it does not wait';
$maker->query_safe('COMMIT');
$maker->quit;
$adder->finish;
is("$added$refused" . sql(q{SELECT longest_ms FROM snowflake_fleet.fleet}), "Server alpha may log in as role alpha, which was made without a password.\n1860000", 'add_server() beside create_fleet()');
sql('SELECT snowflake_fleet.create_fleet()');
sql(q{SELECT snowflake_fleet.add_server('beta')});
is(health('*'), 't|||', 'a fleet that no server has asked yet, whatever the settings of the role that looks');
sql('ALTER ROLE watch RESET synchronous_commit');

# psql -f creates the same objects as the extension, by an ordinary role. The owner cannot lease.
sql('CREATE ROLE operator LOGIN CREATEROLE; CREATE DATABASE plain OWNER operator');
command_ok([ 'psql', '-Xq', '-U', 'operator', '-d', $control->connstr('plain'), '-f', "$FindBin::RealBin/../snowflake_fleet.sql" ],
	'psql -f, as an ordinary role');
my $objects = <<~'SQL';
	SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
	 WHERE refobjid = 'snowflake_fleet'::regnamespace AND classid <> 'pg_type'::regclass ORDER BY 1;
	SELECT p.proname, md5(prosrc), prosecdef, proconfig FROM pg_proc AS p
	 WHERE pronamespace = 'snowflake_fleet'::regnamespace ORDER BY 1, 2
	SQL
is(sql($objects, 'plain'), sql($objects), 'the same objects');
sub as_operator { my ($sql) = @_; return ($control->psql('plain', $sql, extra_params => [ '-U', 'operator', '-v', 'VERBOSITY=verbose' ]))[1, 2]; }
is((as_operator(q{SELECT snowflake_fleet.add_server('gamma') LIKE '%without a password.'}))[0], 't', 'add_server() by that role');
is($control->ask(call => 'acquire', server => 'gamma', incarnation => 5, database => 'plain')->{status}, 'granted', 'and the server is served');
like((as_operator(q{SELECT snowflake_fleet.add_server('operator')}))[1], qr/22023: role operator cannot be a server\n.*It owns the fleet/, 'the owner is no server');
sql('ALTER ROLE operator NOCREATEROLE');
like((as_operator(q{SELECT snowflake_fleet.add_server('delta')}))[1], qr/42501: permission denied to create role delta\n.*HINT: .*CREATE ROLE delta LOGIN/, 'an owner without CREATEROLE is told what to do');
command_fails_like([ 'psql', '-Xq', '-d', $control->connstr('plain'), '-f', "$FindBin::RealBin/../snowflake_fleet.sql" ],
	qr/schema "snowflake_fleet" already exists/, 'a second time it stops');

# The wrong layout: create_fleet() can be repeated until an id may have been minted.
my $wrong = $control->ask(call => 'acquire', server => 'alpha', incarnation => 1, seal => $Snowflake::Control::seal + 4);
like($control->ask(call => 'acquire', server => 'beta', incarnation => 2)->{error}, qr/the server's layout is not the fleet's/, 'the first server settles the layout');
like(($control->psql('postgres', 'SELECT snowflake_fleet.create_fleet()'))[2], qr/the fleet has granted leases/, 'while it has a lease, that stays');
$control->ask(call => 'give_back', server => 'alpha', incarnation => 1, $control->known($wrong), seal => $Snowflake::Control::seal + 4, grant => $wrong->{grant_number});
# Each is another fleet: a dump of the first one, with its shorter lease, must not serve servers of the second.
my @fleets = map { sql("SELECT snowflake_fleet.create_fleet(lease => '$_')"); sql('SELECT id, longest_ms FROM snowflake_fleet.fleet') } '2 hours', '1 hour';
is(scalar(uniq(map { /^(\d+)/ } @fleets)), 2, 'each time another fleet');

# Many requests at once get different regions.
my @clients = map {
	my $server = $_ % 2 ? 'alpha' : 'beta';
	my $sql = join '', map { 'SELECT status, region FROM ' . $control->question(call => 'acquire', server => $server, incarnation => $_) . ";\n" } 100 + 3 * $_ .. 102 + 3 * $_;
	my $client = { in => $sql, out => '', err => '' };
	$client->{run} = IPC::Run::start([ 'psql', '-XAtq', '-U', $server, '-d', $control->connstr('postgres') ],
		'<', \$client->{in}, '>', \$client->{out}, '2>', \$client->{err});
	$client
} 0 .. 7;
$_->{run}->finish foreach @clients;
is(join('', map { $_->{err} } @clients), '', 'eight clients at once');
is(join(',', sort { $a <=> $b } map { $_->{out} =~ /^granted\|(\d+)$/mg } @clients), join(',', 0 .. 7), '24 requests: each region of the two servers once');
my $full = $control->ask(call => 'acquire', server => 'alpha', incarnation => 999);
like($full->{detail}, qr/^Regions of the server: region \d of server alpha until .*\(incarnation \d+, address local\)/, 'who holds what until when');
$control->ask(call => 'acquire', server => 'alpha', incarnation => 999) foreach 1 .. 3;
is(lines_of(qr/LOG:  snowflake_fleet: acquire of server alpha \(incarnation \d+, address local\): full\./), 1, 'refusals are one line a minute');
like(health(q{granting, reason, since > now() - interval '1 min'}), qr/^t\|no region of server (?:alpha|beta) is free\|t$/, 'health names the server');
is(sql(q{SELECT refused FROM snowflake_fleet.servers WHERE server = 'alpha'}), 'full', 'and so does servers');

# Waiting for the lock does not count as a difference of clocks. Grants of that time are taken into account.
rewrite('until_ms = 5, floor_ms = 5, incarnation = 0, state = $$given_back$$');
my $holder = $control->background_psql('postgres', on_error_stop => 0);
$holder->query_safe('BEGIN; SELECT snowflake_fleet.lock_fleet()');
my %waiting = (ask => 'SELECT status, region, clock_ms FROM ' . $control->question(call => 'acquire', incarnation => 1000), out => '', err => '');
my $run = IPC::Run::start([ 'psql', '-XAtq', '-U', 'alpha', '-d', $control->connstr('postgres'), '-c', $waiting{ask} ],
	'<', \undef, '>', \$waiting{out}, '2>', \$waiting{err});
$control->poll_query_until('postgres', 'SELECT NOT granting FROM snowflake_fleet.health') or die 'nobody waits';
like(health('reason, advice'), qr/^grants wait for a transaction of role \S+\|Run pg_terminate_backend\(\d+\)\.$/, 'a transaction that is left open is named');
my $released = sql('SELECT snowflake_fleet.to_ms(clock_timestamp())');
$holder->query_safe('UPDATE snowflake_fleet.region SET until_ms = 8000000000000 WHERE region <> 2; SELECT snowflake_fleet.sign_rows(); COMMIT');
$run->finish;
like($waiting{out}, qr/^granted\|2\|/, 'who has waited sees what was decided in the meantime') or diag $waiting{err};
cmp_ok(($waiting{out} =~ /(\d+)$/)[0], '>=', $released, 'as of the time after the wait');
is(sql("SELECT clock_offset BETWEEN '-1 s' AND '0.1 s' FROM snowflake_fleet.regions WHERE region = 2"), 't', 'a wait for the lock is no skew');
$holder->quit;

# A commit that may be lost is none.
foreach my $setting ('synchronous_commit', 'fsync')
{
	$control->reconfigure($setting => 'off');
	like($control->ask(call => 'acquire', server => 'alpha', incarnation => 1000)->{error},
		qr/ERROR:  55000: the lease server could lose what it grants\nDETAIL: .*"$setting" is off(?s:.*)HINT:/, "$setting = off is refused");
	like(health('granting, reason'), qr/^f\|it could lose what it grants/, 'and health shows it');
	$control->reconfigure($setting => 'on');
}

# Renamed and removed servers read what happened.
sql('ALTER ROLE beta RENAME TO other');
like($control->ask(call => 'acquire', server => 'other', incarnation => 9)->{error}, qr/42501: role other is not a server of this fleet\nDETAIL: .*added as beta, and renamed(?s:.*)HINT: .*RENAME TO beta/, 'a role that was renamed');
sql('ALTER ROLE other RENAME TO beta');
sql(q{SELECT snowflake_fleet.remove_server('beta')});
like($control->ask(call => 'acquire', server => 'beta', incarnation => 9)->{error}, qr/42501: role beta is not a server of this fleet\nDETAIL: .*It was removed at 20/, 'a server that was removed');
like(sql(q{SELECT snowflake_fleet.remove_server('beta')}), qr/^Server beta was removed at 20/, 'which can be said again');
sql(q{SELECT snowflake_fleet.add_server('beta')});

# A clock that went back: no call of an operator goes by it.
my $held = $control->ask(call => 'acquire', server => 'alpha', incarnation => 1000, length => 600_000);
is($held->{region}, 2, 'the same region again');
$control->clock->set(-3600);
like(($control->psql('postgres', q{SELECT snowflake_fleet.confirm_dead(2, '2 s', holder_is_stopped => true)}))[2], qr/the lease server's clock is behind what it has recorded/, 'confirm_dead() under a clock an hour behind');
like(health('granting, reason'), qr/^t\|the clock is behind what was recorded/, 'health shows it');
$control->clock->set(0);

# One that is ahead for a moment takes no region away: both clocks have to say that it is free.
rewrite('until_ms = 8000000000000, floor_ms = 5 WHERE region IN (0, 1, 3)');
$control->clock->set(3600);
is($control->ask(call => 'acquire', server => 'alpha', incarnation => 1001, ahead => -3_600_000)->{status}, 'full', 'a lease server whose clock is an hour ahead');
$control->clock->set(0);
is($control->ask(call => 'renew', server => 'alpha', incarnation => 1000, $control->known($held), acked => 1)->{status}, 'granted', 'the holder continues');

# Dumped. The lease server grants no lease after it was restored elsewhere, in place, or by its data only, used as a
# template, or written by hand.
my $dump = $control->basedir . '/fleet.dump';
command_ok([ 'pg_dump', '-Fc', '-f', $dump, $control->connstr('postgres') ], 'pg_dump');
sql('CREATE DATABASE restored');
command_ok([ 'pg_restore', '--exit-on-error', '-d', $control->connstr('restored'), $dump ], 'pg_restore');
my $rows = 'SELECT * FROM snowflake_fleet.fleet; SELECT * FROM snowflake_fleet.region ORDER BY 1; SELECT * FROM snowflake_fleet.server ORDER BY 1';
is(sql($rows, 'restored'), sql($rows), 'every row');
sql('CREATE DATABASE copy TEMPLATE postgres', 'template1');
my $later = $control->ask(call => 'renew', server => 'alpha', incarnation => 1000, $control->known($held), acked => 1, length => 900_000);
my %told = (restored => qr/It was restored, promoted or copied/, copy => qr/It was restored, promoted or copied/);
foreach my $database ('restored', 'copy')
{
	sql(q{GRANT USAGE ON SCHEMA snowflake_fleet TO alpha; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_fleet TO alpha}, $database);
	my $told = $control->ask(call => 'acquire', server => 'alpha', incarnation => 2000, database => $database);
	is($told->{status}, 'halted', "$database: nothing is granted");
	like($told->{detail}, $told{$database}, "$database: and why");
}
command_ok([ 'psql', '-Xq', '-d', $control->connstr('postgres'), '-c', 'TRUNCATE snowflake_fleet.fleet, snowflake_fleet.server, snowflake_fleet.region' ], 'emptied');
command_ok([ 'pg_restore', '--data-only', '--disable-triggers', '-d', $control->connstr('postgres'), $dump ], 'pg_restore --data-only');
like(health('granting, reason, advice'), qr/^f\|grants may have been lost\. Rows of table snowflake_fleet\.\w+ were written by a restore.*confirm_no_data_loss\(old_is_stopped => true\).*confirm_data_loss\('the time by your watch', old_is_stopped => true\)/, 'its data only: health shows it before anybody asks');
my %renewal = (call => 'renew', server => 'alpha', incarnation => 1000, $control->known($later), acked => 1, nonce => 2, length => 600_000);
is($control->ask(call => 'acquire', server => 'beta', incarnation => 10)->{status}, 'halted', 'and nothing is granted');
is($control->ask(%renewal)->{status}, 'halted', 'nor renewed');
like(($control->psql('postgres', 'SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)'))[2], qr/something was lost.*\n.*Server alpha has a grant/, 'a server has named what is lost');
like(sql('SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), dry_run => true)'), qr/^Servers keep leases that end after .*free at/, 'dry_run: what the call would do');
sql('SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true)');
my $over = $control->ask(%renewal);
is($over->{status}, 'term_over', 'who holds a lease is told of the new term,');
my $again = $control->ask(%renewal, newest => $over->{number}, term => $over->{term});
is("$again->{status} $again->{region} $again->{floor_ms}", "granted 2 $held->{floor_ms}", 'and keeps it');
is($control->ask(call => 'acquire', server => 'alpha', incarnation => 11)->{status}, 'full', 'nobody else has a region before an hour');

# The dump is older than the first request: regions without a row begin as late as the others.
sql('CREATE DATABASE first');
command_ok([ 'psql', '-Xq', '-d', $control->connstr('first'), '-c', 'CREATE EXTENSION snowflake_fleet', '-c', q{SELECT snowflake_fleet.add_server('alpha')},
	'-c', 'UPDATE snowflake_fleet.fleet SET timeline = 99' ], 'a fleet of the first day');
sql('SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true)', 'first');
is($control->ask(call => 'acquire', server => 'alpha', incarnation => 12, database => 'first')->{status}, 'full', 'nothing is granted');
my $holder_there = $control->ask(call => 'renew', server => 'alpha', incarnation => 13, database => 'first', region => 3, until_ms => $later->{until_ms} + 600_000,
	floor_ms => 7, term => sql('SELECT term FROM snowflake_fleet.fleet', 'first'));
is("$holder_there->{status} $holder_there->{floor_ms}", 'granted 7', 'a holder keeps its lease');

done_testing();
