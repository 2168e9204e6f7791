# Runs Prometheus with both exporters and the alert rules. While the servers have no fault, no alert may fire. Each
# fault must cause its alert. This test shortens each minute in the alert rules to a second. The test 002_rules.pl
# checks the alert rules without shortened times.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../t/lib", "$FindBin::RealBin/../../extensions/lease/t/lib";
use IPC::Run;
use JSON::PP;
use Snowflake::Metrics qw(start_postgres_exporter start_sql_exporter start_prometheus stop_program ask_prometheus firing adapted
  eventually monitoring_file);
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep);

# In this layout a shard has 2,000 ids per second, so one session can reach the maximum rate of a shard.
my $node = Snowflake::Node->create_running('main', conf => <<~'CONF');
	fsync = on
	snowflake.layout = '41/14+8/1'
	snowflake.owned_shards = '0-199'
	snowflake.clock_error = 1
	CONF
# Makes a server with a wrong clock, on 2059-11-04, ten months before its layout ends.
my $old = Snowflake::Node->create('old', conf => "snowflake.clock_error = 1\n");
$old->clock->set(2_814_000_000 - time);
$old->start;
$old->safe_psql('postgres', 'CREATE EXTENSION snowflake');
# Makes a server that leases its region.
my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('leased')});
my $leased = Snowflake::Node->create_running('leased', conf => sprintf(<<~'CONF', $lease_server->host, $lease_server->port));
	snowflake.clock_error = 1
	snowflake.leased_regions = '0,1'
	snowflake.lease = 30s
	snowflake.max_skew = 9s
	snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=leased'
	CONF
$_->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor') foreach $node, $old, $leased;
$leased->safe_psql('postgres', 'SELECT snowflake.next_id(1)');
$node->safe_psql('postgres', 'SELECT snowflake.next_id(1)');

my @exporters = (start_postgres_exporter($node), start_postgres_exporter($old, 'postgres_exporter_old'),
	start_postgres_exporter($leased, 'postgres_exporter_leased'), start_sql_exporter($node));
my ($main, $ending, $leasing, $by_sql) = map { $_->{target} } @exporters;
my $rules = adapted(monitoring_file('snowflake_rules.yml'), qr/for: \d+[ms]/, 'for: 1s', qr/\[\d+m\]/, '[8s]',
	qr/interval: 15s/, 'interval: 500ms', qr/> 60/, '> 1000');
my $config = adapted(monitoring_file('prometheus.yml'), qr/'localhost:9187'/, "'$main', '$ending', '$leasing'", qr/localhost:9237/, $by_sql, qr/scrape_interval: 15s/, 'scrape_interval: 1s', qr/evaluation_interval: 15s/, 'evaluation_interval: 500ms');
my $prometheus = start_prometheus($config, $rules);

