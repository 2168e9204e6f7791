# Moves a shard between servers that get their regions from a lease server, while clients write to the shard. The source
# of the move has a synchronous standby.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../lease/t/lib", "$FindBin::RealBin/../../../t/lib";
use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file);
use Snowflake::LeaseServer;
use Snowflake::Mover;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep);

# The package Leased has the methods that Snowflake::Mover requires.
package Leased {
	sub node { return $_[0]{ $_[1] }; }
	sub nodes { return @{ $_[0] }{ 'a', 'b' }; }
	sub conninfo { my ($self, $name) = @_; my $node = $self->{$name}; return 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres'; }
	sub control { return $_[0]{control}->safe_psql('postgres', $_[1]); }
}

my $fleet = bless {}, 'Leased';
my $control = $fleet->{control} = Snowflake::LeaseServer->create('control');
$control->start;
$control->safe_psql('postgres', 'CREATE EXTENSION snowflake_routing CASCADE');
$fleet->control("SELECT snowflake_fleet.create_fleet(lease => '10 s', max_lead => '1 s', max_skew => '3 s'); SELECT snowflake_fleet.add_server('alpha'); SELECT snowflake_fleet.add_server('beta')");
foreach my $pair ([ 'a', 'alpha' ], [ 'b', 'beta' ])
{
	my ($name, $role) = @$pair;
	my $conninfo = sprintf q{host=''%s'' port=%s dbname=postgres user=%s}, $control->host, $control->port, $role;
	my $node = $fleet->{$name} = Snowflake::Node->create($name, allows_streaming => 'logical',
		conf => "wal_retrieve_retry_interval = 100ms\nsnowflake.max_wait = 20s\nsnowflake.lease_conninfo = '$conninfo'\nsnowflake.leased_regions = '" . ($role eq 'alpha' ? '0-3' : '4-7') . "'\nsnowflake.lease = 10s\nsnowflake.max_skew = 3s\nsnowflake.max_lead = 0\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake_shards CASCADE; CREATE EXTENSION snowflake_routing CASCADE');
	$fleet->control("SELECT snowflake_fleet.set_server('$name', " . q{'} . $fleet->conninfo($name) . q{')});
}
my ($north, $south) = $fleet->nodes;
$north->backup('base');
my $standby = Snowflake::Node->create_from_backup('standby', $north, 'base', has_streaming => 1, conf => "primary_conninfo = '" . $north->connstr . " application_name=standby'\n");
$standby->start;
$north->reconfigure(synchronous_standby_names => "'standby'");

$north->safe_psql('postgres', "CREATE SCHEMA shard_5; CREATE TABLE shard_5.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), name text NOT NULL); INSERT INTO shard_5.users (name) SELECT 'old_' || n FROM generate_series(1, 3000) n");
$fleet->control("SELECT snowflake_fleet.assign('[5,6]', 'a')");
my %rows = map { split /\|/ } split /\n/, $north->safe_psql('postgres', 'SELECT id, name FROM shard_5.users');
my $mover = Snowflake::Mover->new($fleet);

# Clients mint ids while --check runs, so the newest id is later than the start of --check.
$north->safe_psql('postgres', 'CREATE SCHEMA shard_6; CREATE TABLE shard_6.users (id bigint PRIMARY KEY DEFAULT snowflake.next_id(6), name text NOT NULL)');
my $insert = $north->basedir . '/insert.sql';
append_to_file($insert, "SET synchronous_commit = local;\nINSERT INTO shard_6.users (name) VALUES ('new');\n");
my $busy = IPC::Run::start([ qw(pgbench -n -c 4 -T 600 -f), $insert, '-h', $north->host, '-p', $north->port, 'postgres' ], '<', \undef, '>', '/dev/null', '2>', '/dev/null');
$north->poll_query_until('postgres', 'SELECT count(*) > 100 FROM shard_6.users') or die 'nobody writes';
foreach my $time (1 .. 8)
{
	my $checked = $mover->run('--shard' => 6, '--to' => 'b', '--check');
	is($checked->{status}, 0, "--check number $time reports no id in the future") or diag($checked->{output});
}
$busy->kill_kill;
$north->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'}) or die 'the writers stay';

my @writers = map { $mover->start_writer(5, $_) } 1 .. 2;
sleep 1;
foreach my $to ('b', 'a', 'b')
{
	my $run = $mover->run('--shard' => 5, '--to' => $to);
	is($run->{status}, 0, "the shard is moved to $to") or diag($run->{output});
}
sleep 1;
$mover->stop_writers;
my @results = map { $mover->result_of($_) } @writers;
is(join('', map { $_->{errors} } @results), '', 'every error of the writers ended with a retry');
%rows = (%rows, %{ $_->{rows} }) foreach @results;
my %minted;
$minted{$_}++ foreach map { my $minted = $_->{minted}; map { ($_) x $minted->{$_} } keys %$minted } @results;
is(join(' ', grep { $minted{$_} > 1 } keys %minted), '', 'ids of all servers are unique');
is($mover->differences($south, 5, \%rows), '', 'the server has exactly the committed rows, with their last values');
is($south->safe_psql('postgres', 'SELECT count(DISTINCT snowflake.region_of(id)) FROM shard_5.users'), '2', 'the rows were minted in two leased regions');
is($mover->leftovers, '', 'no publication, slot, subscription, trigger or record of the move remains');
$north->wait_for_catchup('standby');
is($standby->safe_psql('postgres', "SELECT to_regnamespace('shard_5') IS NULL, snowflake_fleet.fenced('shard_5_moved')"), 't|t', 'the standby of the source has the kept schema with its fence');

# Promotes the standby of the source during a move. All rows must be copied again, because the replication slot is lost.
$mover->run('--shard' => 5, '--to' => 'a', '--until' => 'copied')->{status} == 0 or die;
is($mover->run('--shard' => 5, '--to' => 'a')->{status}, 0, 'the shard is moved back');
$mover->run('--shard' => 5, '--to' => 'b', '--until' => 'copied')->{status} == 0 or die;
$north->wait_for_catchup('standby');
$north->stop('immediate');
$standby->promote;
$standby->reconfigure(synchronous_standby_names => "''");
$fleet->{a} = $standby;
$fleet->control("SELECT snowflake_fleet.set_server('a', '" . $fleet->conninfo('a') . "')");
$standby->safe_psql('postgres', "UPDATE shard_5.users SET name = 'since' WHERE name = 'old_9'");
my $over = $mover->run('--shard' => 5, '--to' => 'b');
like($over->{output}, qr/cannot mint|copy starts again/, 'the output shows that the copy starts again, or that the standby cannot mint yet') or diag($over->{output});
is($over->{status}, 0, 'the move from the promoted standby succeeds') or diag($over->{output});
is($south->safe_psql('postgres', "SELECT count(*) FROM shard_5.users WHERE name = 'since'"), '1', 'the target has the row that was written on the promoted standby');

done_testing();
