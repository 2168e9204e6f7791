# Tests that a server does not start with an invalid combination of settings for leases, and tests the error messages.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => "include = 'tested.conf'\n");
my $tested = $node->data_dir . '/tested.conf';

sub start_with
{
	my ($settings) = @_;
	open my $file, '>', $tested or die "$tested: $!";
	print $file "$settings\n";
	close $file;
	return run_command([ 'postgres', '-C', 'shared_memory_size', '-D', $node->data_dir ]);
}

my $conninfo = "snowflake.lease_conninfo = 'host=lease_server passfile=/etc/pass user=alpha'";
my $leased = "$conninfo\nsnowflake.leased_regions = '4,5'";
like((start_with($leased))[0], qr/^\d+$/, 'a server with a lease server and leased regions starts');
like((start_with("$leased\nsnowflake.region = -1"))[0], qr/^\d+$/, 'a server with leased regions and region = -1 starts');
like((start_with("$conninfo\nsnowflake.region = 3"))[0], qr/^\d+$/, 'a server with a lease server and a static region starts');
my @wrong = (
	[ 'snowflake.region = -1', qr/DETAIL:  "snowflake.region" is -1, and "snowflake.leased_regions" is not set.\n.*HINT:  Set "snowflake.leased_regions"/ ],
	[ "snowflake.leased_regions = '4,5'", qr/DETAIL:  "snowflake.leased_regions" is set, and "snowflake.lease_conninfo" is not.\n.*HINT:  Set "snowflake.lease_conninfo"/ ],
	[ "$leased\nsnowflake.region = 3", qr/DETAIL:  .* are both set.\n.*HINT:  Remove "snowflake.region"/ ],
	[ "$conninfo\nsnowflake.leased_regions = '5,4'", qr/invalid value for parameter "snowflake.leased_regions"(?s:.*)DETAIL:  Write regions and ranges in ascending order/ ],
	[ "$conninfo\nsnowflake.leased_regions = '31-32'", qr/DETAIL:  Layout 41\/5\+8\/10 has regions 0 to 31/ ],
	[ "$conninfo\nsnowflake.layout = '41/10+4/8'\nsnowflake.leased_regions = '0-64'", qr/DETAIL:  A server can lease at most 64 regions/ ],
	[ "$leased\nsnowflake.lease = 30s", qr/DETAIL:  "snowflake.max_skew" must be less than a third/ ],
	[ "$conninfo\nsnowflake.leased_regions = '0'\nsnowflake.layout = instagram", qr/DETAIL:  The layout has only one region.*\n.*HINT:  Set "snowflake.lease"/ ],
	[ "$leased\nsnowflake.lease = 10\nsnowflake.max_skew = 1", qr/DETAIL:  "snowflake.lease" is less than a second/ ],
	[ "$leased\nsnowflake.region = -2", qr/A region is a number from 0/ ],
	[ "$leased\nsnowflake.lease = 8d", qr/outside the valid range/ ],
	[ "snowflake.lease_conninfo = 'host=lease_server password=secret'", qr/"snowflake.lease_conninfo" contains a password\n.*HINT:  Remove the password, and use "passfile"/s ],
	[ "snowflake.lease_conninfo = 'postgresql://alpha:secret\@lease_server/fleet'", qr/"snowflake.lease_conninfo" contains a password/ ],
	[ "snowflake.lease_conninfo = 'host=lease_server hots=lease_server'", qr/invalid value for parameter "snowflake.lease_conninfo"\n.*DETAIL:  invalid connection option "hots"/s ]);
foreach my $case (@wrong)
{
	my ($settings, $pattern) = @$case;
	my ($size, $error) = start_with($settings);
	is($size, '', "the server does not start with $settings");
	like($error, $pattern, "the message explains what is invalid in $settings");
}
unlike(slurp_file($_), qr/secret/, 'the log does not contain the password of a setting') foreach grep { -e } $node->logfile;

# A server that cannot connect to the lease server starts and shows the reason why it has no region.
start_with("snowflake.lease_conninfo = 'host=/nowhere user=alpha'\nsnowflake.leased_regions = '0-3'\nsnowflake.max_wait = 200ms");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$node->poll_query_until('postgres', 'SELECT last_message IS NOT NULL FROM snowflake.lease') or die 'nothing said';
$node->refuses('SELECT snowflake.next_id(5)', { sqlstate => '55000', message => 'this server has not leased a region',
	detail => 'Last message of the lease worker: could not connect to the lease server: .*nowhere', hint => 'check the lease server' },
	'next_id() fails if the server has no region');
is($node->safe_psql('postgres', 'SELECT region IS NULL, until IS NULL, last_contact IS NULL FROM snowflake.lease'), 't|t|t', 'the view lease shows no region');
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN');
$node->refuses('SET ROLE somebody; SHOW snowflake.lease_conninfo', { sqlstate => '42501', message => 'snowflake.lease_conninfo|must be superuser' },
	'an ordinary role cannot read lease_conninfo');
$node->refuses('SET ROLE somebody; SELECT * FROM snowflake.lease', { sqlstate => '42501', message => 'permission denied' },
	'an ordinary role cannot read the view lease');
$node->refuses('SET ROLE somebody; SELECT snowflake.next_id(5)', { sqlstate => '55000', message => 'this server has not leased a region',
	detail => 'Last message of the lease worker: hidden, because only members of pg_monitor may read the message', hint => 'check the lease server' }, 'the error of an ordinary role does not contain the last message');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 7, 1))'), '7', 'make_id() and shard_of() work if the server has no region');

done_testing();
