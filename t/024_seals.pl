# Tests that databases of one server can have different layouts, because each database stores its own layout (seal).
# Tests that a database without ids takes over the layout of a restored dump.

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
	is($decoded, $shard, "$name: a minted id has the right shard");
	is($time, 't', "$name: a minted id has the right time");
	my @ids = $node->ids("SELECT unnest(snowflake.next_ids($shard, 5000))", $name);
	my %seen; $seen{$_}++ foreach @ids;
	is(scalar keys %seen, 5000, "$name: the ids of a batch are distinct");
	$last{$name} = $ids[-1];
	is($node->safe_psql($name, 'SELECT minting FROM snowflake.health'), 't', "$name: health shows that the database mints");
	is($node->safe_psql($name, "SELECT sum(ids) > 5000 FROM snowflake.shard_stats"), 't', "$name: shard_stats counts the ids");
	is($node->safe_psql($name, "SELECT snowflake.settled_before() IS NOT NULL"), 't', "$name: settled_before() returns a number");
}
# An open session uses the new layout after the extension was dropped and created under another layout.
my $pooled = $node->session('fleet');
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(255))'), '255', 'an open session mints under the first layout');
$node->safe_psql('fleet', "DROP EXTENSION snowflake; SET snowflake.layout = 'instagram'; CREATE EXTENSION snowflake");
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(8191))'), '8191', 'after the extension was created again, an open session mints in a shard that only the new layout has');
$node->safe_psql('fleet', "DROP EXTENSION snowflake; SET snowflake.layout = 'twitter'; CREATE EXTENSION snowflake");
$node->refuses('SELECT snowflake.next_id(8191)', { sqlstate => '22023', message => 'shard' }, 'a third layout refuses a shard that only the second one had', 'fleet');
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(31))'), '31', 'an open session mints under the third layout');
is($pooled->query_safe("BEGIN; DROP EXTENSION snowflake; SET LOCAL snowflake.layout = 'instagram'; CREATE EXTENSION snowflake; ROLLBACK; SELECT snowflake.shard_of(snowflake.next_id(30))"), '30', 'after a rollback an open session mints under the former layout');
$node->stop('immediate');
$node->clock->step(-20);
$node->start;
foreach my $name (qw(twitter seconds tiny))
{
	my $shard = $name eq 'seconds' ? 70000 : $name eq 'tiny' ? 0 : 31;
	cmp_ok($node->safe_psql($name, "SELECT snowflake.next_id($shard)"), '>', $last{$name}, "$name: after the crash ids are above all ids from before");
}
$pooled->quit;

# Restores dumps into new databases in which CREATE EXTENSION chose another layout than the layout of the dump.
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

# Makes a database whose owner is the role app, and runs SQL in this database.
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
	is($node->safe_psql($database, $bits), '41/5+5/12', "$database: the database has the layout of the dump");
	is($node->safe_psql($database, $digest), $original, "$database: the restored ids decode as before");
	is($node->safe_psql($database, 'SELECT minting FROM snowflake.health'), 't', "$database: health shows that the database mints");
	my $ledger = Snowflake::Ledger->new(shard_bits => 5, sequence_bits => 12);
	$ledger->record('restored', $node->ids('SELECT id FROM photos ORDER BY id', $database));
	$ledger->new_server_run;
	$ledger->record('new', $node->ids('INSERT INTO photos SELECT snowflake.next_id(5) FROM generate_series(1, 300) RETURNING id', $database));
	$ledger->check(800, "$database: restored and new ids are unique");
	return;
}

dump_of('twitter', 'plain');
dump_of('twitter', 'custom', '-Fc');
make('empty');
is(restore('empty'), '', 'a dump is restored into an empty database without an error');
adopted('empty');

# A database takes the layout of a restored dump, even if the views of the extension were read before.
make('looked', 'CREATE EXTENSION snowflake_migrate CASCADE; CREATE EXTENSION snowflake_shards CASCADE');
$pooled = $node->session('looked');
$pooled->query_safe("$bits; SELECT * FROM snowflake.health; SELECT * FROM snowflake.shard_stats");
unlike(restore('looked', '-U', 'app'), qr/another layout/, 'the owner of the database may restore a dump of another layout');
is($pooled->query_safe('SELECT snowflake.shard_of(snowflake.next_id(31)), (SELECT bits FROM snowflake.layout)'), '31|41/5+5/12', 'a session from before the restore uses the layout of the dump');
adopted('looked');
$pooled->quit;

