# Tests the SQL functions and views of the lease server by requests that the test itself sends. Tests concurrent
# requests, dumps, restores and copies of the lease server.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use List::Util qw(uniq);
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
sub sql { my ($sql, $database, $node) = @_; return ($node // $lease_server)->safe_psql($database // 'postgres', $sql); }
# Changes rows of the table snowflake_fleet.region, and updates the signature of its rows.
sub rewrite { return sql("BEGIN; UPDATE snowflake_fleet.region SET $_[0]; SELECT snowflake_fleet.sign_rows(); COMMIT"); }
# Reads the view health of the lease server as a monitoring role.
sub health
{
	my ($columns, $database, $node) = @_;
	return ($node // $lease_server)->safe_psql($database // 'postgres', "SELECT $columns FROM snowflake_fleet.health", extra_params => [ '-U', 'watch' ]);
}
sub lines_of { my ($pattern) = @_; return scalar(() = slurp_file($lease_server->logfile) =~ /$pattern/g); }
sql('CREATE ROLE watch LOGIN; GRANT pg_monitor TO watch');
sql(q{ALTER ROLE watch SET default_transaction_read_only = on; ALTER ROLE watch SET synchronous_commit = off});
is(health('*'), 'f|the fleet does not exist yet|Run snowflake_fleet.add_server() for each server.|', 'health shows that the fleet does not exist yet');
# While another session runs create_fleet(), add_server() waits and must not create the fleet a second time.
my $maker = $lease_server->background_psql('postgres');
$maker->query_safe(q{BEGIN; SELECT snowflake_fleet.create_fleet(lease => '30 min')});
my $adder = IPC::Run::start([ 'psql', '-XAtq', '-d', $lease_server->connstr('postgres'), '-c', q{SELECT snowflake_fleet.add_server('alpha')} ],
	'<', \undef, '>', \my $added, '2>', \my $refused);
$lease_server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 'snowflake_fleet.fleet'::regclass}) or die 'it does not wait';
$maker->query_safe('COMMIT');
$maker->quit;
$adder->finish;
is("$added$refused" . sql(q{SELECT longest_ms FROM snowflake_fleet.fleet}), "Server alpha may log in as role alpha, which was created without a password.\n1860000", 'add_server() uses the fleet that another session has just created');
sql('SELECT snowflake_fleet.create_fleet()');
sql(q{SELECT snowflake_fleet.add_server('beta')});
is(health('*'), 't|||', 'health shows a fleet without requests as granting, whatever the settings of the monitoring role');
sql('ALTER ROLE watch RESET synchronous_commit');

# The SQL script of the extension, run by an ordinary role with psql -f, must create the same objects as CREATE
# EXTENSION.
sql('CREATE ROLE operator LOGIN CREATEROLE; CREATE DATABASE plain OWNER operator');
command_ok([ 'psql', '-Xq', '-U', 'operator', '-d', $lease_server->connstr('plain'), '-f', "$FindBin::RealBin/../snowflake_fleet.sql" ],
	'an ordinary role can run the script with psql -f');
my $objects = <<~'SQL';
	SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
	 WHERE refobjid = 'snowflake_fleet'::regnamespace AND classid <> 'pg_type'::regclass ORDER BY 1;
	SELECT p.proname, md5(prosrc), prosecdef, proconfig FROM pg_proc AS p
	 WHERE pronamespace = 'snowflake_fleet'::regnamespace ORDER BY 1, 2
	SQL
is(sql($objects, 'plain'), sql($objects), 'the script creates the same objects as CREATE EXTENSION');
sub as_operator { my ($sql) = @_; return ($lease_server->psql('plain', $sql, extra_params => [ '-U', 'operator', '-v', 'VERBOSITY=verbose' ]))[1, 2]; }
is((as_operator(q{SELECT snowflake_fleet.add_server('gamma') LIKE '%without a password.'}))[0], 't', 'the ordinary role can call add_server()');
is($lease_server->ask(call => 'acquire', server => 'gamma', incarnation => 5, database => 'plain')->{status}, 'granted', 'the fleet of an ordinary role grants leases');
like((as_operator(q{SELECT snowflake_fleet.add_server('operator')}))[1], qr/22023: role operator cannot be the login role of a server\n.*The role owns the fleet/, 'add_server() refuses the owner of the fleet');
sql('ALTER ROLE operator NOCREATEROLE');
like((as_operator(q{SELECT snowflake_fleet.add_server('delta')}))[1], qr/42501: permission denied to create role delta\n.*HINT: .*CREATE ROLE delta LOGIN/, 'add_server() of an owner without CREATEROLE fails with a hint');
command_fails_like([ 'psql', '-Xq', '-d', $lease_server->connstr('plain'), '-f', "$FindBin::RealBin/../snowflake_fleet.sql" ],
	qr/schema "snowflake_fleet" already exists/, 'the script fails if it runs a second time');

# create_fleet() can replace a fleet and its bit layout of ids, unless a server may have minted an id.
my $wrong = $lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 1, seal => $Snowflake::LeaseServer::seal + 4);
like($lease_server->ask(call => 'acquire', server => 'beta', incarnation => 2)->{error}, qr/the server and the fleet have different id layouts/, 'the layout of the first server is that of the fleet');
like(($lease_server->psql('postgres', 'SELECT snowflake_fleet.create_fleet()'))[2], qr/the fleet has granted leases and cannot be replaced/, 'create_fleet() fails while a server has a lease');
$lease_server->ask(call => 'give_back', server => 'alpha', incarnation => 1, $lease_server->known($wrong), seal => $Snowflake::LeaseServer::seal + 4, grant => $wrong->{grant_number});
# Each call of create_fleet() stores a new number, with which servers detect a lease server that is restored from an
# older dump.
my @fleets = map { sql("SELECT snowflake_fleet.create_fleet(lease => '$_')"); sql('SELECT id, longest_ms FROM snowflake_fleet.fleet') } '2 hours', '1 hour';
is(scalar(uniq(map { /^(\d+)/ } @fleets)), 2, 'each create_fleet() makes another number of the fleet');

