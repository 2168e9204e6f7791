# The operator of a control database sees whether it grants, and if not, why, what to do and since when; in the log
# every refusal, and none of them too often. And what can be put right: the layout of a fleet that nobody has minted in.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Test::More;

my $control = Snowflake::Control->create('control', allows_streaming => 1);
$control->start;
sub sql { my ($sql, $database) = @_; return $control->safe_psql($database // 'postgres', $sql); }
# As a monitoring role sees it.
sub health
{
	my ($columns, $database, $node) = @_;
	return ($node // $control)->safe_psql($database // 'postgres', "SELECT $columns FROM snowflake_fleet.health", extra_params => [ '-U', 'watch' ]);
}
sub lines_of { my ($pattern) = @_; return scalar(() = slurp_file($control->logfile) =~ /$pattern/g); }
sql('CREATE ROLE watch LOGIN; GRANT pg_monitor TO watch');

# Sizing is said where a fleet begins.
my ($code, undef, $notice) = $control->psql('postgres', 'CREATE EXTENSION snowflake_fleet');
like($notice, qr/NOTICE:  .*half of the regions.*\n.*DETAIL: .*\n.*HINT: /, 'CREATE EXTENSION says how many servers a fleet carries') or diag $notice;

is(health('*'), 'f|there is no fleet yet|Run snowflake_fleet.enroll() for each server.|', 'no fleet');
sql(q{SELECT snowflake_fleet.enroll(s) FROM unnest(ARRAY['alpha', 'beta']) AS s});
is(health('*'), 't|||', 'a fleet that nobody has asked yet');

# A first server whose layout was not the one that was meant.
my $wrong = $Snowflake::Control::seal + 4;
my $first = $control->ask(call => 'acquire', server => 'alpha', incarnation => 1, seal => $wrong);
is($first->{status}, 'granted', 'the first server settles the layout');
like($control->ask(call => 'acquire', server => 'beta', incarnation => 2)->{error}, qr/the server's layout is not the fleet's/, 'and the others are refused');
sub refusal { return ($control->psql('postgres', 'SELECT snowflake_fleet.forget_layout()', extra_params => [ '-v', 'VERBOSITY=verbose' ]))[2]; }
like(refusal(), qr/ERROR:  55006: somebody may have minted.*\n.*DETAIL: .*server alpha holds region 0.*\n.*HINT: .*Stop that server/, 'not while it has a lease');
is($control->ask(call => 'give_back', server => 'alpha', incarnation => 1, term => $first->{term}, newest => $first->{number},
		seal => $wrong, grant => $first->{grant_number}, highest => 0)->{status}, 'given_back', 'it stops, and has minted nothing');
sql('SELECT snowflake_fleet.forget_layout()');
my $alpha = $control->ask(call => 'acquire', server => 'alpha', incarnation => 3, length => 60_000);
is($alpha->{status}, 'granted', 'then the layout can be another one');
my $now = sql('SELECT snowflake_fleet.to_ms(clock_timestamp())');
my %known = (server => 'alpha', incarnation => 3, term => $alpha->{term}, newest => $alpha->{number}, region => 0, acked => 1, nonce => 1);
$control->ask(call => 'give_back', %known, grant => $alpha->{grant_number}, highest => $now);
like(refusal(), qr/ERROR:  55006: somebody may have minted.*\n.*DETAIL: .*server alpha had region 0/, 'but not where somebody may have minted');

# A setting under which a grant could be forgotten.
$control->reconfigure(fsync => 'off');
like(health('granting, reason, advice'), qr/^f\|it could forget what it grants\|.*fsync/, 'fsync off');
$control->reconfigure(fsync => 'on');

# Full for one server, though it grants to others; and in the log once a minute, whatever comes between.
sql(q{SELECT snowflake_fleet.enroll('gamma', '[31,31]')});
my $full = qr/LOG:  snowflake_fleet: acquire of server gamma \(incarnation 5[0-9], address local\): full\. Pool \[31,32\) of server gamma: 31 held by gamma/;
is($control->ask(call => 'acquire', server => 'gamma', incarnation => 51, length => 60_000)->{region}, 31, 'the last region of a pool');
$control->ask(call => 'acquire', server => 'gamma', incarnation => 50 + $_) foreach 2 .. 5;
is(lines_of($full), 1, 'four refusals, one line');
like(health(q{granting, reason, advice, since > now() - interval '1 min'}), qr/^t\|no region is free for server gamma\|.*\|t$/, 'health names the server');
is(sql(q{SELECT refused, refused_since IS NOT NULL FROM snowflake_fleet.servers WHERE server = 'gamma'}), 'full|t', 'and so does servers');
is($control->ask(call => 'acquire', server => 'gamma', incarnation => 51)->{status}, 'granted', 'granted in between');
is(health('granting, reason'), 't|', 'then it is over');
$control->ask(call => 'acquire', server => 'gamma', incarnation => 52);
is(lines_of($full), 1, 'which makes the next refusal no news');
sql(q{UPDATE snowflake_fleet.refusal SET logged = logged - interval '61 s'});
$control->ask(call => 'acquire', server => 'gamma', incarnation => 52);
is(lines_of($full), 2, 'a minute later it is');
is(sql(q{SELECT times FROM snowflake_fleet.refusal WHERE server = 'gamma' AND cause = 'full'}), '6', 'all are counted');
$control->ask(call => 'acquire', server => 'gamma', incarnation => 51);
$control->ask(call => 'acquire', server => 'beta', incarnation => 61, ahead => 30_000);
like(health('granting, reason'), qr/^t\|the clock of server beta is ahead$/, 'a clock that is ahead');
sql(q{UPDATE snowflake_fleet.refusal SET last = last - interval '61 s'});
is(health('granting, reason'), 't|', 'a server that asks no more is not named for ever');
is(lines_of(qr/LOG:  snowflake_fleet: acquire of server beta \(incarnation 61, address local\): clock_ahead\. The server's clock is (?:29|30)\d{3} ms ahead/), 1, 'is in the log');
is($control->ask(call => 'acquire', server => 'beta', incarnation => 61)->{status}, 'granted', 'until it is right');

# Somebody holds the lock of the fleet.
my $holder = $control->background_psql('postgres', on_error_stop => 0);
$holder->query_safe('BEGIN; SELECT snowflake_fleet.lock_fleet()');
my $waiter = { out => '', err => '' };
$waiter->{run} = IPC::Run::start([ 'psql', '-XAtq', '-U', 'beta', '-d', $control->connstr('postgres'), '-c',
	'SELECT status FROM ' . $control->question(call => 'acquire', incarnation => 62) ], '<', \undef, '>', \$waiter->{out}, '2>', \$waiter->{err});
$control->poll_query_until('postgres', 'SELECT NOT granting FROM snowflake_fleet.health') or die 'it grants';
like(health('reason, advice, since < now()'), qr/^grants wait for a transaction of \S+\|Run pg_terminate_backend\(\d+\)\.\|t$/, 'a transaction that is left open is named');
$holder->quit;
$waiter->{run}->finish;

# A standby, and then promoted.
$control->backup('base');
my $standby = Snowflake::Control->new('standby');
$standby->init_from_backup($control, 'base', has_streaming => 1);
$standby->start;
like(health('granting, reason', 'postgres', $standby), qr/^f\|a standby$/, 'a standby');
$control->wait_for_catchup($standby, 'replay');
$control->stop;
$standby->promote;
my $way_out = qr/old control database is stopped for good.*nothing_lost\(old_is_stopped => true\).*leases go on.*recovered\('the time from a clock that you trust', old_is_stopped => true\)/s;
like(health('granting, reason, advice, since IS NULL', 'postgres', $standby), qr/^f\|it was promoted, restored or copied\|[^|]*$way_out[^|]*\|t$/s,
	'promoted: both ways out, the harmless one first');
my $told = $standby->ask(call => 'acquire', server => 'beta', incarnation => 71);
is($told->{status}, 'halted', 'nothing is granted');
is(health(q{since > now() - interval '1 min'}, 'postgres', $standby), 't', 'since the first server was refused');
$standby->ask(call => 'renew', %known) foreach 1 .. 3;
my $log = slurp_file($standby->logfile);
is(scalar(() = $log =~ /LOG:  snowflake_fleet: \w+ of server alpha .*: halted, region 0\. It was recovered, promoted or copied/g), 1, 'the log has a line for each server,');
is(scalar(() = $log =~ /LOG:  snowflake_fleet: \w+ of server beta .*: halted\. /g), 1, 'and no more');
my $proof = $standby->safe_psql('postgres', q{SELECT snowflake_fleet.sign(format('heard %s 1000000', term)) FROM snowflake_fleet.fleet});
$standby->ask(call => 'renew', %known, term => $standby->safe_psql('postgres', 'SELECT term FROM snowflake_fleet.fleet'), newest => 1_000_000, proof => $proof);
like(health('granting, reason, advice', 'postgres', $standby), qr/^f\|a server knows of grants that are not here: something was lost\|.*recovered\('the time from a clock that you trust', old_is_stopped => true\)/, 'something was lost')
  or diag 'by a server that names a grant';

done_testing();
