# Tests that a server keeps its region if the lease server first refuses and later grants its requests.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '6 s', max_lead => '1 s', max_skew => '1.5 s');
	SELECT snowflake_fleet.add_server('alpha')});
my $server = Snowflake::Node->create('server', conf => "snowflake.leased_regions = '0-3'\nsnowflake.lease = 6s\nsnowflake.max_skew = 1500ms\n"
	  . sprintf q{snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'}, $lease_server->host, $lease_server->port);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my ($first) = $server->ids('SELECT snowflake.next_id(1)');
my $held = $server->safe_psql('postgres', 'SELECT region, incarnation FROM snowflake.lease');

sub said_until { return $server->poll_query_until('postgres', "SELECT last_message ~ '$_[0]' FROM snowflake.lease"); }
sub goes_on
{
	my ($after) = @_;
	ok(said_until('^renewed'), "$after: the lease is renewed");
	is($server->safe_psql('postgres', 'SELECT region, incarnation FROM snowflake.lease'), $held, "$after: the server has the same region and incarnation");
}

# A promoted lease server refuses all requests until confirm_no_data_loss() is called.
$lease_server->safe_psql('postgres', 'UPDATE snowflake_fleet.fleet SET timeline = timeline + 1; SELECT snowflake_fleet.sign_rows()');
ok(said_until('waits for'), 'the server gets the message that the lease server waits for an operator');
$lease_server->safe_psql('postgres', 'SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)');
goes_on('after confirm_no_data_loss()');

$server->clock->set(4);
ok(said_until('ahead'), 'the server gets the message that its clock is ahead');
$server->clock->set(0);
goes_on('when the clock is right again');

my $lost = () = $server->log_content =~ /lost region/g;
is($lost, 0, 'the log shows no lost region');

done_testing();