# Servers that send requests at the same time get different regions.
my @clients = map {
	my $server = $_ % 2 ? 'alpha' : 'beta';
	my $sql = join '', map { 'SELECT status, region FROM ' . $lease_server->question(call => 'acquire', server => $server, incarnation => $_) . ";\n" } 100 + 3 * $_ .. 102 + 3 * $_;
	my $client = { in => $sql, out => '', err => '' };
	$client->{run} = IPC::Run::start([ 'psql', '-XAtq', '-U', $server, '-d', $lease_server->connstr('postgres') ],
		'<', \$client->{in}, '>', \$client->{out}, '2>', \$client->{err});
	$client
} 0 .. 7;
$_->{run}->finish foreach @clients;
is(join('', map { $_->{err} } @clients), '', 'eight clients send requests at the same time without an error');
is(join(',', sort { $a <=> $b } map { $_->{out} =~ /^granted\|(\d+)$/mg } @clients), join(',', 0 .. 7), '24 requests at the same time get each region of the two servers once');
my $full = $lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 999);
like($full->{detail}, qr/^Regions of the server: region \d of server alpha until .*\(incarnation \d+, address local\)/, 'the answer "full" shows which server holds each region, and until when');
$lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 999) foreach 1 .. 3;
is(lines_of(qr/LOG:  snowflake_fleet: acquire of server alpha \(incarnation \d+, address local\): full\./), 1, 'the log has one line for four refusals within a minute');
like(health(q{granting, reason, since > now() - interval '1 min'}), qr/^t\|no region of server (?:alpha|beta) is free\|t$/, 'health names a server without a free region');
is(sql(q{SELECT refused FROM snowflake_fleet.servers WHERE server = 'alpha'}), 'full', 'the view servers shows the refusal');

# A request for a lease waits for a lock while another transaction grants leases. The time that a request waits for the
# lock must not count as a difference between clocks.
rewrite('until_ms = 5, floor_ms = 5, incarnation = 0, state = $$given_back$$');
my $holder = $lease_server->background_psql('postgres', on_error_stop => 0);
$holder->query_safe('BEGIN; SELECT snowflake_fleet.lock_fleet()');
my %waiting = (ask => 'SELECT status, region, clock_ms FROM ' . $lease_server->question(call => 'acquire', incarnation => 1000), out => '', err => '');
my $run = IPC::Run::start([ 'psql', '-XAtq', '-U', 'alpha', '-d', $lease_server->connstr('postgres'), '-c', $waiting{ask} ],
	'<', \undef, '>', \$waiting{out}, '2>', \$waiting{err});
