# Compares the metrics of both exporters (for Prometheus) with the results of SQL queries. Checks that the alert rules
# and the dashboard use only existing metrics.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../t/lib", "$FindBin::RealBin/../../extensions/lease/t/lib";
use JSON::PP;
use Snowflake::Metrics qw(start_postgres_exporter start_sql_exporter start_lease_server_sql_exporter scrape with_names_of_rules eventually monitoring_file
  fetch);
use Snowflake::LeaseServer;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', conf => "snowflake.owned_shards = '0-9'\nsnowflake.clock_error = 2\n");
$node->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor');

# Causes values for the metrics: minted ids, batches, refused calls, and a step back of the clock.
$node->safe_psql('postgres', "SELECT snowflake.next_id($_) FROM generate_series(1, 100 * $_)") foreach 1, 3, 7;
$node->safe_psql('postgres', 'SELECT snowflake.next_ids(3, 5000) FROM generate_series(1, 4)');
$node->error_of('SELECT snowflake.next_id(200)') foreach 1 .. 3;
$node->clock->step(-40);
$node->error_of('SET snowflake.max_wait = 0; SELECT snowflake.next_id(1)') foreach 1, 2;
$node->clock->step(+41);
$node->safe_psql('postgres', 'SELECT snowflake.next_id(1)');

$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(1));
	INSERT INTO snowflake.adopted VALUES ('public.photos', 'id'), ('public.absent', 'id');
	SQL

my $postgres_exporter = start_postgres_exporter($node);
my $sql_exporter = start_sql_exporter($node);

# Reads the values of the metrics with SQL queries that the exporters do not use. Returns a hash with the metrics of one
# database, by name and labels.
sub of_sql
{
	my ($query) = @_;
	my %samples;
	foreach (split /\n/, $node->safe_psql('postgres', $query))
	{
		my ($name, $labels, $value) = split /\|/;
		$samples{$name}{$labels} = $value;
	}
	return \%samples;
}

my %exact = (
	'ids, batches and waits by shard' => <<'SQL',
SELECT 'snowflake_shard_' || v.name, format('database="postgres",shard="%s"', shard), v.value
  FROM snowflake.shard_stats,
       LATERAL (VALUES ('ids_total', ids), ('batches_total', batches), ('waits_total', waits),
                       ('borrowed_ticks_total', borrowed_ticks), ('capacity_ids_per_second', capacity)) v (name, value)
SQL
	'refusals by cause' => <<'SQL',
SELECT 'snowflake_refusals_total', format('cause="%s",database="postgres"', cause), refusals FROM snowflake.refusals
SQL
	'the mark' => <<'SQL',
SELECT 'snowflake_mark_' || v.name, 'database="postgres"', v.value
  FROM snowflake.database_stats,
       LATERAL (VALUES ('extensions_total', mark_extensions), ('flushes_total', mark_flushes)) v (name, value)
UNION ALL SELECT 'snowflake_extension_lock_waiters', 'database="postgres"', 0
SQL
	'the clock' => <<'SQL');
SELECT 'snowflake_clock_' || v.name, 'database="postgres"', v.value
  FROM snowflake.health, snowflake.clock_history,
       LATERAL (VALUES ('backward_steps_total', backward_steps), ('synchronized', synchronized::int), ('counter_used', counter_used::int),
                       ('forward_steps_total', forward_steps), ('max_forward_jump_seconds', 3600)) v (name, value)
SQL

my %exporter = (
	'postgres exporter' => sub { scrape($postgres_exporter->{url}, qr/^snowflake_/) },
	'SQL exporter' => sub { with_names_of_rules(scrape($sql_exporter->{url}, qr/^sql_snowflake_/)) });

