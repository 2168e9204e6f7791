# Tests that a server that preloads the library does not start with an invalid setting. The error of a failed server
# start must contain the reason. The tests in test/core and sql/settings.sql check invalid settings without a server
# start.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => "include = 'tested.conf'\n");
$node->set_preload(1);
my $tested = $node->data_dir . '/tested.conf';

sub configure
{
	my ($settings) = @_;
	open my $file, '>', $tested or die "$tested: $!";
	print $file "$settings\n";
	close $file;
	return;
}

# Starts the server with the option -C, with which PostgreSQL loads the libraries, prints a setting and ends.
sub start_with
{
	my ($settings) = @_;
	configure($settings);
	return run_command([ 'postgres', '-C', 'shared_memory_size', '-D', $node->data_dir ]);
}

sub stops_the_start
{
	my ($settings, $pattern) = @_;
	my ($size, $error) = start_with($settings);
	is($size, '', "the server does not start with $settings");
	like($error, $pattern, "the message explains what is invalid in $settings");
	return;
}

like((start_with("snowflake.max_lead = '30s'"))[0], qr/^\d+$/, 'the server starts with a valid setting');

# If an extension's setting is invalid, PostgreSQL itself only writes a warning and uses the default.
my $range = qr/-?\d+(?: \w+)? is outside the valid range for parameter/;
my %wrong = (
	layout => [ '41/13/11', qr/invalid value for .*\n.*DETAIL:  The bits add up to more than 64\./ ],
	tick => [ 7, qr/invalid value for .*\n.*DETAIL:  A tick is 1, 10, 100 or 1000 milliseconds\./ ],
	epoch => [ 'today', qr/invalid value for .*\n.*DETAIL:  An epoch is an ISO date in whole milliseconds/ ],
	owned_shards => [ '5-2', qr/invalid value for .*\n.*DETAIL:  In a range, the last shard is before the first\./ ],
	region => [ '-2', qr/invalid value for .*\n.*DETAIL:  A region is a number from 0 to 16777215, or -1 if it is leased\./ ],
	sequence_spread => [ 8388608, $range ],
	max_forward_jump => [ 0, $range ],
	max_lead => [ '86401s', $range ],
	reserve => [ '1ms', $range ],
	default_shard => [ 16777216, $range ],
	max_wait => [ '3 apples', qr/invalid value for/ ],
	commit_wait => [ 'perhaps', qr/parameter .* requires a Boolean value/ ],
	clock_error => [ '2min', $range ],
	max_clock_error => [ -1, $range ]);
foreach my $name (sort keys %wrong)
{
	my ($value, $why) = @{ $wrong{$name} };
	stops_the_start("snowflake.$name = '$value'", qr/FATAL:  (?=.*"snowflake\.$name")$why/);
}

stops_the_start("snowflake.layout = 'js53'\nsnowflake.tick = 1",
	qr/FATAL:  invalid id layout: "snowflake.layout" js53, "snowflake.tick" 1 ms, .*\n.*DETAIL:  The tick of a preset cannot be changed\.\n.*HINT:/);
stops_the_start("snowflake.tick = '100us'",
	qr/FATAL:  invalid value for parameter "snowflake.tick": 0\.1\n.*DETAIL:  A tick is 1, 10, 100 or 1000 milliseconds/);

# If a misspelt "snowflake.owned_shards" were accepted, the server would own all shards. Names of settings may contain
# upper-case letters.
stops_the_start("Snowflake.owned_shard = '0-5'",
	qr/FATAL:  unrecognized configuration parameter "Snowflake.owned_shard"\n.*DETAIL:  .*\n.*HINT:  /);
stops_the_start("snowflake.owned_shard = '1-5'",
	qr/FATAL:  unrecognized configuration parameter "snowflake.owned_shard"\n.*DETAIL:  .*\n.*HINT:  /);
stops_the_start('snowflake.node = 1',
	qr/FATAL:  unrecognized configuration parameter "snowflake.node"\n.*DETAIL:  The setting belongs to pgEdge's extension/);

configure("snowflake.max_lead = '30s'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
configure("snowflake.max_lead = '30h'\nsnowflake.sequence_spread = 99999");
my $since = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/outside the valid range for parameter "snowflake.max_lead"/, $since);
is($node->safe_psql('postgres', 'SHOW snowflake.max_lead'), '30s', 'a reload with an invalid value does not change the setting');
cmp_ok($node->safe_psql('postgres', 'SELECT snowflake.next_id(1)'), '>', 0, 'the server still mints after a reload with an invalid value');

# A reload of the settings changes the shards that a server owns, but not the layout of a database. If
# "snowflake.owned_shards" is invalid at a reload, sessions use its former value.
configure("snowflake.owned_shards = '5-1'\nsnowflake.layout = 'twitter'");
$since = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/invalid value for parameter "snowflake.owned_shards": "5-1"/, $since);
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.next_id(255))'),
	'255', 'a reload changes neither the layout, nor the shards to an invalid list');
