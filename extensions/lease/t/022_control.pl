# The control database's own life: made with and without the extension, dumped, copied, asked by many at
# once, waiting for a lock.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
$control->install;
$control->safe_psql('postgres', "SELECT snowflake_fleet.enroll(s) FROM unnest(ARRAY['alpha', 'beta']) AS s");

# psql -f makes what the extension makes, and by a role that is no superuser.
$control->safe_psql('postgres', 'CREATE ROLE operator LOGIN CREATEROLE; CREATE DATABASE plain OWNER operator');
command_ok([ 'psql', '-Xq', '-U', 'operator', '-d', $control->connstr('plain'), '-f',
		"$FindBin::RealBin/../snowflake_fleet.sql" ], 'psql -f, as an ordinary role');
my $objects = <<~'SQL';
	SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
	 WHERE refobjid = 'snowflake_fleet'::regnamespace AND classid <> 'pg_type'::regclass ORDER BY 1;
	SELECT p.proname, md5(prosrc), prosecdef, proconfig FROM pg_proc AS p
	 WHERE pronamespace = 'snowflake_fleet'::regnamespace ORDER BY 1, 2
	SQL
is($control->safe_psql('plain', $objects), $control->safe_psql('postgres', $objects), 'the same objects');
is($control->safe_psql('plain', "SELECT snowflake_fleet.enroll('gamma')", extra_params => [ '-U', 'operator' ]), '',
	'enroll() by that role');
is($control->ask(call => 'acquire', server => 'gamma', incarnation => 5, database => 'plain')->{status}, 'granted',
	'and the server is served');
command_fails_like([ 'psql', '-Xq', '-d', $control->connstr('plain'), '-f', "$FindBin::RealBin/../snowflake_fleet.sql" ],
	qr/schema "snowflake_fleet" already exists/, 'a second time it stops');

# Many at once: nobody gets what another has.
my @asked = map { $control->question(call => 'acquire', incarnation => $_) } 100 .. 139;
my @clients = map {
	my ($server, @questions) = ($_ % 2 ? 'alpha' : 'beta', @asked[ $_ * 5 .. $_ * 5 + 4 ]);
	my $sql = join '', map { "SELECT status, region FROM $_;\n" } @questions;
	my $client = { in => $sql, out => '', err => '' };
	$client->{run} = IPC::Run::start([ 'psql', '-XAtq', '-U', $server, '-d', $control->connstr('postgres') ],
		'<', \$client->{in}, '>', \$client->{out}, '2>', \$client->{err});
	$client
} 0 .. 7;
$_->{run}->finish foreach @clients;
is(join('', map { $_->{err} } @clients), '', 'eight clients at once');
my @regions = map { /^granted\|(\d+)$/mg } map { $_->{out} } @clients;
is(join(',', sort { $a <=> $b } @regions), join(',', 0 .. 31), 'forty requests: each of the 32 regions once');
is(scalar(grep { /^full/ } map { split /\n/, $_->{out} } @clients), 8, 'and eight times none');
my $full = $control->ask(call => 'acquire', server => 'alpha', incarnation => 999);
like($full->{detail}, qr/^Regions: \d+ held by (alpha|beta) until 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\+00, /, 'who holds what until when');

# Waiting for the lock is no difference of clocks; what was granted meanwhile is seen.
$control->safe_psql('postgres', 'UPDATE snowflake_fleet.region SET until_ms = 5, floor_ms = 5, incarnation = 0');
my $holder = $control->background_psql('postgres', on_error_stop => 0);
$holder->query_safe('BEGIN; SELECT snowflake_fleet.lock_fleet()');
my %waiting = (ask => 'SELECT status, region, clock_ms FROM '
	  . $control->question(call => 'acquire', incarnation => 1000), out => '', err => '');
my $run = IPC::Run::start([ 'psql', '-XAtq', '-U', 'alpha', '-d', $control->connstr('postgres'), '-c', $waiting{ask} ],
	'<', \undef, '>', \$waiting{out}, '2>', \$waiting{err});
ok($control->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'alpha' AND wait_event_type = 'Lock'"),
	'one waits for the other');
sleep 3;
my $released = $control->safe_psql('postgres', 'SELECT snowflake_fleet.to_ms(clock_timestamp())');
$holder->query_safe('UPDATE snowflake_fleet.region SET until_ms = 9000000000000 WHERE region <> 7; COMMIT');
$run->finish;
like($waiting{out}, qr/^granted\|7\|/, 'who has waited sees what was decided meanwhile') or diag $waiting{err};
my ($decided) = $waiting{out} =~ /(\d+)$/;
cmp_ok($decided, '>=', $released, 'as of the time after the wait');
is($control->safe_psql('postgres', "SELECT clock_offset BETWEEN '-2 s' AND '0.1 s' FROM snowflake_fleet.regions WHERE region = 7"),
	't', 'a wait for the lock is no skew');
$holder->quit;

# A commit that may be lost is none.
foreach my $setting ('synchronous_commit = off', 'fsync = off')
{
	$control->append_conf('postgresql.conf', "$setting\n");
	$control->reload;
	my ($name) = split / /, $setting;
	$control->poll_query_until('postgres', "SELECT current_setting('$name') = 'off'") or die $setting;
	like($control->ask(call => 'acquire', server => 'alpha', incarnation => 1000)->{error},
		qr/ERROR:  55000: the control database could forget what it grants\nDETAIL: .*"$name" is off(?s:.*)HINT:/, "$setting is refused");
	$control->append_conf('postgresql.conf', "$name = on\n");
	$control->reload;
	$control->poll_query_until('postgres', "SELECT current_setting('$name') = 'on'") or die $setting;
}

# Dumped and restored, and as a template: the fleet is there, and waits.
my $knows = $control->ask(call => 'acquire', server => 'alpha', incarnation => 1000);
is($knows->{region}, 7, 'the same region again');
command_ok([ 'pg_dump', '-Fc', '-f', $control->basedir . '/fleet.dump', $control->connstr('postgres') ], 'pg_dump');
$control->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'pg_restore', '--exit-on-error', '-d', $control->connstr('restored'), $control->basedir . '/fleet.dump' ],
	'pg_restore');
my $rows = 'SELECT * FROM snowflake_fleet.fleet; SELECT * FROM snowflake_fleet.region ORDER BY 1; SELECT * FROM snowflake_fleet.server ORDER BY 1';
is($control->safe_psql('restored', $rows), $control->safe_psql('postgres', $rows), 'every row');
$control->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres');
foreach my $database ('restored', 'copy')
{
	$control->safe_psql($database, 'GRANT USAGE ON SCHEMA snowflake_fleet TO alpha');
	my $told = $control->ask(call => 'acquire', server => 'alpha', incarnation => 2000, database => $database);
	is($told->{status}, 'halted', "$database: nothing is granted");
	like($told->{detail}, qr/recovered, promoted or copied/, "$database: and why");
	$control->safe_psql($database, 'SELECT snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true)');
	$told = $control->ask(call => 'renew', server => 'alpha', incarnation => 1000, database => $database,
		term => $knows->{term}, newest => $knows->{number}, region => 7);
	is($told->{status}, 'lost', "$database, recovered: incarnations have ended");
	cmp_ok($told->{term}, '>', $knows->{term}, "$database: a new term");
	# The original hears of it, and stops.
}
my $told = $control->ask(call => 'renew', server => 'alpha', incarnation => 1000, term => $knows->{term},
	newest => $knows->{number}, region => 7, acked => 1);
is($told->{status}, 'granted', 'the original goes on');

done_testing();
