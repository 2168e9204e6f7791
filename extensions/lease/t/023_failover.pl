# Tests failovers and restores of a lease server that has standbys. A lease server that may have lost leases must grant
# no lease.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Test::More;

my $primary = Snowflake::LeaseServer->create('primary', allows_streaming => 1, conf => "synchronous_commit = local\nwal_keep_size = 64MB\n");
$primary->start;
$primary->install;
$primary->safe_psql('postgres', "SELECT snowflake_fleet.add_server('alpha'), snowflake_fleet.add_server('beta')");
sub add_standby
{
	my ($name, $source) = @_;
	$source->backup("for_$name");
	my $standby = Snowflake::LeaseServer->new($name);
	$standby->init_from_backup($source, "for_$name", has_streaming => 1);
	$standby->start;
	return $standby;
}
my $standby = add_standby('standby', $primary);
my $told = $standby->ask(call => 'acquire', server => 'alpha', incarnation => 1);
like($told->{error}, qr/ERROR:  25006: the lease server is a standby\nHINT: .*target_session_attrs/, 'a standby of the lease server refuses requests');

# A lease server with a synchronous standby must wait for the standby at any value of synchronous_commit.
$primary->reconfigure(synchronous_standby_names => "'standby'");
$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'})
  or die 'no synchronous standby';
my $first = $primary->ask(call => 'acquire', server => 'alpha', incarnation => 1, length => 600_000);
is($first->{status}, 'granted', 'a request is granted while the standby is connected');
$standby->stop;
my %waiting = (ask => 'SELECT status FROM ' . $primary->question(call => 'acquire', server => 'beta', incarnation => 2), out => '', err => '');
my $run = IPC::Run::start([ 'psql', '-XAtq', '-U', 'beta', '-d', $primary->connstr('postgres'), '-c', $waiting{ask} ],
	'<', \undef, '>', \$waiting{out}, '2>', \$waiting{err});
ok($primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}),
	'without the standby the commit waits, although synchronous_commit is local');
is($waiting{out}, '', 'without the standby no answer is sent');
$standby->start;
$run->finish;
like($waiting{out}, qr/granted/, 'the answer is sent when the standby is back');

# A promoted lease server grants no lease until the operator has called confirm_no_data_loss().
$primary->wait_for_catchup($standby, 'replay');
$primary->stop('immediate');
$standby->promote;
my %known = (server => 'alpha', incarnation => 1, $primary->known($first), acked => 1);
foreach my $call ('renew', 'acquire', 'give_back')
{
	$told = $standby->ask(call => $call, %known, highest => 5, grant => 1);
	is($told->{status}, 'halted', "after a promotion $call gets the status halted");
	like($told->{detail}, qr/timeline 2 of .*Before, it had timeline 1/, 'the answer shows the change of the timeline') if $call eq 'renew';
}
$standby->safe_psql('postgres', 'SELECT snowflake_fleet.confirm_no_data_loss(old_is_stopped => true)');
$told = $standby->ask(call => 'renew', %known, length => 600_000);
is($told->{status}, 'granted', 'after confirm_no_data_loss() the lease is renewed');
is($told->{grant_number}, $first->{grant_number}, 'after confirm_no_data_loss() the grant has the same number');
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$standby->reload;

# A lease that was revoked before a failover must stay revoked after confirm_data_loss().
$standby->safe_psql('postgres', q{SELECT snowflake_fleet.revoke_lease(0); UPDATE snowflake_fleet.fleet SET timeline = 9;
	SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true)});
my $over = $standby->ask(call => 'renew', %known, until_ms => $told->{until_ms});
is($over->{status}, 'lost', 'after confirm_data_loss() a revoked lease is still lost');

# Waits for the next second, because PostgreSQL reports the change time of files in seconds.
sub copies_differ
{
	my $written = (stat $standby->data_dir . '/PG_VERSION')[10];
	select undef, undef, undef, 0.05 while time <= $written;
	return;
}
$standby->stop;
copies_differ();
my $copy = $standby->basedir . '/older';
system_or_bail('cp', '-a', $standby->data_dir, $copy);
$standby->start;
my $later = $standby->ask(call => 'acquire', server => 'alpha', incarnation => 5);
is($later->{status}, 'full', 'one more request is answered after the copy was made');
$later = $standby->ask(call => 'acquire', server => 'alpha', incarnation => 5);
$standby->stop;
system_or_bail('rm', '-rf', $standby->data_dir);
system_or_bail('mv', $copy, $standby->data_dir);
$standby->start;
$told = $standby->ask(call => 'acquire', server => 'beta', incarnation => 6);
is($told->{status}, 'halted', 'after older files were restored, requests get the status halted');
like($told->{detail}, qr/files of the data directory were copied, or chmod, chown, a hard link or a new label changed their metadata/, 'the answer lists what can have changed the files');
# Simulates a restored snapshot of a disk, in which files have their old change times. The lease server detects a
# restored snapshot when a server with a newer lease sends a request.
$standby->safe_psql('postgres', 'UPDATE snowflake_fleet.fleet SET directory = (SELECT directory FROM snowflake_fleet.whereabouts()); SELECT snowflake_fleet.sign_rows()');
is($standby->ask(call => 'acquire', server => 'alpha', incarnation => 5, $primary->known($later))->{status}, 'halted', 'a restored snapshot is detected by the request of a server with a newer answer');
is($standby->ask(call => 'acquire', server => 'beta', incarnation => 6)->{status}, 'halted', 'after the snapshot was detected, requests of other servers get the status halted');
like($standby->safe_psql('postgres', 'SELECT granting, reason FROM snowflake_fleet.health'), qr/^f\|leases were lost: server alpha has a newer lease than this database/, 'health names the server with the newer lease');
$standby->safe_psql('postgres', 'SELECT snowflake_fleet.confirm_data_loss(clock_timestamp(), old_is_stopped => true)');
is($standby->ask(call => 'acquire', server => 'beta', incarnation => 6)->{status}, 'full', 'after confirm_data_loss() requests are decided again');

# Starts a copy of the lease server from a base backup without standby.signal.
copies_differ();
$standby->backup('started');
my $started = Snowflake::LeaseServer->new('started');
$started->init_from_backup($standby, 'started');
$started->start;
is($started->ask(call => 'acquire', server => 'beta', incarnation => 11)->{status}, 'halted', 'requests to a started base backup get the status halted');
is($standby->ask(call => 'acquire', server => 'beta', incarnation => 11)->{status}, 'full', 'the original of the base backup still decides requests');

# While a lease has not ended, DROP EXTENSION and pg_restore --clean must fail on the lease server.
system_or_bail('pg_dump', '-Fc', '-f', $standby->basedir . '/fleet.dump', $standby->connstr('postgres'));
command_fails_like([ 'pg_restore', '--clean', '--if-exists', '--exit-on-error', '-d', $standby->connstr('postgres'), $standby->basedir . '/fleet.dump' ],
	qr/the fleet has leases that have not ended/, 'pg_restore --clean fails while a lease lasts');
command_fails_like([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $standby->connstr('postgres'), '-c', $_ ], qr/the fleet has leases that have not ended/, "$_ fails while a lease lasts")
  foreach 'DROP EXTENSION snowflake_fleet', 'DROP SCHEMA snowflake_fleet CASCADE';

done_testing();
