# If a name server does not answer, no process of the server waits for it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils ();
use Snowflake::Control;
use Snowflake::Node;
use Snowflake::Resolver;
use Test::More;

my $control = Snowflake::Control->create('control', conf => "listen_addresses = '127.0.0.1'\n");
$control->start;
$control->install;
$control->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('alpha')});
my $server = Snowflake::Node->create('server', conf => "snowflake.leased_regions = '0-3'\nsnowflake.max_wait = 200ms\nsnowflake.lease_conninfo = 'host=fleet.example port="
	  . $control->port . " dbname=postgres user=alpha'\n");
my $resolver = Snowflake::Resolver->new($server);

# Longer than pg_ctl waits.
my @never = (3600, '127.0.0.1');
# The processes of the server's worker, itself among them.
sub processes_of
{
	my ($worker) = @_;
	my @processes = ((grep { -e "/proc/$_" } $worker), Snowflake::Node::children_of($worker));
	return @processes;
}
sub worker { return $server->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake lease'}); }
sub stops
{
	my ($name, $mode) = @_;
	my $worker = worker();
	my $since = time;
	$server->stop($mode);
	cmp_ok(time - $since, '<', 30, "$name: the server stops");
	is(join(' ', processes_of($worker)), '', 'and nothing is left of its worker');
	return;
}
sub looked_up { return $server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'snowflake lease'}) && wait_for_child(worker()); }
sub wait_for_child
{
	my ($worker) = @_;
	my $tries = 10 * $PostgreSQL::Test::Utils::timeout_default;
	while (processes_of($worker) < 2) { return 0 if --$tries == 0; select undef, undef, undef, 0.1; }
	return 1;
}

$resolver->set('fleet.example' => \@never);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
ok(looked_up(), 'the name is looked up, by a process of its own');
$server->refuses('SELECT snowflake.next_id(1)', { sqlstate => '55000', message => 'this server has no region to mint in', hint => 'Check' }, 'meanwhile calls are refused');
$server->reload;
stops('while a name is looked up, fast', 'fast');
$server->start;
ok(looked_up(), 'and again');
stops('immediate', 'immediate');

# The look-up ends after a while with a message, and is repeated.
$server->start;
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE '%the look-up of "fleet.example" did not answer in time' FROM snowflake.lease}), 'it is said')
  or diag $server->safe_psql('postgres', 'SELECT * FROM snowflake.lease');
$resolver->set('fleet.example' => [ 0, '127.0.0.1' ]);
ok($server->poll_query_until('postgres', 'SELECT region IS NOT NULL FROM snowflake.lease'), 'the name server is back: a region is leased');
is(scalar($server->ids('SELECT snowflake.next_id(1)')), 1, 'and minted in');

# With a region, which cannot be returned. The stop waits no longer than its message shows.
$resolver->set('fleet.example' => \@never);
stops('with a region', 'fast');
like($server->log_content, qr/LOG:  snowflake: could not give region \d+ back: could not connect .*look-up of "fleet.example" did not answer in time/, 'and the log says so');

# A name that there is not.
$resolver->set('fleet.example' => [0]);
$server->start;
ok($server->poll_query_until('postgres', q{SELECT last_message LIKE 'could not connect to the lease server: "fleet.example" has no address: %' FROM snowflake.lease}),
	'a name that has no address');
stops('at the end', 'fast');

done_testing();