foreach my $name (sort keys %exporter)
{
	# Waits for new values of the metrics, because the SQL exporter queries the database only twice a second.
	sleep 2;
	my $scraped = $exporter{$name}->();
	foreach my $what (sort keys %exact)
	{
		my $expected = of_sql($exact{$what});
		is_deeply({ map { $_ => rounded($scraped->{$_}) } keys %$expected }, $expected, "$name: $what");
	}
	my $database = 'database="postgres"';
	is($scraped->{snowflake_shard_ids_total}{"$database,shard=\"7\""}, 700, "$name: the metric shows 700 ids of shard 7");
	is($scraped->{snowflake_refusals_total}{qq{cause="not_owned",$database}}, 3, "$name: the metric shows 3 refused calls for a shard that is not owned");
	is_deeply([ values %{ $scraped->{snowflake_health_minting} } ], [1], "$name: the metric health_minting is 1");
	is_deeply([ values %{ $scraped->{snowflake_health_cloned} } ], [0], "$name: the metric health_cloned is 0");
	is_deeply([ values %{ $scraped->{snowflake_health_same_ids} } ], [0], "$name: the metric health_same_ids is 0");
	is_deeply($scraped->{snowflake_clock_max_lead_seconds}, { $database => '0.1' }, "$name: the metric of max_lead is in seconds");
	cmp_ok(abs($scraped->{snowflake_clock_drift_seconds}{$database} - 1), '<', 0.1, "$name: the metric shows a drift of a second");
	cmp_ok(abs($scraped->{snowflake_clock_largest_backward_step_seconds}{$database} - 40), '<', 0.5, "$name: the metric shows a step back of 40 seconds");
	cmp_ok($scraped->{snowflake_clock_maximum_error_seconds}{$database}, '==', 0.002, "$name: the metric of the clock's maximum error is in seconds");
	is_deeply([ values %{ $scraped->{snowflake_adopted_problems} } ], [1], "$name: the metric shows one adopted column that does not mint");
	my $ends = $node->safe_psql('postgres', 'SELECT extract(epoch FROM ends_at - clock_timestamp()) FROM snowflake.layout');
	cmp_ok(abs($scraped->{snowflake_layout_remaining_seconds}{$database} - $ends), '<', 60, "$name: the metric shows the remaining time of the layout");
}

my %names = map { $_ => [ sort keys %{ $exporter{$_}->() } ] } keys %exporter;
is_deeply($names{'SQL exporter'}, $names{'postgres exporter'}, 'both exporters have the same metrics');

# Compares the metrics of a server that leases its region, and of a server that waits for its first lease, with SQL
# queries.
my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', q{SELECT snowflake_fleet.add_server('leased')});
my $leased = Snowflake::Node->create_running('leased', conf => sprintf(<<~'CONF', $lease_server->host, $lease_server->port));
	snowflake.leased_regions = '0,1'
	snowflake.lease_conninfo = 'host=''%s'' port=%s dbname=postgres user=leased'
	CONF
$leased->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor; SELECT snowflake.next_id(1)');
my ($of_leased, $by_sql) = (start_postgres_exporter($leased, 'postgres_exporter_leased'), start_sql_exporter($leased, 'postgres'));
my %of_leased = (
	'postgres exporter' => eventually('the lease', sub { my $is = scrape($of_leased->{url}, qr/^snowflake_lease_/); %$is && $is }),
	'SQL exporter' => eventually('the lease', sub { my $is = with_names_of_rules(scrape($by_sql->{url}, qr/^sql_snowflake_lease/)); %$is && $is }));
foreach my $name (sort keys %of_leased)
{
	my ($left, $for) = map { $_->{'database="postgres"'} } @{ $of_leased{$name} }{qw(snowflake_lease_remaining_seconds snowflake_lease_duration_seconds)};
	ok($left > 1 && $left < $for + 1 && $for >= 10 && $for < 600, "$name: the metrics show the lease, $left s of $for s");
	push @{ $names{$name} }, sort keys %{ $of_leased{$name} };
}
is_deeply($names{'SQL exporter'}, $names{'postgres exporter'}, 'both exporters have the same metrics of leases');

