# The one lock on the fleet: a server's role that keeps it, on purpose or not, keeps nobody else waiting for long.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Test::More;

my $control = Snowflake::Control->create('control');
$control->start;
$control->safe_psql('postgres', 'CREATE ROLE operator LOGIN CREATEROLE; CREATE DATABASE plain OWNER operator');
$control->install;
system('psql', '-Xq', '-U', 'operator', '-d', $control->connstr('plain'), '-f', "$FindBin::RealBin/../snowflake_fleet.sql") == 0 or die 'psql -f';
$control->safe_psql('postgres', "SELECT snowflake_fleet.enroll(s) FROM unnest(ARRAY['alpha', 'beta']) AS s");
$control->safe_psql('plain', "SELECT snowflake_fleet.enroll(s) FROM unnest(ARRAY['gamma', 'delta']) AS s", extra_params => [ '-U', 'operator' ]);

sub holder
{
	my ($database, $role, $query) = @_;
	my $session = $control->background_psql($database, on_error_stop => 0, extra_params => [ '-U', $role ]);
	$session->query_until(qr/held/, "$query\n\\echo held\n");
	return $session;
}
sub ended { my ($role) = @_; return $control->log_content =~ /LOG:  snowflake_fleet: session \d+ of role \Q$role\E is ended/; }

# A savepoint hides who has locked a row, but not who has locked a table.
foreach my $case ([ 'postgres', 'alpha', 'beta' ], [ 'plain', 'gamma', 'delta' ])
{
	my ($database, $bad, $good) = @$case;
	my $acquire = 'SELECT status FROM ' . $control->question(call => 'acquire', incarnation => 1);
	my $session = holder($database, $bad, "BEGIN; SAVEPOINT a; $acquire; RELEASE a;");
	is($control->ask(call => 'acquire', server => $good, incarnation => 2, database => $database)->{status}, 'granted',
		"$database: an open transaction of one role, and another is served");
	ok(ended($bad), "$database: the log says whose session was ended");
	eval { $session->quit };
	is($control->ask(call => 'acquire', server => $bad, incarnation => 3, database => $database)->{status}, 'granted', "$database: that role is served as well");
}

# A lock is had for nothing: PREPARE takes it before it is asked who may do what, of tables that any role may name.
my $next = 10;
sub served
{
	my ($role, $what) = @_;
	my $answer = $control->ask(call => 'acquire', server => $role, incarnation => $next++);
	is($answer->{status}, 'granted', "$what: another is served") or diag $answer->{error};
	return;
}
$control->safe_psql('postgres', 'CREATE ROLE stranger LOGIN');
foreach my $statement ('UPDATE snowflake_fleet.fleet SET halted = true', 'SELECT FROM snowflake_fleet.fleet FOR UPDATE')
{
	foreach my $role ('alpha', 'stranger')
	{
		my $session = holder('postgres', $role, "BEGIN; PREPARE p AS $statement;");
		served('beta', "$statement prepared by $role");
		eval { $session->quit };
	}
}
ok(ended('stranger'), 'the log says so, of a role that is no server as well');

# Commands that wait for a lock, behind somebody who reads: who decides meanwhile would wait for them, with the fleet's lock.
foreach my $table ('fleet', 'region', 'grants', 'refusal', 'server')
{
	my $reader = holder('postgres', $control->safe_psql('postgres', 'SELECT current_user'), "BEGIN; SELECT count(*) FROM snowflake_fleet.$table;");
	my $waiting = IPC::Run::start([ 'psql', '-Xq', '-U', 'stranger', '-d', $control->connstr('postgres'), '-c',
			"CREATE RULE r AS ON INSERT TO snowflake_fleet.$table DO INSTEAD NOTHING" ], '<', \undef, '>', '/dev/null', '2>', '/dev/null');
	$control->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'") or die 'it does not wait';
	served('beta', "CREATE RULE on $table waits behind a reader");
	is($reader->query_safe('SELECT 1'), '1', "$table: the reader goes on");
	$reader->quit;
	$waiting->kill_kill;
}

# In turns: each session for less than a second, and always one of them.
my $turns = $control->basedir . '/turns.sql';
my $acquire = 'SELECT ' . $control->question(call => 'acquire', incarnation => 1);
append_to_file($turns, "BEGIN; $acquire;\nSELECT pg_sleep(0.9);\nCOMMIT;\n" x 40);
my @turns = map {
	IPC::Run::start([ 'psql', '-Xq', '-U', 'alpha', '-d', $control->connstr('postgres'), '-f', $turns ], '<', \undef, '>', '/dev/null', '2>', '/dev/null')
} 1 .. 8;
$control->poll_query_until('postgres', "SELECT count(*) > 5 FROM pg_stat_activity WHERE usename = 'alpha' AND wait_event_type = 'Lock'") or die 'no queue';
served('beta', 'sessions of one role that have it in turns');
$_->kill_kill foreach @turns;

# Who rolls back has been told numbers that the table does not have: they show nothing, in this term and in later ones.
my %heard;
foreach my $times (1, 40)
{
	my $sql = "BEGIN;\n" . ("SELECT to_jsonb(a) FROM ($acquire) AS a;\n" =~ s/SELECT snow/SELECT * FROM snow/r) x $times . "ROLLBACK;\n";
	my (undef, $out, $err) = $control->psql('postgres', $sql, extra_params => [ '-U', 'alpha' ]);
	%heard = ((split /\n/, $out)[-1] // '') =~ /"(term|number|proof)": (\d+)/g;
	is(keys %heard, 3, "an answer that was rolled back, after $times") or diag $err;
	is($control->ask(call => 'acquire', server => 'alpha', incarnation => 90, $control->known(\%heard))->{status}, 'granted', 'halts nobody');
}
served('beta', 'after what was rolled back');
my $later = $control->ask(call => 'acquire', server => 'beta', incarnation => 91);
cmp_ok($later->{number}, '>', $heard{number}, 'later answers have later numbers');
$control->safe_psql('postgres', 'UPDATE snowflake_fleet.fleet SET directory = NULL; SELECT snowflake_fleet.nothing_lost(old_is_stopped => true)');
served('beta', 'a new term');
is($control->ask(call => 'acquire', server => 'alpha', incarnation => 92, $control->known(\%heard))->{status}, 'granted', 'nor after nothing_lost()');
is($control->ask(call => 'acquire', server => 'alpha', incarnation => 92, %{{ $control->known(\%heard) }}, newest => $later->{number} + 1)->{status}, 'unproven',
	'a number that nobody was told is not proven');

# An operator is nobody's to end; who waits gives up as it has been told to.
my $operator = holder('postgres', $control->safe_psql('postgres', 'SELECT current_user'), 'BEGIN; SELECT snowflake_fleet.lock_fleet();');
my ($code, undef, $error) = $control->psql('postgres', 'SET lock_timeout = 2500; SELECT ' . $control->question(call => 'acquire', incarnation => 4),
	extra_params => [ '-U', 'beta', '-v', 'VERBOSITY=verbose' ]);
like($error, qr/ERROR:  55P03: canceling statement due to lock timeout/, 'an operator who holds it is waited for');
is($operator->query_safe('SELECT 1'), '1', 'and goes on');
$operator->quit;

done_testing();
