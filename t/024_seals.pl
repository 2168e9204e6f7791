# Tests databases of one server that have different layouts: each has its own seal. A dump brings its seal, which a
# database adopts until its own seal is used.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => "snowflake.max_lead = 60s\n");
$node->start;
my %layouts = (fleet => "", twitter => "SET snowflake.layout = 'twitter';", seconds => "SET snowflake.layout = '28/22/13'; SET snowflake.tick = '1s';", tiny => "SET snowflake.layout = '41/0/22';");
my %last;
foreach my $name (sort keys %layouts)
{
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, "$layouts{$name} CREATE EXTENSION snowflake");
}
foreach my $name (sort keys %layouts)
{
	my $shard = $name eq 'seconds' ? 70000 : $name eq 'tiny' ? 0 : $name eq 'twitter' ? 31 : 255;
	my ($id, $decoded, $time) = split /\|/, $node->safe_psql($name, "WITH a AS MATERIALIZED (SELECT snowflake.next_id($shard) AS id) SELECT id, snowflake.shard_of(id), abs(extract(epoch FROM clock_timestamp() - snowflake.time_of(id))) < 10 FROM a");
	is($decoded, $shard, "$name: the shard");
	is($time, 't', "$name: the time");
	my @ids = $node->ids("SELECT unnest(snowflake.next_ids($shard, 5000))", $name);
	my %seen; $seen{$_}++ foreach @ids;
	is(scalar keys %seen, 5000, "$name: distinct");
	$last{$name} = $ids[-1];
	is($node->safe_psql($name, 'SELECT minting FROM snowflake.health'), 't', "$name: health");
	is($node->safe_psql($name, "SELECT sum(ids) > 5000 FROM snowflake.shard_stats"), 't', "$name: statistics");
	is($node->safe_psql($name, "SELECT snowflake.settled_before() IS NOT NULL"), 't', "$name: settled");
}
# A session sees the extension created anew under another layout, before and after it has minted.
my $pooled = $node->session('fleet');
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(255))'), '255', 'before');
$node->safe_psql('fleet', "DROP EXTENSION snowflake; SET snowflake.layout = 'instagram'; CREATE EXTENSION snowflake");
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(8191))'), '8191', 'after, a shard that only the new layout has');
$node->safe_psql('fleet', "DROP EXTENSION snowflake; SET snowflake.layout = 'twitter'; CREATE EXTENSION snowflake");
$node->refuses('SELECT snowflake.next_id(8191)', { sqlstate => '22023', message => 'shard' }, 'a shard that it does not have', 'fleet');
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(31))'), '31', 'again');
# A rollback brings back the layout.
is($pooled->query_safe("BEGIN; DROP EXTENSION snowflake; SET LOCAL snowflake.layout = 'instagram'; CREATE EXTENSION snowflake; ROLLBACK; SELECT snowflake.shard_of(snowflake.next_id(30))"), '30', 'after a rollback');
# A crash, and a clock that is behind.
$node->stop('immediate');
$node->clock->step(-20);
$node->start;
foreach my $name (qw(twitter seconds tiny))
{
	my $shard = $name eq 'seconds' ? 70000 : $name eq 'tiny' ? 0 : 31;
	cmp_ok($node->safe_psql($name, "SELECT snowflake.next_id($shard)"), '>', $last{$name}, "$name: above all before the crash");
}
$pooled->quit;

# Dumps. The layout comes with the rows, into a database whose CREATE EXTENSION chose another one.
my %dump = map { $_ => $node->basedir . "/$_" } 'plain', 'custom', 'computed';
$node->safe_psql('twitter', 'CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int); CREATE INDEX ON photos (snowflake.time_of(id))');
$node->safe_psql('twitter', 'INSERT INTO photos (n) SELECT generate_series(1, 500)');
my $digest = q{SELECT count(*), md5(string_agg(id || ' ' || snowflake.decode(id)::text, ',' ORDER BY id)) FROM photos};
my $original = $node->safe_psql('twitter', $digest);
my $bits = 'SELECT bits FROM snowflake.layout';