configure("snowflake.owned_shards = '1-5'\nsnowflake.region = -1");
$since = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/invalid value for parameter "snowflake.region": "-1"/, $since);
$node->refuses('SELECT snowflake.next_id(255)', { sqlstate => '55000', message => 'shard 255 is not owned', detail => '"snowflake.owned_shards" is 1-5' },
	'a reload changes the shards for later sessions');
# If the server's region number is too large for a layout, next_id() fails in databases with this layout. Databases
# whose layout has the region continue to mint ids.
configure("snowflake.owned_shards = '0-8000'\nsnowflake.region = 32");
$node->restart;
$node->safe_psql('postgres', 'CREATE DATABASE broad');
$node->safe_psql('broad', "SET snowflake.layout = '41/6+6/10'; CREATE EXTENSION snowflake");
my %no_region = (sqlstate => '55000', message => 'the layout of this database has no region 32', detail => 'Layout 41/5\+8/10 has regions 0 to 31', hint => 'Set "snowflake.region"');
$node->refuses('SELECT snowflake.next_id(1)', \%no_region, 'next_id() fails if the layout does not have the region of the server');
is($node->safe_psql('postgres', 'SELECT minting, reason FROM snowflake.health'), 'f|"snowflake.region" is not a region of the layout', 'health shows that the layout does not have the region');
is($node->safe_psql('broad', 'SELECT snowflake.region_of(snowflake.next_id(63))'), '32', 'another database whose layout has the region mints');

# CREATE EXTENSION prints the layout of the database, and a warning if other servers may mint the same ids.
sub says_on_create
{
	my ($settings) = @_;
	configure($settings);
	$node->restart;
	my (undef, undef, $said) = $node->psql('postgres', 'DROP EXTENSION IF EXISTS snowflake; CREATE EXTENSION snowflake');
	return $said;
}
my $sealed = qr/NOTICE:  ids of this database permanently have layout 41\/5\+8\/10, tick 1 ms, epoch 2025-01-01 00:00:00.000 UTC
DETAIL:  The ids run out at 2059-11-04 .* Region of this server: 0 of 32. Owned shards: all of 256.
HINT:  To choose another layout, drop the extension before the first id is minted, set "snowflake.layout" in the session,/;
my $others = qr/WARNING:  another server may mint the same ids/;
my $alone = says_on_create('');
like($alone, $sealed, 'CREATE EXTENSION reports the layout that it seals');
unlike($alone, $others, 'CREATE EXTENSION does not warn on a server that is alone');
unlike(says_on_create('wal_level = logical'), $others, 'CREATE EXTENSION does not warn if only wal_level is logical');
configure('');
$node->restart;
$node->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere' PUBLICATION p WITH (connect = false)");
like(says_on_create(''), qr/$others\nDETAIL:  .*\(a subscription exists\).*\nHINT:  Set "snowflake.region" to a different number/,
	'CREATE EXTENSION warns if the server has a subscription');
like(says_on_create("snowflake.layout = '41/10/12'"), qr/$others\n.*\nHINT:  Set "snowflake.owned_shards"/, 'if regions are not in the layout, the warning recommends separate shards');
like(says_on_create("snowflake.layout = '41/0/22'"), qr/$others\n.*\nHINT:  Before the first id, drop the extension, set "snowflake.layout" to a layout with regions/,
	'if the layout has neither regions nor shards, the warning recommends another layout');
unlike(says_on_create('snowflake.region = 1'), $others, 'CREATE EXTENSION does not warn if the region is set');
unlike(says_on_create("snowflake.owned_shards = '0-9'"), $others, 'CREATE EXTENSION does not warn if owned_shards is set');
like(says_on_create("snowflake.layout = 'instagram'"), qr/$others\nDETAIL:  .*\nHINT:  Set "snowflake.owned_shards" to different shards/,
	'with the layout of Instagram, the warning recommends separate shards');
$node->safe_psql('postgres', 'ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s');

