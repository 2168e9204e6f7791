# Wrong combinations of settings stop the start, and say why.

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

my $fleet = "snowflake.fleet = 'host=control passfile=/etc/pass user=alpha'";
like((start_with("$fleet\nsnowflake.region = -1"))[0], qr/^\d+$/, 'a fleet and a leased region');
my @wrong = (
	[ 'snowflake.region = -1', qr/DETAIL:  "snowflake.region" is -1, leased, and "snowflake.fleet" is not set.\n.*HINT:  Set "snowflake.fleet"/ ],
	[ $fleet, qr/DETAIL:  "snowflake.fleet" is set, and "snowflake.region" is not leased.\n.*HINT:  Set "snowflake.region" to -1/ ],
	[ "$fleet\nsnowflake.region = 3", qr/HINT:  Set "snowflake.region" to -1/ ],
	[ "$fleet\nsnowflake.region = -1\nsnowflake.lease = 30s", qr/DETAIL:  "snowflake.max_skew" is not less than a third/ ],
	[ "$fleet\nsnowflake.region = -1\nsnowflake.layout = instagram", qr/DETAIL:  The layout has one region.*\n.*HINT:  Set "snowflake.lease"/ ],
	[ "$fleet\nsnowflake.region = -1\nsnowflake.lease = 10\nsnowflake.max_skew = 1", qr/DETAIL:  "snowflake.lease" is less than a second/ ],
	[ "$fleet\nsnowflake.region = -2", qr/outside the valid range/ ],
	[ "$fleet\nsnowflake.region = -1\nsnowflake.lease = 8d", qr/outside the valid range/ ],
	[ "snowflake.fleet = 'host=control password=secret'\nsnowflake.region = -1", qr/"snowflake.fleet" contains a password\n.*HINT:  Use "passfile"/s ],
	[ "snowflake.fleet = 'postgresql://alpha:secret\@control/fleet'\nsnowflake.region = -1", qr/"snowflake.fleet" contains a password/ ],
	[ "snowflake.fleet = 'host=control hots=control'\nsnowflake.region = -1", qr/invalid value for parameter "snowflake.fleet"\n.*DETAIL:  invalid connection option "hots"/s ]);
foreach my $case (@wrong)
{
	my ($settings, $pattern) = @$case;
	my ($size, $error) = start_with($settings);
	is($size, '', "stops the start: $settings");
	like($error, $pattern, 'and says why');
}
unlike(slurp_file($_), qr/secret/, 'no password in the log') foreach grep { -e } $node->logfile;

# Without a control database the server starts, and says what it waits for.
start_with("snowflake.fleet = 'host=/nowhere user=alpha'\nsnowflake.region = -1\nsnowflake.max_wait = 200ms");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$node->poll_query_until('postgres', 'SELECT last_message IS NOT NULL FROM snowflake.lease') or die 'nothing said';
$node->refuses('SELECT snowflake.next_id(5)', { sqlstate => '55000', message => 'this server has no region to mint in',
	detail => 'Last said: could not connect to the control database: .*nowhere', hint => 'Check the control database' },
	'a call that gets no region');
is($node->safe_psql('postgres', 'SELECT region IS NULL, until IS NULL, last_contact IS NULL FROM snowflake.lease'), 't|t|t', 'the view');
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN');
$node->refuses('SET ROLE somebody; SHOW snowflake.fleet', { sqlstate => '42501', message => 'snowflake.fleet|must be superuser' },
	'the connection string is the superusers\'');
$node->refuses('SET ROLE somebody; SELECT * FROM snowflake.lease', { sqlstate => '42501', message => 'permission denied' },
	'what was last said, too');
$node->refuses('SET ROLE somebody; SELECT snowflake.next_id(5)', { sqlstate => '55000', message => 'this server has no region to mint in',
	detail => 'Last said: what members of pg_monitor may read', hint => 'Check the control database' }, 'and not in an error either');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 7, 1))'), '7', 'what does not mint works');

done_testing();