sub dump_of
{
	my ($database, $kind, @options) = @_;
	$node->command_ok([ 'pg_dump', @options, '-d', $node->connstr($database), '-f', $dump{$kind} ], "pg_dump of $database, $kind");
	return;
}

sub restore
{
	my ($database, @user) = @_;
	my (undef, $errors) = run_command([ 'psql', '-Xq', @user, '-f', $dump{plain}, '-d', $node->connstr($database) ]);
	return $errors;
}

# A new database of the role app, in which SQL runs.
my $app = 'CREATE ROLE app LOGIN';
sub make
{
	my ($name, $sql) = @_;
	$node->safe_psql('postgres', "$app; CREATE DATABASE $name OWNER app");
	$app = 'SELECT 1';
	$node->safe_psql($name, $sql // 'SELECT 1');
	return;
}

sub adopted
{
	my ($database) = @_;
	is($node->safe_psql($database, $bits), '41/5+5/12', "$database: has the layout of the dump");
	is($node->safe_psql($database, $digest), $original, "$database: the rows mean what they meant");
	is($node->safe_psql($database, 'SELECT minting, reason FROM snowflake.health'), 't|', "$database: health");
	my $ledger = Snowflake::Ledger->new(shard_bits => 5, sequence_bits => 12);
	$ledger->record('restored', $node->ids('SELECT id FROM photos ORDER BY id', $database));
	$ledger->new_server_run;
	$ledger->record('new', $node->ids('INSERT INTO photos SELECT snowflake.next_id(5) FROM generate_series(1, 300) RETURNING id', $database));
	$ledger->check(800, "$database: minting goes on");
	return;
}

dump_of('twitter', 'plain');
dump_of('twitter', 'custom', '-Fc');
make('empty');
is(restore('empty'), '', 'restored');
adopted('empty');

# A session that was there before. To look at the layout is no use of it.
make('looked', 'CREATE EXTENSION snowflake_migrate CASCADE; CREATE EXTENSION snowflake_shards CASCADE');
$pooled = $node->session('looked');
$pooled->query_safe("$bits; SELECT * FROM snowflake.health; SELECT * FROM snowflake.shard_stats");
unlike(restore('looked', '-U', 'app'), qr/another layout/, 'the owner of the database restores');
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(31)), (SELECT bits FROM snowflake.layout)'), '31|41/5+5/12', 'a session that was there before');
adopted('looked');
$pooled->quit;

# In one transaction, which other sessions wait for, and a rollback.
make('waited', 'CREATE EXTENSION snowflake');
my $restorer = $node->session('waited');
my $adopt = 'INSERT INTO snowflake.dumped_seal SELECT ' . $node->safe_psql('twitter', 'SELECT seal FROM snowflake.dumped_seal');
$restorer->query("BEGIN; $adopt");
like($restorer->{stderr}, qr/NOTICE:  this database adopted the layout of the dump, 41\/5\+5\/12.*\n.*DETAIL:  CREATE EXTENSION sealed layout 41\/5\+8\/10/, 'a notice');
$restorer->{stderr} = '';
is($node->safe_psql('waited', 'SELECT reason FROM snowflake.health'), 'the extension is being altered', 'a restore that is not committed');
my $waiting = $node->start_writer('SELECT snowflake.next_id(200)', 'waited');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event_type = 'Lock'});
is($restorer->query_safe('SELECT snowflake.shard_of(snowflake.next_id(31)); ROLLBACK'), '31', 'the session that restores has the layout of the dump');
my $end = $node->finish_writer($waiting);
is(scalar @{ $end->{ids} }, 1, 'and the other one its own, after a rollback') or diag $end->{errors};
is($node->safe_psql('waited', $bits), '41/5+8/10', 'as the database');
$restorer->quit;
# An id minted before the commit shows the layout to no other session.
make('shown', 'CREATE EXTENSION snowflake');
$restorer = $node->session('shown');
$restorer->query("BEGIN; $adopt; SELECT snowflake.next_id(31)");
$restorer->{stderr} = '';
$node->refuses(q{SET lock_timeout = '100ms'; SELECT snowflake.next_id(31)}, { sqlstate => '55P03', message => 'lock timeout' }, 'a layout that is not committed', 'shown');
$restorer->query_safe('ROLLBACK');
is($node->safe_psql('shown', 'SELECT snowflake.shard_of(snowflake.next_id(200))'), '200', 'the layout that the rollback brings back');
$restorer->quit;
make('single');
$node->command_ok([ 'pg_restore', '-1', '-d', $node->connstr('single'), $dump{custom} ], 'pg_restore --single-transaction');
adopted('single');
# There and back again.
dump_of('single', 'plain');
make('back', "SET snowflake.layout = 'instagram'; CREATE EXTENSION snowflake");
$original = $node->safe_psql('single', $digest);
is(restore('back'), '', 'a dump of a database that adopted');
adopted('back');

