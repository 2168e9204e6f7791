# A wrong setting stops the start of the server, and the message names what is wrong with it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => "include = 'tested.conf'\n");
my $tested = $node->data_dir . '/tested.conf';

sub configure
{
	my ($settings) = @_;
	open my $file, '>', $tested or die "$tested: $!";
	print $file "$settings\n";
	close $file;
	return;
}

# Starts the server in the foreground; a start that goes well is ended, and fails the test.
sub stops_the_start
{
	my ($settings, $pattern) = @_;
	configure($settings);
	my $output = '';
	my $run = IPC::Run::start([ 'postgres', '-D', $node->data_dir ],
		'<', \undef, '>&', \$output, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$run->pump until !$run->pumpable || $output =~ /ready to accept connections/;
	$run->signal('INT') if $output =~ /ready to accept connections/;
	$run->finish;
	unlike($output, qr/ready to accept connections|server process/, "stops the start: $settings");
	like($output, $pattern, "and says why: $settings");
	return;
}

sub invalid
{
	my ($name, $value, $why) = @_;
	return qr/FATAL:  invalid value for parameter "snowflake\.$name": "?\Q$value\E"?\n.*DETAIL:  \Q$why\E/;
}

my %wrong = (
	layout => {
		'41/13/11' => 'The bits add up to more than 64.',
		'0/0/0' => 'The time takes 20 to 53 bits.',
		'41/13' => 'A layout is "instagram", "twitter", "js53" or bits as time/shard/sequence',
		'' => 'A layout is "instagram", "twitter", "js53" or bits as time/shard/sequence',
		'Instagram' => 'A layout is "instagram", "twitter", "js53" or bits as time/shard/sequence',
		'41/13/10/1' => 'A layout is "instagram", "twitter", "js53" or bits as time/shard/sequence',
		'41/-13/10' => 'A layout is "instagram", "twitter", "js53" or bits as time/shard/sequence',
		'30/25/5' => 'The shard takes 0 to 24 bits.',
		'30/10/23' => 'The sequence takes 0 to 22 bits.',
		'64/0/0' => 'The time takes 20 to 53 bits.'
	},
	tick => { 7 => 'A tick is 1, 10, 100 or 1000 milliseconds.' },
	epoch => {
		'garbage' => 'An epoch is a timestamp in whole milliseconds',
		'2025-13-01' => 'An epoch is a timestamp in whole milliseconds',
		'infinity' => 'An epoch is a timestamp in whole milliseconds',
		'today' => 'An epoch is a timestamp in whole milliseconds',
		'now' => 'An epoch is a timestamp in whole milliseconds',
		'2025-01-01 00:00:00.0001' => 'An epoch is a timestamp in whole milliseconds',
		'12345' => 'An epoch is a timestamp in whole milliseconds',
		'9999999999999' => 'An epoch lies between 1970-01-01 and 2039-09-07',
		'1969-12-31' => 'An epoch lies between 1970-01-01 and 2039-09-07',
		'2100-01-01' => 'An epoch lies between 1970-01-01 and 2039-09-07'
	},
	owned_shards => {
		'5-2' => 'A range ends before it begins.',
		'1,,2' => 'Write "all", or shards and ranges in ascending order',
		'x' => 'Write "all", or shards and ranges in ascending order',
		'' => 'The list is empty.',
		'3,3' => 'Shards must be listed once each, in ascending order.',
		'-1' => 'Write "all", or shards and ranges in ascending order',
		'99999999' => 'A shard is a number from 0 to 16777215.'
	});

foreach my $name (sort keys %wrong)
{
	foreach my $value (sort keys %{ $wrong{$name} })
	{
		stops_the_start("snowflake.$name = '$value'", invalid($name, $value, $wrong{$name}{$value}));
	}
}

# Settings that do not go together.
stops_the_start("snowflake.layout = 'js53'\nsnowflake.tick = 1",
	qr/FATAL:  snowflake.layout "js53" with snowflake.tick 1 ms .* is not a layout\n.*DETAIL:  The preset has a tick of its own\.\n.*HINT:/);
stops_the_start("snowflake.layout = '53/5/5'\nsnowflake.tick = 1s",
	qr/is not a layout\n.*DETAIL:  The time field reaches beyond the year 294276\./);
stops_the_start("snowflake.owned_shards = '0-8192'",
	qr/FATAL:  snowflake.owned_shards "0-8192" names shards that the layout does not have\n.*DETAIL:  Layout 41\/13\/10 has shards 0 to 8191/);
stops_the_start("snowflake.sequence_spread = 1025",
	qr/FATAL:  invalid value for parameter "snowflake.sequence_spread": 1025\n.*DETAIL:  The layout has 1024 sequence numbers per tick/);

# Numbers out of range, words for numbers.
foreach (
	[ 'tick', '-1' ], [ 'max_lead', '61s' ], [ 'max_lead', '-1' ], [ 'reserve', '1ms' ],
	[ 'max_databases', '0' ], [ 'max_forward_jump', '0' ], [ 'max_wait', '-2' ],
	[ 'default_shard', '16777216' ], [ 'max_lead', 'soon' ])
{
	my ($name, $value) = @$_;
	stops_the_start("snowflake.$name = '$value'",
		qr/FATAL:  (?:-?\d+\w* ?\w* is outside the valid range for parameter|invalid value for parameter) "snowflake.$name"/);
}

# Settings that are not there: a misspelt owned_shards would leave all shards owned.
stops_the_start("snowflake.owned_shard = '1-5'",
	qr/FATAL:  unrecognized configuration parameter "snowflake.owned_shard"\n.*DETAIL:  .*\n.*HINT:  /);
stops_the_start('snowflake.node = 1',
	qr/FATAL:  unrecognized configuration parameter "snowflake.node"\n.*DETAIL:  The setting belongs to pgEdge's extension/);

# A wrong value in a running server leaves the old one in force.
configure("snowflake.max_lead = '30s'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
configure("snowflake.max_lead = '30h'\nsnowflake.sequence_spread = 99999");
my $since = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/outside the valid range for parameter "snowflake.max_lead"/, $since);
is($node->safe_psql('postgres', 'SHOW snowflake.max_lead'), '30s', 'a reload with a wrong value changes nothing');
cmp_ok($node->safe_psql('postgres', 'SELECT snowflake.next_id(1)'), '>', 0, 'and minting goes on');

# What needs a server start is not changed by a reload.
configure("snowflake.max_lead = '30s'\nsnowflake.owned_shards = '1-5'\nsnowflake.layout = 'twitter'");
$since = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/parameter "snowflake.layout" cannot be changed without restarting the server/, $since);
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.next_id(8191))'),
	'8191', 'neither the layout nor the ownership');

# Right, but of little use today.
configure("snowflake.epoch = '2039-01-01'");
$node->restart;
like($node->log_content, qr/WARNING:  snowflake.epoch "2039-01-01" is in the future/, 'an epoch in the future warns at the start');
$node->safe_psql('postgres', 'CREATE DATABASE early');
$node->refuses('CREATE EXTENSION snowflake',
	{ sqlstate => '55000', message => 'the clock is before the epoch', detail => 'snowflake.epoch is 2039-01-01', hint => 'Correct the clock' },
	'and can be sealed in no database', 'early');

done_testing();
