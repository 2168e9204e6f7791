# Tests when a server accepts a step of its clock without a call of accept_clock() by an operator. If the clocks of the
# server and of the lease server agree after the step, accept_clock() is not needed.

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
my $server = Snowflake::Node->create('server',
	conf => "snowflake.leased_regions = '0-3'\nsnowflake.lease = 6s\nsnowflake.max_skew = 1500ms\nsnowflake.max_forward_jump = 60s\n"
	  . sprintf q{snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'}, $lease_server->host, $lease_server->port);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my ($before) = $server->ids('SELECT snowflake.next_id(1)');

# Steps the clock while a renewal of the lease waits for the lease server. The answer to a renewal that was sent before
# the clock step must not make the server accept the step.
my $operator = $lease_server->background_psql('postgres');
$operator->query_safe('BEGIN; LOCK TABLE snowflake_fleet.fleet');
$lease_server->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'alpha' AND wait_event_type = 'Lock')})
  or die 'no renewal waits';
$server->clock->set(7200);
$operator->query_safe('COMMIT');
$operator->quit;
ok($server->poll_query_until('postgres', q{SELECT last_message ~ 'ahead' FROM snowflake.lease}), 'the view lease shows that the server\'s clock is ahead');
is($server->safe_psql('postgres', 'SELECT minting FROM snowflake.health()'), 'f', 'health() shows that the database does not mint while only its clock is ahead');
unlike($server->log_content, qr/snowflake accepts that the clock/, 'the log shows no accepted clock while only the server\'s clock is ahead');

$lease_server->clock->set(7200);
ok($server->poll_query_until('postgres', 'SELECT minting FROM snowflake.health()'), 'health() shows that the database mints after both clocks were stepped');
my ($after) = $server->ids('SELECT snowflake.next_id(1)');
cmp_ok($after, '>', $before, 'ids ascend over the step of both clocks');
like($server->log_content, qr/snowflake accepts that the clock moved by 7[12]\d{5} ms/, 'the log shows that the step was accepted');

done_testing();
