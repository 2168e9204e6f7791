# A clock that jumps ahead, one before the epoch, and one past the end of the layout.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	autovacuum = off
	restart_after_crash = on
	CONF
my $clock = $node->clock;
# Two hours behind, so that the jump is to the true time: the one that the postmaster of PostgreSQL 15
# sees in a crash restart, which it goes through in a signal handler (see Snowflake::Clock).
$clock->set(-7200);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE DATABASE other');

my $ledger = Snowflake::Ledger->new;

sub mint
{
	my ($name) = @_;
	my @ids = $node->ids('SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
	$ledger->record($ledger->anonymous, @ids);
	is( $node->safe_psql('postgres',
			"SELECT count(*) FROM unnest(ARRAY[" . join(',', @ids) . "]) AS id"
			. " WHERE abs(extract(epoch FROM clock_timestamp() - snowflake.time_of(id))) > 30"),
		'0', $name);
	return;
}

sub mark { return $node->safe_psql('postgres', 'SELECT last_value FROM snowflake.high_water'); }

my %jumped = (
	sqlstate => '55000',
	message => 'the clock jumped ahead by [\d.]+ (?:min|h|days)',
	detail => 'The clock has moved \d+ ms further than the time since boot; '
	  . 'snowflake.max_forward_jump is 3600 s',
	hint => 'SELECT snowflake.accept_clock\(\)');

# A jump that somebody takes back leaves no trace.
mint('before all jumps');
my $mark = mark();
$clock->step(+7200);
$node->refuses('SELECT snowflake.next_id(1)', \%jumped, 'two hours ahead are refused');
$node->refuses('SELECT snowflake.next_ids(2, 5)', \%jumped, 'for a batch, too');
$node->refuses('SELECT snowflake.observe(snowflake.make_id(now(), 1, 1))', \%jumped, 'for observe(), too');
$node->refuses('CREATE EXTENSION snowflake', \%jumped, 'for a new extension, too', 'other');
is(mark(), $mark, 'the mark is not raised');
is( $node->safe_psql('postgres', "SELECT drift BETWEEN '1:59' AND '2:01' FROM snowflake.clock_status"),
	't', 'the drift is shown');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 7, 1))'),
	'7', 'decoding goes on');
$clock->step(-7200);
mint('after the clock was corrected, ids are of its time');

# A crash does not forgive a jump.
$clock->step(+7200);
my $victim = $node->start_writer('SELECT pg_sleep(600)');
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'PgSleep'");
my ($pid) = $node->ids("SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'");
$node->kill_backend($pid);
$node->finish_writer($victim);
$ledger->new_life;
$node->refuses('SELECT snowflake.next_id(1)', \%jumped, 'a jump is refused after a crash, too');

# Confirmed by who may.
$node->safe_psql('postgres', 'CREATE ROLE visitor');
$node->refuses(
	'SET ROLE visitor; SELECT snowflake.accept_clock()',
	{ sqlstate => '42501', message => 'permission denied for function accept_clock' },
	'not everybody may confirm a jump');
is($node->safe_psql('postgres', "SELECT snowflake.accept_clock() BETWEEN '1:59' AND '2:01'"),
	't', 'accept_clock() says how far the clock had moved');
mint('what is confirmed is minted under');
is($node->safe_psql('postgres', "SELECT snowflake.accept_clock() < '1 min'"), 't', 'once');

# Jumps that each pass add up.
foreach my $round (1, 2)
{
	$clock->step(+1500);
	mint("25 minutes more, round $round");
}
$clock->step(+1500);
$node->refuses('SELECT snowflake.next_id(1)', \%jumped, 'the third makes more than an hour in all');
$node->safe_psql('postgres', 'SELECT snowflake.accept_clock()');
mint('until it is confirmed');
$node->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.max_forward_jump = 86400');
$node->reload;
$node->poll_query_until('postgres',
	"SELECT setting = '86400' FROM pg_settings WHERE name = 'snowflake.max_forward_jump'");
$clock->step(+36000);
mint('a larger max_forward_jump lets more pass');

# A clock before the epoch.
my $now = $clock->offset;
$clock->set(1_704_067_200 - time);
my %before = (
	sqlstate => '55000',
	message => 'the clock is before the epoch',
	detail => 'The clock says 2024-01-01 .*, snowflake.epoch is 2025-01-01 00:00:00',
	hint => 'Correct the clock');
$node->refuses('SELECT snowflake.next_id(1)', \%before, 'a clock before the epoch is refused');
$node->restart;
$ledger->new_life;
like($node->log_content(), qr/WARNING:  snowflake.epoch "2025-01-01 00:00:00\+00" is in the future/,
	'a server that starts with such a clock warns');
$node->refuses('SELECT snowflake.next_id(1)', \%before, 'and refuses');
$node->refuses('CREATE EXTENSION snowflake', \%before, 'a new extension as well', 'other');
$clock->set($now);
$node->refuses('SELECT snowflake.next_id(1)', { %jumped, detail => '' },
	'a correction by years has to be confirmed');
$node->safe_psql('postgres', 'SELECT snowflake.accept_clock()');
mint('and then minting goes on');

# A clock past the end of the layout.
$node->stop;
$clock->set(2_840_140_800 - time);    # 2060-01-01
$ledger->new_life;
$node->start;
$node->refuses(
	'SELECT snowflake.next_id(1)',
	{
		sqlstate => '2200H',
		message => 'the layout is exhausted',
		detail => 'Layout 41/13/10.* ended at 2059-11-04 19:53:47.776',
		hint => 'Move the database to a layout with more time bits or a later epoch'
	},
	'past its end a layout mints nothing');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now() - interval \'2 years\', 7, 1))'),
	'7', 'and decodes all it ever minted');
$node->stop;
$clock->set($now);
$node->start;
mint('the mark is not poisoned by either');
$ledger->check(70, 'clocks far ahead and far back');

done_testing();