# After a use, another seal is refused: after an id, a decoded number, another dump, and without CREATE on the database.
my %uses = (minted => 'SELECT snowflake.next_id(1)', decoded => "SELECT snowflake.min_id(now())",
	restored => 'INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local',
	owned => 'CREATE TABLE own (id bigint); ALTER TABLE own OWNER TO app; REVOKE CREATE ON DATABASE owned FROM app; ALTER DATABASE owned OWNER TO postgres');
foreach my $use (sort keys %uses)
{
	make($use, "CREATE EXTENSION snowflake; $uses{$use}");
	my $refused = { sqlstate => '55000', message => 'this database was restored under another layout',
		detail => 'CREATE EXTENSION sealed layout 41/5\+8/10.*the dump.s ids have layout 41/5\+5/12', hint => 'Create the extension under' };
	$node->refuses("SET ROLE app; $adopt", $refused, "$use: another seal is refused", $use);
	$node->refuses('SELECT snowflake.next_id(1)', $refused, "$use: and nothing is minted", $use);
}
# Rows that were decoded as they were restored.
$node->safe_psql('twitter', 'ALTER TABLE photos ADD shard int GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED');
dump_of('twitter', 'plain');
make('computed');
like(restore('computed'), qr/ERROR:  this database was restored under another layout/, 'a generated column: refused');
make('chosen', "SET snowflake.layout = 'twitter'; CREATE EXTENSION snowflake");
is(restore('chosen'), '', 'as the hint says');
is($node->safe_psql('chosen', 'SELECT count(*) FROM photos WHERE shard = snowflake.shard_of(id) AND shard = 5'), '500', 'the rows are right');

# The cursor after a change of the layout, before and after the first id. It may reach the mark, which is ahead of the clock.
my $settled = q{SELECT snowflake.time_of(snowflake.settled_before()) < clock_timestamp() + interval '60s'};
make('cursor', "CREATE EXTENSION snowflake; SELECT snowflake.next_id(1), snowflake.settled_before()");
$pooled = $node->session('cursor');
is($pooled->query_safe("BEGIN; $settled"), 't', 'cursor: before');
$node->safe_psql('cursor', "DROP EXTENSION snowflake; $layouts{seconds} CREATE EXTENSION snowflake");
is($node->safe_psql('cursor', $settled), 't', 'cursor: under the new layout');
$node->safe_psql('cursor', 'SELECT snowflake.next_id(1)');
$pooled->query('SELECT snowflake.settled_before()');
$pooled->quit;
is($node->safe_psql('cursor', 'SELECT snowflake.shard_of(snowflake.next_id(70000))'), '70000', 'cursor: minting goes on after a session that knew the former layout');
is($node->safe_psql('cursor', $settled), 't', 'cursor: and the cursor is right');

# An extension that is created again within the second for which a check is remembered.
$node->safe_psql('decoded', "DROP EXTENSION snowflake; CREATE EXTENSION snowflake; SELECT snowflake.next_id(1)");
is($node->safe_psql('decoded', "SELECT snowflake.next_id(1) IS NULL; BEGIN; DROP EXTENSION snowflake; SET LOCAL snowflake.layout = 'twitter'; CREATE EXTENSION snowflake; SELECT snowflake.shard_of(17 << 12); COMMIT; SELECT snowflake.shard_of(18 << 12)"), "f\n17\n18", 'the new layout, at once');

unlike($node->log_content, qr/terminated by signal|PANIC/, 'no process crashed');
done_testing();