# Restores a dump with another layout in an open transaction. While a transaction changes the layout of a database,
# other sessions must wait.
make('waited', 'CREATE EXTENSION snowflake');
my $restorer = $node->session('waited');
my $adopt = 'INSERT INTO snowflake.dumped_seal SELECT ' . $node->safe_psql('twitter', 'SELECT seal FROM snowflake.dumped_seal');
$restorer->query("BEGIN; $adopt");
like($restorer->{stderr}, qr/NOTICE:  this database adopted the layout of the dump, 41\/5\+5\/12.*\n.*DETAIL:  CREATE EXTENSION recorded layout 41\/5\+8\/10/, 'a notice shows the adopted layout and the former one');
$restorer->{stderr} = '';
is($node->safe_psql('waited', 'SELECT reason FROM snowflake.health'), 'another session has locked a sequence of the extension', 'health shows a restore that is not committed');
my $waiting = $node->start_writer('SELECT snowflake.next_id(200)', 'waited');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event_type = 'Lock'});
is($restorer->query_safe('SELECT snowflake.shard_of(snowflake.next_id(31)); ROLLBACK'), '31', 'the session that restores has the layout of the dump');
my $end = $node->finish_writer($waiting);
is(scalar @{ $end->{ids} }, 1, 'a waiting session mints under the former layout after the rollback') or diag $end->{errors};
is($node->safe_psql('waited', $bits), '41/5+8/10', 'the database has the former layout after the rollback');
$restorer->quit;
make('shown', 'CREATE EXTENSION snowflake');
$restorer = $node->session('shown');
$restorer->query("BEGIN; $adopt; SELECT snowflake.next_id(31)");
$restorer->{stderr} = '';
$node->refuses(q{SET lock_timeout = '100ms'; SELECT snowflake.next_id(31)}, { sqlstate => '55P03', message => 'lock timeout' }, 'another session waits while the adopted layout is not committed', 'shown');
$restorer->query_safe('ROLLBACK');
is($node->safe_psql('shown', 'SELECT snowflake.shard_of(snowflake.next_id(200))'), '200', 'after the rollback another session mints under the former layout');
$restorer->quit;
make('single');
$node->command_ok([ 'pg_restore', '-1', '-d', $node->connstr('single'), $dump{custom} ], 'pg_restore --single-transaction');
adopted('single');
dump_of('single', 'plain');
make('back', "SET snowflake.layout = 'instagram'; CREATE EXTENSION snowflake");
$original = $node->safe_psql('single', $digest);
is(restore('back'), '', 'a dump of a database that adopted its layout is restored without an error');
adopted('back');

# If a database has minted or decoded an id, a dump with another layout cannot change the layout of the database.
my %uses = (minted => 'SELECT snowflake.next_id(1)', decoded => "SELECT snowflake.min_id(now())",
	restored => 'INSERT INTO snowflake.dumped_seal SELECT last_value FROM snowflake.seal_local',
	owned => 'CREATE TABLE own (id bigint); ALTER TABLE own OWNER TO app; REVOKE CREATE ON DATABASE owned FROM app; ALTER DATABASE owned OWNER TO postgres');
foreach my $use (sort keys %uses)
{
	make($use, "CREATE EXTENSION snowflake; $uses{$use}");
	my $refused = { sqlstate => '55000', message => 'the restored ids have another layout than this database',
		detail => 'CREATE EXTENSION recorded layout 41/5\+8/10.*The ids in the dump have layout 41/5\+5/12', hint => 'In a new database, create the extension' };
	$node->refuses("SET ROLE app; $adopt", $refused, "$use: a dump with another seal is refused", $use);
	$node->refuses('SELECT snowflake.next_id(1)', $refused, "$use: after the refused dump next_id() fails", $use);
}
# Restores a dump in which a generated column calls a decoding function. A generated column decodes ids before the
# restore reaches the layout of the dump.
$node->safe_psql('twitter', 'ALTER TABLE photos ADD shard int GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED');
dump_of('twitter', 'plain');
make('computed');
like(restore('computed'), qr/ERROR:  the restored ids have another layout than this database/, 'a dump with a generated column and another seal is refused');
make('chosen', "SET snowflake.layout = 'twitter'; CREATE EXTENSION snowflake");
is(restore('chosen'), '', 'the same dump is restored if the extension was created as the hint describes');
is($node->safe_psql('chosen', 'SELECT count(*) FROM photos WHERE shard = snowflake.shard_of(id) AND shard = 5'), '500', 'the generated column has the right shards');

# Tests settled_before() after a change of the layout, both before and after the first new id.
my $settled = q{SELECT snowflake.time_of(snowflake.settled_before()) < clock_timestamp() + interval '60s'};
make('cursor', "CREATE EXTENSION snowflake; SELECT snowflake.next_id(1), snowflake.settled_before()");
$pooled = $node->session('cursor');
is($pooled->query_safe("BEGIN; $settled"), 't', 'settled_before() is right under the first layout');
$node->safe_psql('cursor', "DROP EXTENSION snowflake; $layouts{seconds} CREATE EXTENSION snowflake");
is($node->safe_psql('cursor', $settled), 't', 'settled_before() is right under a new layout before the first id');
$node->safe_psql('cursor', 'SELECT snowflake.next_id(1)');
$pooled->query('SELECT snowflake.settled_before()');
$pooled->quit;
is($node->safe_psql('cursor', 'SELECT snowflake.shard_of(snowflake.next_id(70000))'), '70000', 'the database mints under the new layout although a session called settled_before() under the former one');
is($node->safe_psql('cursor', $settled), 't', 'settled_before() is right under a new layout after the first id');

# A session checks at most once in a second whether its layout has changed. Creates the extension again less than a
# second after the session has checked the layout.
$node->safe_psql('decoded', "DROP EXTENSION snowflake; CREATE EXTENSION snowflake; SELECT snowflake.next_id(1)");
is($node->safe_psql('decoded', "SELECT snowflake.next_id(1) IS NULL; BEGIN; DROP EXTENSION snowflake; SET LOCAL snowflake.layout = 'twitter'; CREATE EXTENSION snowflake; SELECT snowflake.shard_of(17 << 12); COMMIT; SELECT snowflake.shard_of(18 << 12)"), "f\n17\n18", 'functions that decode use the new layout at once');

unlike($node->log_content, qr/terminated by signal|PANIC/, 'no server process crashed');
done_testing();