# Tests partitions by time if the first time of ids (the epoch) is in the near past. In every time zone of the session,
# the first partition contains id 0.
my $partitions = <<~'SQL';
	CREATE EXTENSION IF NOT EXISTS snowflake_shards;
	CREATE TEMP TABLE cases AS
	  SELECT row_number() OVER () AS n, step, zone, since
	    FROM unnest('{1 year,6 months,1 month,7 days,1 day,6 hours,1 hour}'::text[]) AS step,
	         unnest('{UTC,America/New_York,Asia/Kolkata,Pacific/Kiritimati,Etc/GMT+12}'::text[]) AS zone,
	         unnest(ARRAY[NULL, '2001-02-03', (SELECT epoch FROM snowflake.layout)]) AS since
	   WHERE since IS NULL OR zone = 'Asia/Kolkata' AND step <> '1 hour';
	CREATE TEMP TABLE outcomes (n bigint, rows bigint, lowest text, gaps bigint, first bigint, again bigint);
	DO $$
	DECLARE
	  this record;
	  partitions bigint;
	BEGIN
	  FOR this IN SELECT * FROM cases ORDER BY n LOOP
	    PERFORM set_config('timezone', this.zone, true);
	    CREATE TABLE parted (id bigint DEFAULT snowflake.next_id(1)) PARTITION BY RANGE (id);
	    CALL snowflake.create_time_partitions('parted', this.step::interval, 2, this.since);
	    partitions := count(*) FROM pg_inherits WHERE inhparent = 'parted'::regclass;
	    INSERT INTO parted DEFAULT VALUES;
	    CALL snowflake.create_time_partitions('parted', this.step::interval, 2, this.since);
	    INSERT INTO outcomes
	      SELECT this.n, (SELECT count(*) FROM parted), min(low)::text, count(*) FILTER (WHERE low <> high_before), partitions, count(*)
	        FROM (SELECT b[1]::bigint AS low, lag(b[2]::bigint) OVER (ORDER BY b[1]::bigint) AS high_before
	                FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid,
	                     regexp_match(pg_get_expr(relpartbound, c.oid), 'FROM \(''(\d+)''\) TO \(''(\d+)''\)') AS b
	               WHERE inhparent = 'parted'::regclass) AS p;
	    DROP TABLE parted;
	  END LOOP;
	END $$;
	SELECT * FROM cases LEFT JOIN outcomes USING (n)
	 WHERE NOT coalesce(rows = 1 AND gaps = 0 AND first >= 3 AND again BETWEEN first AND first + 1 AND (since IS NULL OR lowest = '0'), false)
	SQL
foreach my $age ('1 second', '40 days 5 hours')
{
	my $epoch = $node->safe_psql('postgres', "SELECT to_char((clock_timestamp() - interval '$age') AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')");
	says_on_create("snowflake.epoch = '$epoch'");
	is($node->safe_psql('postgres', $partitions), '', "an epoch $age ago: rows of now have a partition, the first begins with id 0, and a second call adds none");
	$node->safe_psql('postgres', 'DROP EXTENSION snowflake_shards');
}

# Tests valid settings under which no id can be minted today.
configure("snowflake.epoch = '2039-01-01'");
$node->restart;
like($node->log_content, qr/WARNING:  "snowflake.epoch" 2039-01-01 is in the future/, 'a server whose epoch is in the future warns at its start');
$node->safe_psql('postgres', 'CREATE DATABASE early');
$node->refuses('CREATE EXTENSION snowflake',
	{ sqlstate => '55000', message => 'the clock is before the epoch of the ids', detail => 'The epoch of the ids is 2039-01-01', hint => 'Correct the clock' },
	'CREATE EXTENSION fails before the epoch', 'early');

# The layout 20/5+8/10 can no longer mint ids, because its 20 bits for milliseconds last only a quarter of an hour.
configure("snowflake.layout = '20/5+8/10'\nsnowflake.epoch = '2026-01-01'");
$node->restart;
like($node->log_content, qr/WARNING:  the id layout has no time values left/, 'a server whose layout has ended warns at its start');
$node->safe_psql('postgres', 'CREATE DATABASE late');
$node->refuses('CREATE EXTENSION snowflake',
	{ sqlstate => '2200H', message => 'the id layout has no time values left',
		detail => 'Ids of layout 20/5\+8/10, tick 1 ms, epoch 2026-01-01 .* can only have times before 2026-01-01 00:17:28.576\+00\. The clock shows ',
		hint => 'choose a later "snowflake.epoch", or a "snowflake.layout" with more time bits' },
	'CREATE EXTENSION fails if the layout has ended', 'late');
is($node->safe_psql('late', "SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake'"), '0', 'a CREATE EXTENSION that failed leaves no schema');

done_testing();