$lease_server->poll_query_until('postgres', 'SELECT NOT granting FROM snowflake_fleet.health') or die 'nobody waits';
like(health('reason, advice'), qr/^requests for leases wait for a transaction of role \S+\|Run pg_terminate_backend\(\d+\)\.$/, 'health names the session whose open transaction holds the lock');
my $released = sql('SELECT snowflake_fleet.to_ms(clock_timestamp())');
$holder->query_safe('UPDATE snowflake_fleet.region SET until_ms = 8000000000000 WHERE region <> 2; SELECT snowflake_fleet.sign_rows(); COMMIT');
$run->finish;
like($waiting{out}, qr/^granted\|2\|/, 'a request that has waited sees the changes that were committed in the meantime') or diag $waiting{err};
cmp_ok(($waiting{out} =~ /(\d+)$/)[0], '>=', $released, 'the answer to a request that has waited has the time after the wait');
is(sql("SELECT clock_offset BETWEEN '-1 s' AND '0.1 s' FROM snowflake_fleet.regions WHERE region = 2"), 't', 'a wait for the lock does not change clock_offset');
$holder->quit;

# If fsync or synchronous_commit is off, a crash could lose leases, so the lease server must grant no lease.
foreach my $setting ('synchronous_commit', 'fsync')
{
	$lease_server->reconfigure($setting => 'off');
	like($lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 1000)->{error},
		qr/ERROR:  55000: a crash of the lease server could lose granted leases\nDETAIL: .*"$setting" is off(?s:.*)HINT:/, "requests are refused if $setting is off");
	like(health('granting, reason'), qr/^f\|a crash could lose granted leases/, "health shows that $setting is off");
	$lease_server->reconfigure($setting => 'on');
}

# The error of a request must explain that the login role of the server was renamed or removed.
sql('ALTER ROLE beta RENAME TO other');
like($lease_server->ask(call => 'acquire', server => 'other', incarnation => 9)->{error}, qr/42501: role other is not a server of this fleet\nDETAIL: .*added under the name beta, and was renamed(?s:.*)HINT: .*RENAME TO beta/, 'the error explains that the role was renamed');
sql('ALTER ROLE other RENAME TO beta');
sql(q{SELECT snowflake_fleet.remove_server('beta')});
like($lease_server->ask(call => 'acquire', server => 'beta', incarnation => 9)->{error}, qr/42501: role beta is not a server of this fleet\nDETAIL: .*The server was removed at 20/, 'the error explains that the server was removed');
like(sql(q{SELECT snowflake_fleet.remove_server('beta')}), qr/^Server beta was removed at 20/, 'remove_server() can be repeated');
sql(q{SELECT snowflake_fleet.add_server('beta')});

# While the lease server's clock is behind, confirm_dead() fails, because it would use the wrong time.
my $held = $lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 1000, length => 600_000);
is($held->{region}, 2, 'a new request gets the region that it had before');
$lease_server->clock->set(-3600);
like(($lease_server->psql('postgres', q{SELECT snowflake_fleet.confirm_dead(2, '2 s', holder_is_stopped => true)}))[2], qr/the clock of the lease server is behind the newest recorded time/, 'confirm_dead() fails while the clock is an hour behind');
like(health('granting, reason'), qr/^t\|the clock is behind the newest recorded time/, 'health shows that the clock is behind');
$lease_server->clock->set(0);

# A region is free only if its lease has ended by the clocks of the lease server and of the requesting server.
rewrite('until_ms = 8000000000000, floor_ms = 5 WHERE region IN (0, 1, 3)');
$lease_server->clock->set(3600);
is($lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 1001, ahead => -3_600_000)->{status}, 'full', 'no region is free if only the lease server\'s clock is an hour ahead');
$lease_server->clock->set(0);
is($lease_server->ask(call => 'renew', server => 'alpha', incarnation => 1000, $lease_server->known($held), acked => 1)->{status}, 'granted', 'the holder of the region renews its lease when the clock is right');