# Compares the metrics of a lease server, which has leased one of its two regions, with SQL queries.
$lease_server->safe_psql('postgres', q{CREATE ROLE monitor LOGIN IN ROLE pg_monitor; SELECT snowflake_fleet.add_server('absent')});
my %of_lease_server = (
	'postgres exporter' => scrape(start_postgres_exporter($lease_server, 'postgres_exporter_lease_server', 'lease_server_postgres_exporter.yaml')->{url}, qr/^snowflake_/),
	'SQL exporter' => with_names_of_rules(scrape(start_lease_server_sql_exporter($lease_server), qr/^sql_snowflake_fleet/)));
foreach my $name (sort keys %of_lease_server)
{
	my %of = map { s/^snowflake_fleet_//r => $of_lease_server{$name}{$_}{'database="postgres",reason=""'} } keys %{ $of_lease_server{$name} };
	is_deeply(rounded(\%of), { granting => 1, trouble_seconds => 0, regions => 2, free_regions => 1, held_regions => 1, servers => 2, refused_servers => 0 },
		"$name: the lease server");
	push @{ $names{$name} }, sort keys %{ $of_lease_server{$name} };
}

# Converts values to numbers, because the exporters write the same number in different ways: 5, 5.0 or 1e+06.
sub rounded { return { map { $_ => 0 + $_[0]{$_} } keys %{ $_[0] } }; }

# Checks that every metric in the alert rules and in the dashboard exists.

my %exists = map { $_ => 1 } @{ $names{'postgres exporter'} };
sub unknown { return grep { !$exists{$_} } map { /\b(snowflake_\w+)/g } @_; }

my $dashboard = decode_json(monitoring_file('grafana_dashboard.json'));
my @expressions = map { $_->{expr} } map { @{ $_->{targets} } } @{ $dashboard->{panels} };
cmp_ok(scalar @expressions, '>', 20, 'the dashboard has queries');
is_deeply([ unknown(@expressions) ], [], 'every query of the dashboard names metrics that exist');
is_deeply([ unknown(map { $_->{definition} // () } @{ $dashboard->{templating}{list} }) ], [], 'every variable of the dashboard names metrics that exist');
my @rules = monitoring_file('snowflake_rules.yml') =~ /^ +expr: (.*?)(?=^ +(?:for|labels):)/msg;
is_deeply([ unknown(@rules) ], [], 'every rule names metrics that exist');
my %used = map { $_ => 1 } map { /\b(snowflake_\w+)/g } @expressions, @rules;
is_deeply([ grep { !/_(?:batches_total|borrowed_ticks_total|shard_waits_total|largest_\w+|longest_\w+|used_ratio|going_on|timestamp_seconds|commit_waits_total|fleet_(?!granting|refused)\w+)$/ && !$used{$_} } sort keys %exists ],
	[ 'snowflake_clock_counter_used', 'snowflake_clock_max_forward_jump_seconds' ], 'only these metrics are used by no rule and no query');

# Checks the type of metrics: if a metric's name ends in _total, the type must be "counter".
my $text = fetch("$postgres_exporter->{url}/metrics");
is_deeply([ sort $text =~ /^# TYPE (snowflake_\w+_total) (?!counter)/mg ], [], 'every metric ..._total has the type counter');

# Checks that one SQL exporter can query two databases.
$node->create_database('other');
$node->safe_psql('other', 'SELECT snowflake.next_id(9) FROM generate_series(1, 5)');
my $both = start_sql_exporter($node, 'postgres', 'other');
my $of_both = eventually('ids of both databases', sub {
	my $ids = with_names_of_rules(scrape($both->{url}, qr/^sql_snowflake_/))->{snowflake_shard_ids_total};
	return $ids->{'database="other",shard="9"'} && $ids->{'database="postgres",shard="7"'} && $ids;
});
is($of_both->{'database="other",shard="9"'}, 5, 'the SQL exporter has the metrics of a second database');

# Checks that the metrics of a database that cannot mint show the reason.
$node->clock->step(+7200);
like(join(' ', keys %{ $exporter{'postgres exporter'}->()->{snowflake_health_minting} }),
	qr/reason="clock jumped ahead"/, 'the reason is a label of health_minting');
is_deeply([ values %{ $exporter{'postgres exporter'}->()->{snowflake_health_minting} } ], [0], 'health_minting is 0 in a database that cannot mint');

done_testing();
