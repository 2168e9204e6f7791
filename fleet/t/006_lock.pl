# The one lock on the fleet: a server's role that keeps it, on purpose or not, keeps nobody else waiting for long.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../t/lib";
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
sub ended { my ($role) = @_; return $control->log_content =~ /LOG:  snowflake_fleet: session \d+ of server \Q$role\E is ended/; }

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

# An operator is nobody's to end; who waits gives up as it has been told to.
my $operator = holder('postgres', $control->safe_psql('postgres', 'SELECT current_user'), 'BEGIN; SELECT snowflake_fleet.lock_fleet();');
my ($code, undef, $error) = $control->psql('postgres', 'SET lock_timeout = 2500; SELECT ' . $control->question(call => 'acquire', incarnation => 4),
	extra_params => [ '-U', 'beta', '-v', 'VERBOSITY=verbose' ]);
like($error, qr/ERROR:  55P03: canceling statement due to lock timeout/, 'an operator who holds it is waited for');
is($operator->query_safe('SELECT 1'), '1', 'and goes on');
$operator->quit;

done_testing();