# The lease server grants no lease after its database was restored from a dump or copied as a template, or after manual
# changes of rows.
my $dump = $lease_server->basedir . '/fleet.dump';
command_ok([ 'pg_dump', '-Fc', '-f', $dump, $lease_server->connstr('postgres') ], 'pg_dump');
sql('CREATE DATABASE restored');
command_ok([ 'pg_restore', '--exit-on-error', '-d', $lease_server->connstr('restored'), $dump ], 'pg_restore');
my $rows = 'SELECT * FROM snowflake_fleet.fleet; SELECT * FROM snowflake_fleet.region ORDER BY 1; SELECT * FROM snowflake_fleet.server ORDER BY 1';
is(sql($rows, 'restored'), sql($rows), 'the restored database has every row');
sql('CREATE DATABASE copy TEMPLATE postgres', 'template1');
my $later = $lease_server->ask(call => 'renew', server => 'alpha', incarnation => 1000, $lease_server->known($held), acked => 1, length => 900_000);
my %told = (restored => qr/The database was restored, promoted or copied/, copy => qr/The database was restored, promoted or copied/);
foreach my $database ('restored', 'copy')
{
	sql(q{GRANT USAGE ON SCHEMA snowflake_fleet TO alpha; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_fleet TO alpha}, $database);
	my $told = $lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 2000, database => $database);
	is($told->{status}, 'halted', "$database: requests get the status halted");
	like($told->{detail}, $told{$database}, "$database: the answer explains why nothing is granted");
}
command_ok([ 'psql', '-Xq', '-d', $lease_server->connstr('postgres'), '-c', 'TRUNCATE snowflake_fleet.fleet, snowflake_fleet.server, snowflake_fleet.region' ], 'the tables are emptied');
command_ok([ 'pg_restore', '--data-only', '--disable-triggers', '-d', $lease_server->connstr('postgres'), $dump ], 'pg_restore --data-only');
like(health('granting, reason, advice'), qr/^f\|leases may be lost\. Rows of table snowflake_fleet\.\w+ were changed by a restore.*confirm_no_data_loss\(old_is_stopped => true\).*confirm_data_loss\('the time by your watch', old_is_stopped => true\)/, 'after a restore of the data only, health shows the reason before the first request');
my %renewal = (call => 'renew', server => 'alpha', incarnation => 1000, $lease_server->known($later), acked => 1, nonce => 2, length => 600_000);
is($lease_server->ask(call => 'acquire', server => 'beta', incarnation => 10)->{status}, 'halted', 'after a restore of the data only, acquire gets the status halted');
is($lease_server->ask(%renewal)->{status}, 'halted', 'after a restore of the data only, renew gets the status halted');
like(($lease_server->psql('postgres', 'SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)'))[2], qr/this database has lost a lease.*\n.*Server alpha has a lease/, 'confirm_no_data_loss() fails because a server has a grant that the restored rows lack');
like(sql('SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), dry_run => true)'), qr/^Servers keep leases that end after .*free at/, 'confirm_data_loss() with dry_run shows what it would do');
sql('SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true)');
my $over = $lease_server->ask(%renewal);
is($over->{status}, 'term_over', 'after confirm_data_loss() the holder of a lease gets the new term');
my $again = $lease_server->ask(%renewal, newest => $over->{number}, term => $over->{term});
is("$again->{status} $again->{region} $again->{floor_ms}", "granted 2 $held->{floor_ms}", 'after confirm_data_loss() the holder keeps its lease');
is($lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 11)->{status}, 'full', 'after confirm_data_loss() no other server gets a region');

# Simulates a lease server that is restored from a dump made before the first request. A region that is missing in the
# restored table may be leased, so the region must not be granted at once.
sql('CREATE DATABASE first');
command_ok([ 'psql', '-Xq', '-d', $lease_server->connstr('first'), '-c', 'CREATE EXTENSION snowflake_fleet', '-c', q{SELECT snowflake_fleet.add_server('alpha')},
	'-c', 'UPDATE snowflake_fleet.fleet SET timeline = 99' ], 'a fleet without requests is made');
sql('SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true)', 'first');
is($lease_server->ask(call => 'acquire', server => 'alpha', incarnation => 12, database => 'first')->{status}, 'full', 'after confirm_data_loss() regions without a row are not granted yet');
my $holder_there = $lease_server->ask(call => 'renew', server => 'alpha', incarnation => 13, database => 'first', region => 3, until_ms => $later->{until_ms} + 600_000,
	floor_ms => 7, term => sql('SELECT term FROM snowflake_fleet.fleet', 'first'));
is("$holder_there->{status} $holder_there->{floor_ms}", 'granted 7', 'after confirm_data_loss() the holder of a region without a row keeps its lease');

done_testing();
