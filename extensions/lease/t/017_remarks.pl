# Tests which warnings of the lease server prevent the use of a lease, and which are written to the log.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{
	SELECT snowflake_fleet.create_fleet(lease => '6 s', max_lead => '1 s', max_skew => '1 s');
	SELECT snowflake_fleet.add_server('alpha');
	-- Each time in other numbers, as of the transactions that are left.
	CREATE SEQUENCE left_over; GRANT USAGE ON SEQUENCE left_over TO PUBLIC;
	CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN RAISE WARNING 'database "other" must be vacuumed within % transactions', nextval('public.left_over'); RETURN NULL; END $$;
	CREATE TRIGGER warn AFTER UPDATE ON snowflake_fleet.region FOR EACH STATEMENT EXECUTE FUNCTION warn();
	-- Told when a session begins, as a collation version that does not match.
	SET client_min_messages = error; ALTER ROLE alpha SET default_text_search_config = 'missing'});
my $server = Snowflake::Node->create_running('server', conf => "snowflake.leased_regions = '0-3'\nsnowflake.lease = 6s\nsnowflake.max_skew = 1s\nsnowflake.max_wait = 30s\n"
	  . sprintf q{snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=alpha'}, $lease_server->host, $lease_server->port);
sub count_in_log { my ($pattern) = @_; return scalar(() = $server->log_content =~ /$pattern/g); }

is(scalar(my @ids = $server->ids('SELECT snowflake.next_id(1)')), 1, 'an answer with a warning grants a lease');
my $seen = $lease_server->safe_psql('postgres', 'SELECT last_value FROM left_over');
$lease_server->poll_query_until('postgres', "SELECT last_value > $seen + 4 FROM left_over") or die 'no renewals';
ok($server->poll_query_until('postgres', 'SELECT missed_renewals = 0 AND until > clock_timestamp() FROM snowflake.lease'), 'answers with a warning renew the lease');
is(count_in_log(qr/LOG:  snowflake: the lease server sent a notice with its answer: database "other" must be vacuumed within \d+ transactions/), 1,
	'the log has the warning of the answers once');
is(count_in_log(qr/LOG:  snowflake: the lease server sent a notice with its answer: invalid value for parameter "default_text_search_config"/), 1,
	'the log has the warning of the session start once');
is(count_in_log(qr/^WARNING:/m), 0, 'no line of the log begins with WARNING, without the prefix of the log');

# If renewals of a lease fail repeatedly for the same cause, the log must contain the cause only once.
sub missed { return $server->poll_query_until('postgres', "SELECT missed_renewals >= $_[0] FROM snowflake.lease"); }
$lease_server->stop;
missed(6) or die 'not missed';
# The first failed renewal may have another cause than later renewals, because the lease server may still be stopping.
my @causes = $server->log_content =~ /WARNING:  (snowflake: could not connect.*)/g;
my %said;
$said{$_}++ foreach @causes;
cmp_ok(scalar(@causes), '>', 0, 'the log contains the cause') and is(scalar(grep { $_ > 1 } values %said), 0, 'the log contains each cause once');
$lease_server->append_conf('pg_hba.conf', '');
unlink $lease_server->data_dir . '/pg_hba.conf';
append_to_file($lease_server->data_dir . '/pg_hba.conf', "local all alpha reject\nlocal all all trust\n");
my $since = time;
$lease_server->start;
$server->wait_for_log(qr/WARNING:  snowflake: could not connect to the lease server: .*pg_hba.conf rejects/);
cmp_ok(time - $since, '<', 45, 'the log contains another cause within 45 s');
append_to_file($lease_server->data_dir . '/pg_hba.conf.new', "local all all trust\n");
rename $lease_server->data_dir . '/pg_hba.conf.new', $lease_server->data_dir . '/pg_hba.conf';
$lease_server->reload;
$server->wait_for_log(qr/rejects.*LOG:  snowflake: (?:renewed the lease of|leased) region/s);
pass('the log shows the renewal after the failures');

done_testing();
