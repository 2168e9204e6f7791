# A control database that is restored from a dump of its first day, when no server had asked: it knows neither layout
# nor regions, and servers mint in them.

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
$control->safe_psql('postgres', "SELECT snowflake_fleet.enroll(s) FROM unnest(ARRAY['alpha', 'beta', 'gamma']) AS s");
my $dump = $control->basedir . '/fleet.dump';
system_or_bail('pg_dump', '-Fc', '-f', $dump, $control->connstr('postgres'));

my %length = (length => 3_600_000);
my $alpha = $control->ask(call => 'acquire', server => 'alpha', incarnation => 1, %length);
my $beta = $control->ask(call => 'acquire', server => 'beta', incarnation => 2, %length);
is("$alpha->{region} $beta->{region}", '0 1', 'two servers hold two regions');

foreach my $first ('acquire', 'renew')
{
	my $database = "restored_$first";
	$control->safe_psql('postgres', "CREATE DATABASE $database");
	system_or_bail('pg_restore', '--exit-on-error', '-d', $control->connstr($database), $dump);
	$control->safe_psql($database, 'SELECT snowflake_fleet.enroll(server) FROM snowflake_fleet.servers');
	is($control->safe_psql($database, q{SELECT snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true) > clock_timestamp() + '1 h'}),
		't', "$database: says when new leases begin");
	my $new = sub { return $control->ask(call => 'acquire', server => 'gamma', incarnation => 3, database => $database, %length); };
	my $told = $first eq 'acquire' ? $new->() : undef;
	my @renewal = (call => 'renew', server => 'alpha', incarnation => 1, acked => 1, nonce => 2, $control->known($alpha), database => $database, %length);
	my $over = $control->ask(@renewal);
	is($over->{status}, 'term_over', "$database: who holds a lease hears of the new term,");
	my $goes_on = $control->ask(@renewal, newest => $over->{number}, map { $_ => $over->{$_} } qw(term proof));
	is("$goes_on->{status} $goes_on->{region} $goes_on->{floor_ms}", "granted 0 $alpha->{floor_ms}", "$database: and goes on with it");
	$told //= $new->();
	is($told->{status}, 'full', "$database: nobody is granted what another may have");
	cmp_ok($told->{until_ms}, '>', $beta->{until_ms}, "$database: before that has ended");
}

done_testing();
