# Tests each case in which a database cannot mint or a server does not respond. Each tested fault must make an alert
# fire for both exporters, and the alert must end with the fault. This test shortens the times in the alert rules. The
# test 002_rules.pl checks the alert rules without shortened times.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../t/lib";
use IPC::Run;
use Snowflake::Disk;
use Snowflake::Metrics qw(start_postgres_exporter start_sql_exporter start_prometheus stop_program firing adapted eventually
  monitoring_file);
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep time);

# Sets shared_buffers as on a real server. With the small shared_buffers of PostgreSQL's tests, a query of the catalogue
# may have to write a page and wait for the stalled disk. From PostgreSQL 18 on, initdb turns data checksums on by
# default. With data checksums, setting a hint bit writes WAL, so even a query may wait for the stalled disk.
my $node = Snowflake::Node->create('main', allows_streaming => 1, conf => <<~'CONF');
	fsync = on
	shared_buffers = 128MB
	wal_buffers = 16MB
	max_connections = 60
	snowflake.clock_error = 1
	wal_sync_method = fdatasync
	CONF
my $disk = Snowflake::Disk->new($node);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE ROLE monitor LOGIN IN ROLE pg_monitor; SELECT snowflake.next_id(1)');
$node->backup('base');
my $standby = Snowflake::Node->create_from_backup('standby', $node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);

my $exporter = start_postgres_exporter($node);
my $sql_exporter = start_sql_exporter($node);
my ($main, $by_sql) = ($exporter->{target}, $sql_exporter->{target});
my $of_standby = start_postgres_exporter($standby, 'postgres_exporter_standby')->{target};
my $rules = adapted(monitoring_file('snowflake_rules.yml'), qr/for: 1m/, 'for: 3s', qr/for: 30s/, 'for: 1s', qr/\[5m\]/, '[20s]',
	qr/interval: 15s/, 'interval: 500ms', qr/> 60/, '> 10');
my $config = adapted(monitoring_file('prometheus.yml'), qr/'localhost:9187'/, "'$main', '$of_standby'", qr/localhost:9237/, $by_sql,
	qr/scrape_interval: 15s/, 'scrape_interval: 1s', qr/evaluation_interval: 15s/, 'evaluation_interval: 500ms');
my $prometheus = start_prometheus($config, $rules);

sub fires
{
	my ($alert, $fault, @instances) = @_;
	foreach my $instance (@instances)
	{
		ok(eval { eventually($alert, sub { firing($prometheus)->{$alert}{$instance} }) }, "$fault: $alert"
			  . ($instance eq $main ? ', by postgres exporter' : $instance eq $by_sql ? ', by SQL exporter' : ''))
		  or diag($@, explain(firing($prometheus)));
	}
	return;
}

# Waits until no critical alert fires.
sub is_over
{
	my ($fault) = @_;
	ok(eval { eventually('silence', sub { !grep { $_->{severity} eq 'critical' } map { values %$_ } values %{ firing($prometheus) } }) },
		"$fault: over")
	  or diag($@, explain(firing($prometheus)));
	return;
}

sub client
{
	my ($sql) = @_;
	return IPC::Run::start([ 'psql', '-XAtq', '-h', $node->host, '-p', $node->port, '-c', $sql, 'postgres' ], '<', \undef, '>', \my $out, '2>', \my $err);
}

eventually('both exporters', sub {
	my $found = Snowflake::Metrics::ask_prometheus($prometheus, 'query', query => 'count(snowflake_health_minting)')->{result};
	return @$found && $found->[0]{value}[1] == 3;
});
sleep 5;
is_deeply([ keys %{ firing($prometheus) } ], [], 'no alert fires without a fault');

# Causes a fault that health() reports with changing reasons, because the clock is far ahead and far behind in turn.
my $flipper = open(my $flips, '-|') // die "fork: $!";
if ($flipper == 0)
{
	STDOUT->autoflush(1);
	for (my $flip = 0;; ++$flip)
	{
		$node->clock->set($flip % 2 ? -1800 : +7200);
		print "$flip\n";
		sleep 1.5;
	}
}
readline $flips for 1 .. 3;
fires('SnowflakeNotMinting', 'a reason that changes all the time', $main, $by_sql);
kill 'KILL', $flipper;
close $flips;
$node->clock->set(0);
is_over('a reason that changes');

# Causes a fault: a transaction with DROP EXTENSION stays open while other sessions wait.
my $drops = client('BEGIN; DROP EXTENSION snowflake; SELECT pg_sleep(600)');
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock'});
my @waiting = map { client('SELECT snowflake.next_id(1)') } 1 .. 3;
fires($_, 'DROP EXTENSION in an open transaction', $main, $by_sql) foreach qw(SnowflakeMarkNotExtended SnowflakeNotMinting);
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; DROP%'});
$_->finish foreach $drops, @waiting;
is_over('DROP EXTENSION');

# Causes a fault: the disk of the WAL stalls, and later works again. While the disk stalls, calls that mint ids succeed
# until the high-water mark must be extended.
$disk->stall;
my @calls = map { client('SELECT snowflake.next_id(1), pg_sleep(0.05) FROM generate_series(1, 100)') } 1 .. 2;
fires('SnowflakeNotMinting', 'a disk that does not answer', $main, $by_sql);
like(firing($prometheus)->{SnowflakeNotMinting}{$main}{summary}, qr/WAL to be flushed to disk/, 'the alert shows the stalled disk as the reason');
$disk->answer;
fires('SnowflakeMarkFlushStalled', 'a disk that did not answer for seconds', $main, $by_sql);
$_->finish foreach @calls;
is_over('a disk that did not answer');

# Causes a fault: an operator makes the server read-only.
$node->reconfigure(default_transaction_read_only => 'on');
fires('SnowflakeNotMinting', 'a server that is read-only', $main, $by_sql);
$node->append_conf('postgresql.conf', 'default_transaction_read_only = off');
$node->reload;
is_over('a server that was read-only');

# Causes a fault: the server is stopped, while its exporters and its standby continue to run.
$node->stop('immediate');
fires('SnowflakeNoMetrics', 'a server that is gone', $main, $by_sql);
fires('SnowflakeStale', 'what a dead server said last', $by_sql);
fires('SnowflakeOnlyStandbys', 'a primary that is gone beside its standby', '');
$node->start;
is_over('a server that was gone');

# Causes a fault: one of several exporters is stopped.
stop_program($exporter->{pid});
fires('SnowflakeNoMetrics', 'an exporter that is gone', $main);
start_postgres_exporter($node, 'postgres_exporter_again', undef, $main);
is_over('an exporter that was gone');

done_testing();