# Waits until an alert fires for both exporters with the expected labels.
sub fires
{
	my ($alert, $fault, %labels) = @_;
	foreach my $instance ($main, $by_sql)
	{
		my $is = eval { eventually("$alert of $instance", sub {
			my $found = firing($prometheus)->{$alert}{$instance};
			return $found && !grep { ($found->{$_} // '') !~ $labels{$_} } keys %labels;
		}) };
		ok($is, "$fault: $alert, by " . ($instance eq $main ? 'postgres exporter' : 'SQL exporter')) or diag($@, explain(firing($prometheus)));
	}
	return;
}

sub query { return ask_prometheus($prometheus, 'query', query => $_[0])->{result}; }

# Checks that no alert fires before the first fault, except the alert for the layout that ends soon.
my $eleven = eventually('the alert for the layout', sub { my $is = firing($prometheus); $is->{SnowflakeLayoutEnds} && $is });
is_deeply([ keys %{ $eleven->{SnowflakeLayoutEnds} } ], [$ending], 'a layout with ten months to go: SnowflakeLayoutEnds');
eventually('the SQL exporter', sub { @{ query(qq(snowflake_health_minting{instance="$by_sql"})) } });
sleep 3;
# Repeats the check for alerts, because on a busy machine Prometheus may fail to read the metrics in time.
ok(eval { eventually('these and nothing else', sub { join(' ', sort keys %{ firing($prometheus) }) eq 'SnowflakeClockOffset SnowflakeLayoutEnds SnowflakeStale' }) },
	'nothing else fires while all is well') or diag(explain(firing($prometheus)));
foreach my $alert (qw(SnowflakeStale SnowflakeClockOffset))
{
	ok(eval { eventually($alert, sub { join(' ', keys %{ firing($prometheus)->{$alert} // {} }) eq $ending }) }, "a clock that is off by decades: $alert");
}

# Checks that both exporters use the same names for the same metrics.
sub names_of
{
	return [ sort map { $_->{metric}{__name__} } @{ query(qq(count by (__name__) ({__name__=~"snowflake_.*",instance="$_[0]"}))) } ];
}
ok(eval { eventually('the metrics', sub { @{ names_of($main) } > 25 }) }, 'Prometheus has the metrics');
is_deeply(names_of($by_sql), names_of($main), "Prometheus has the metrics of both exporters under the same names");

# Causes four faults at once: a shard at its maximum rate, calls for a shard of another server, a clock error of 0.2 s,
# and slow flushes of WAL.
my $batches = $node->basedir . '/batches.sql';
PostgreSQL::Test::Utils::append_to_file($batches, "SELECT snowflake.next_ids(1, 40);\n");
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 1, '-T', 600, '-f', $batches, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', '/dev/null', '2>', '/dev/null');
$node->reconfigure(
	'snowflake.clock_error' => "'200ms'", wal_writer_delay => "'10s'", commit_delay => 100000, commit_siblings => 0);
$node->error_of('SELECT snowflake.next_id(200)');
fires('SnowflakeClockUnsynchronized', 'a clock that may be wrong by 200 ms', severity => qr/warning/);
fires('SnowflakeNearCapacity', 'a shard that is asked for more than it has', shard => qr/^1$/);
$node->error_of('SELECT snowflake.next_id(200)');
fires('SnowflakeRefusals', 'a shard of another server', cause => qr/not_owned/);
fires('SnowflakeMarkFlushSlow', 'flushes of 100 ms');

# Checks that every query of the dashboard returns rows after the faults, which give each metric a value.
my $dashboard = decode_json(monitoring_file('grafana_dashboard.json'));
my @silent;
foreach my $panel (@{ $dashboard->{panels} })
{
	foreach my $target (@{ $panel->{targets} })
	{
		my $expression = $target->{expr} =~ s/\$(?:job|instance|database)\b/.*/gr =~ s/\$__rate_interval/8s/gr;
		$node->error_of('SELECT snowflake.next_id(200)') if $expression =~ /refusals/;
		push @silent, "$panel->{title}: $expression"
		  unless eval { eventually($expression, sub { @{ query($expression) } }) };
	}
}
is_deeply(\@silent, [], 'every query of the dashboard returns rows');

# Causes a fault: a session alters the sequence with the high-water mark and does not commit.
my $session = IPC::Run::start([ 'psql', '-XAtq', '-h', $node->host, '-p', $node->port, '-c',
		'BEGIN; ALTER SEQUENCE snowflake.high_water OWNED BY NONE; SELECT pg_sleep(600)', 'postgres' ],
	'>', '/dev/null', '2>', '/dev/null');
fires('SnowflakeMarkNotExtended', 'a transaction that holds the mark');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%OWNED BY NONE%' AND pid <> pg_backend_pid()");
$session->finish;
$load->kill_kill;

# Causes a fault: the lease server is stopped, and later started again.
$lease_server->stop('immediate');
ok(eval { eventually('SnowflakeLeaseNotRenewed', sub { firing($prometheus)->{SnowflakeLeaseNotRenewed}{$leasing} }) }, 'no lease server: SnowflakeLeaseNotRenewed')
  or diag($@);
ok(eval { eventually('SnowflakeLeaseShort', sub { firing($prometheus)->{SnowflakeLeaseShort}{$leasing} }) }, 'no lease server: SnowflakeLeaseShort')
  or diag($@, explain(firing($prometheus)));
$lease_server->start;

# Causes a fault: the data files look like a clone of another database. The test changes the part of the stored origin
# fingerprint that describes the data files. The origin fingerprint shows where the database last minted.
$node->safe_psql('postgres', q{SELECT setval('snowflake.origin_fingerprint', last_value # 1) FROM snowflake.origin_fingerprint});
fires('SnowflakeCloned', 'a database on a clone of its files', severity => qr/critical/);
$node->safe_psql('postgres', 'SELECT snowflake.accept_clone()');

# Causes a fault: a column that must mint ids (an adopted column) has the default of the application instead.
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE photos (id bigserial PRIMARY KEY);
	INSERT INTO snowflake.adopted VALUES ('public.photos', 'id');
	SQL
fires('SnowflakeAdoptedChanged', 'an adopted column with another default', severity => qr/critical/);
$node->safe_psql('postgres', 'ALTER TABLE photos ALTER COLUMN id SET DEFAULT snowflake.next_id(1)');

# Causes a fault: the clock steps ten minutes ahead, which is within "snowflake.max_forward_jump", and then back. After
# the step back of the clock, new ids are ahead of the clock.
$node->clock->step(+600);
fires($_, 'a clock ten minutes ahead') foreach qw(SnowflakeClockDrift SnowflakeClockOffset);
$node->safe_psql('postgres', 'SELECT snowflake.next_id(1)');
$node->clock->step(-600);
fires('SnowflakeClockStepped', 'a clock that went back');
fires('SnowflakeNotMinting', 'ids ahead of the clock by ten minutes', summary => qr/mints no ids: clock behind/, severity => qr/critical/);

# Repairs all faults. The clock of the database is still ahead of the true time, but the database has accepted the
# clock.
$node->clock->step(+600);
$node->reconfigure('snowflake.clock_error' => "'1ms'", commit_delay => 0, wal_writer_delay => "'200ms'");
$node->safe_psql('postgres', 'SELECT snowflake.accept_clock()');
ok(eval { eventually('silence', sub { join(' ', sort keys %{ firing($prometheus) }) eq 'SnowflakeClockOffset SnowflakeLayoutEnds SnowflakeStale' }) }, 'after the repair only the expected alerts fire')
  or diag(explain(firing($prometheus)));
is($node->safe_psql('postgres', 'SELECT minting FROM snowflake.health'), 't', 'after the repair the database mints');

# Stops both exporters, so that Prometheus receives no metrics.
stop_program($_->{pid}) foreach @exporters;
ok(eval { eventually('the alert', sub { firing($prometheus)->{SnowflakeNoMetrics} }) }, 'the exporters are gone: SnowflakeNoMetrics');

done_testing();
