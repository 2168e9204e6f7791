# Tests that the region and owned shards of a database can change without a restart. All sessions of a database use the
# region and shards that its newest session has read from the settings. If a region moves from one database to another,
# no id repeats.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Snowflake::Page;
use Snowflake::Writers;
use Test::More;

# The layout has only 32 ids per shard and millisecond, so the times of ids in a large batch are ahead of the clock.
my $node = Snowflake::Node->create('main', conf => <<~'CONF');
	restart_after_crash = on
	max_prepared_transactions = 1
	snowflake.layout = 'wide'
	snowflake.max_lead = 1s
	snowflake.max_wait = 20s
	CONF
$node->start;
foreach my $database (qw(x y))
{
	$node->create_database($database);
	$node->safe_psql($database, 'CREATE TABLE ids (id bigint NOT NULL)');
}

sub alter
{
	my ($database, $setting, $value) = @_;
	$node->safe_psql('postgres', "ALTER DATABASE $database SET snowflake.$setting = '$value'");
	return;
}

# Mints an id in a new session, and returns its region.
sub region
{
	my ($database) = @_;
	return $node->safe_psql($database, 'SELECT snowflake.region_of(snowflake.next_id(5))');
}

sub regions_in_use
{
	return $node->safe_psql('postgres', 'SELECT database, region, owned_shards FROM snowflake.databases ORDER BY 1') =~ s/\n/ /r;
}

$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
# Tests two databases that mint ids of the same shard and region.
sub health { return $node->safe_psql($_[0], "SELECT minting, reason, advice FROM snowflake.health()"); }
$node->safe_psql('x', 'SELECT snowflake.next_id(5)');
is(health('x'), 't||', 'health reports nothing while one database mints');
$node->safe_psql('y', 'SELECT snowflake.next_id(6)');
is(health('y'), 't||', 'health reports nothing while the databases mint different shards');
$node->safe_psql('y', 'SELECT snowflake.next_id(5)');
alter('postgres', 'region', 1);    # the database postgres has not minted ids
my $statement = 'ALTER DATABASE y SET snowflake.region = 2';
is(health('x'), "t|another database mints the same ids|Database \"y\" mints shard 5 in the same region. If the ids of the two databases must differ, run $statement, and connect again.",
	'health of the first database names the second one, and the statement that separates them');
like(health('y'), qr/^t\|another database mints the same ids\|Database "x" mints shard 5 .* run \Q$statement\E,/, 'health of the second database names the first one');
is($node->safe_psql('postgres', 'SELECT database, same_ids_as FROM snowflake.databases ORDER BY 1'), "x|y\ny|x", 'the view databases shows the pair');
my $logged = qr/LOG:  databases "(?:x|y)" and "(?:x|y)" of this server mint the same ids/;
my $until = time + $PostgreSQL::Test::Utils::timeout_default;
while (time < $until)
{
	last if $node->log_content =~ $logged;
	$node->safe_psql($_, 'SELECT snowflake.next_id(5)') foreach qw(x y);
	select undef, undef, undef, 0.3;
}
is(scalar(() = $node->log_content =~ /$logged/g), 1, 'the log has one message about the databases that mint the same ids');
like($node->log_content, qr/HINT:  If the ids of the two databases must differ, run \Q$statement\E/, 'the hint of the message has the statement that separates the databases');
$node->safe_psql('postgres', "$statement; ALTER DATABASE postgres RESET snowflake.region");
$node->safe_psql('y', 'SELECT snowflake.next_id(5)');
is(health($_), 't||', "after the statement health of $_ reports nothing") foreach qw(x y);
$node->safe_psql('postgres', 'ALTER DATABASE y RESET snowflake.region');
alter('y', 'owned_shards', '6-9');
$node->safe_psql('y', 'SELECT snowflake.next_id(6)');
is(health('y'), 't||', 'with disjoint owned shards health reports nothing');
$node->safe_psql('postgres', 'ALTER DATABASE y RESET snowflake.owned_shards');
$node->safe_psql('y', 'SELECT snowflake.next_id(6)');
is(health($_), 't||', "health of $_ reports nothing if the last ids of the common shard are of different regions") foreach qw(x y);
is(scalar(() = $node->log_content =~ /$logged/g), 1, 'the log has no further message about the databases');

my %blocks = Snowflake::Page::blocks("$FindBin::RealBin/../doc/reference.md");
like($node->safe_psql('postgres', $blocks{'Change region or shards'}[0]), qr/^\d+\nx\|2\|all$/m, 'the statements of the page change a region');
alter('x', 'region', 1);
alter('y', 'region', 2);
is(join(' ', map { region($_) } qw(x y)), '1 2', 'each database mints in its own region');
is(regions_in_use(), 'x|1|all y|2|all', 'the view databases shows them');

my %old = (minted => $node->session('x'), idle => $node->session('x'), prepared => $node->session('x'));
my $last = $old{minted}->query_safe('SELECT snowflake.next_id(5)');
$old{prepared}->query_safe("BEGIN; INSERT INTO ids VALUES (snowflake.next_id(5)); PREPARE TRANSACTION 'p'");
alter('x', 'region', 3);
is($old{minted}->query_safe('SELECT snowflake.region_of(snowflake.next_id(5))'), '1', 'ALTER DATABASE itself changes no session');
is(region('x'), '3', 'a session that starts later mints in the new region');
foreach my $which (qw(minted idle prepared))
{
	is($old{$which}->query_safe('SELECT snowflake.region_of(snowflake.next_id(5))'), '3', "an older session mints there, too: $which");
}
is(region('x'), '3', 'no session brought the former region back');
is($old{idle}->query_safe("SELECT minted_by FROM snowflake.explain_id($last)"), 'the server that has region 1', 'explain_id() uses the region of the database');
$node->safe_psql('x', "COMMIT PREPARED 'p'");
$_->quit foreach values %old;

# Two databases exchange their region numbers while both mint ids. The first database uses region 3 until the second
# database has another region.
my %writers = map {
	$_ => Snowflake::Writers->start($node, $_, 'INSERT INTO ids SELECT snowflake.next_id(g) FROM generate_series(0, 3) AS g',
		'INSERT INTO ids SELECT unnest(snowflake.next_ids(1, 400))')
} qw(x y);
foreach my $step ([ x => 1 ], [ x => 3 ], ([ y => 1 ], [ x => 2 ], [ y => 3 ], [ x => 1 ], [ y => 2 ], [ x => 3 ]) x 2)
{
	my ($database, $region) = @$step;
	alter($database, 'region', $region);
	region($database);
	$writers{$database}->write_until("SELECT snowflake.region_of(max(id)) = $region AND count(*) > 0 FROM (SELECT id FROM ids ORDER BY ctid DESC LIMIT 1) AS i");
}
is($writers{$_}->stop, '', "the writers of $_ were never refused") foreach qw(x y);

sub crash
{
	my $victim = $node->session;
	$node->kill_backend($victim->query_safe('SELECT pg_backend_pid()') =~ s/\s//gr);
	$node->poll_query_until('postgres', 'SELECT true');
	return;
}

sub all_ids { return map { $node->ids('SELECT id FROM ids', $_) } qw(x y); }
sub repeated
{
	my %count;
	$count{$_}++ foreach all_ids();
	return scalar grep { $_ > 1 } values %count;
}
cmp_ok(scalar(all_ids()), '>', 10_000, 'both wrote');
is(repeated(), '0', 'no id came twice in both databases together');

# After a crash restart, ids in the former regions of a database must not repeat. The last ids of database y are 4.6 s
# ahead of the clock.
alter('x', 'region', 4);
region('x');
$node->append_conf('postgresql.conf', "snowflake.max_lead = '10s'");
$node->set_preload(1);
$node->restart;
$node->safe_psql('y', 'INSERT INTO ids SELECT unnest(snowflake.next_ids(1, 150000))');
alter('y', 'region', 5);
region('y');
alter('x', 'region', 2);
crash();
$node->safe_psql('x', 'INSERT INTO ids SELECT unnest(snowflake.next_ids(1, 15000))');
is(regions_in_use(), 'x|2|all', 'after a crash the newest settings count');
is(repeated(), '0', 'after a crash no id repeats');

$node->create_database('gone');
alter('gone', 'region', 9);
my $last_of_gone = $node->safe_psql('gone', 'SELECT max(id) FROM unnest(snowflake.next_ids(1, 150000)) AS id');
$node->safe_psql('y', 'INSERT INTO ids SELECT unnest(snowflake.next_ids(1, 150000))');
alter('y', 'region', 6);
$node->safe_psql('postgres', 'DROP DATABASE gone');
crash();
is(region('y'), '6', 'after a crash database y mints in its new region');
alter('x', 'region', 5);
$node->safe_psql('x', 'INSERT INTO ids SELECT unnest(snowflake.next_ids(1, 15000))');
is(repeated(), '0', 'a database takes a region that another database left during the crash: no id repeats');
alter('x', 'region', 9);
cmp_ok($node->safe_psql('x', 'SELECT snowflake.next_id(1)'), '>', $last_of_gone, 'a database takes the region of a database that was dropped before the crash: the next id is greater');
alter('x', 'region', 2);
region('x');

# If a database gets the region of a dropped database, its ids begin above the dropped high-water mark. The last ids of
# the dropped database are 4.6 s ahead of the clock.
foreach my $next ([ 'new', 7 ], [ 'x', 8 ])
{
	my ($database, $region) = @$next;
	$node->create_database('gone');
	alter('gone', 'region', $region);
	my $last_id = $node->safe_psql('gone', 'SELECT max(id) FROM unnest(snowflake.next_ids(1, 150000)) AS id');
	$node->safe_psql('postgres', 'DROP DATABASE gone');
	$node->create_database('new') if $database eq 'new';
	alter($database, 'region', $region);
	cmp_ok($node->safe_psql($database, 'SELECT snowflake.next_id(1)'), '>', $last_id, "database $database takes the region of a dropped database: the next id is greater");
}
$node->safe_psql('postgres', 'DROP DATABASE new');
alter('x', 'region', 2);
is(region('x'), '2', 'x returns to its region');

my $old = $node->session('x');
$old->query_safe('SELECT snowflake.next_id(9)');
alter('x', 'owned_shards', '0-4, 7');
$node->refuses('SELECT snowflake.next_id(9)', { sqlstate => '55000', message => 'shard 9 is not owned', detail => '"snowflake.owned_shards" is 0-4,7' },
	'a new session mints only owned shards', 'x');
$old->query('SELECT snowflake.next_id(9)');
like($old->{stderr}, qr/shard 9 is not owned/, 'an old session also mints only owned shards');
$old->{stderr} = '';
is($old->query_safe("SELECT string_agg(DISTINCT snowflake.shard_of(snowflake.next_id_in('[5,8)'))::text, ' ') FROM generate_series(1, 2000)"), '7',
	'next_id_in() chooses among owned shards');
alter('x', 'owned_shards', '0-3');
$node->safe_psql('x', 'SELECT snowflake.next_id(0)');
is($old->query_safe("SELECT string_agg(DISTINCT snowflake.shard_of(i)::text, ' ') FROM unnest(snowflake.next_ids_in('[0,8)', 100)) AS i"), '0 1 2 3',
	'a batch of several shards uses only owned shards');
alter('x', 'owned_shards', '100');
$node->safe_psql('x', 'SELECT snowflake.next_id(100)');
$old->query("SELECT snowflake.next_ids_in('[0,8)', 100)");
like($old->{stderr}, qr/shard 0 is not owned/, 'a batch fails if the database owns none of its shards');
$old->quit;
$node->safe_psql('postgres', 'ALTER DATABASE x RESET snowflake.owned_shards');

# "snowflake.region" and "snowflake.owned_shards" can be set for a database, but not for a role or a session.
my %changed_in = (sqlstate => '55P02', message => 'snowflake\.', detail => 'This setting must have the same value in all sessions of a database', hint => 'Use ALTER DATABASE');
foreach my $sql ('SET snowflake.region = 9', "SET snowflake.owned_shards = 'all'", 'BEGIN; SET LOCAL snowflake.region = 9', "SELECT set_config('snowflake.region', '9', false)")
{
	$node->refuses($sql, \%changed_in, "refused: $sql", 'x');
}
$node->refuses("ALTER DATABASE x SET snowflake.$_", { sqlstate => '22023', message => 'invalid value for parameter', detail => '.' }, "refused: $_", 'x')
  foreach 'region = -1', 'region = x', 'region = 16777216', q{owned_shards = '5-2'}, q{owned_shards = ''};
{
	local $ENV{PGOPTIONS} = '-c snowflake.region=9';
	like((eval { region('x') } // $@), qr/^(2|.*cannot be set|.*snowflake\.region.*)$/s, 'a client does not choose the region');
}
is(region('x'), '2', 'the region of the database does not change');
$node->safe_psql('postgres', 'CREATE ROLE someone SUPERUSER LOGIN; ALTER ROLE someone SET snowflake.region = 9; ALTER ROLE someone IN DATABASE x SET snowflake.region = 9');
is($node->safe_psql('x', 'SELECT snowflake.region_of(snowflake.next_id(5))', extra_params => [ '-U', 'someone' ]), '2', 'a role does not choose the region');

# If the "snowflake.owned_shards" of a database is invalid, the database must not use the default, which owns all
# shards. The test updates pg_db_role_setting, because ALTER DATABASE would refuse the invalid value.
my $store = "UPDATE pg_db_role_setting SET setconfig = '{%s}' WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = 'x') AND setrole = 0";
foreach my $stored ('snowflake.region=2,snowflake.owned_shards=0_7', 'snowflake.region=x')
{
	$node->safe_psql('postgres', sprintf $store, $stored);
	$node->refuses('SELECT snowflake.next_id(5)', { sqlstate => '55000', message => 'the value of "snowflake\.\w+" is invalid', hint => 'ALTER DATABASE' }, "stored: $stored", 'x');
	is($node->safe_psql('x', 'SELECT minting, reason FROM snowflake.health'), 'f|invalid "snowflake.region" or "snowflake.owned_shards"', 'health reports the invalid region or shards');
}
$node->safe_psql('postgres', sprintf $store, 'snowflake.region=2');
is(region('x'), '2', 'a right value is used');

# A reload of "snowflake.region" changes the region of databases for which ALTER DATABASE has not set a region.
$node->create_database('z');
my $z = $node->session('z');
is($z->query_safe('SELECT snowflake.region_of(snowflake.next_id(5))'), '0', 'a database without a setting mints in the region of the server');
$node->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.region = 6');
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('snowflake.region') = '6'");
is($z->query_safe('SELECT snowflake.region_of(snowflake.next_id(5))'), '0', 'a reload does not change a session');
is(region('z'), '6', 'a session that starts after a reload mints in the new region');
is($z->query_safe('SELECT snowflake.region_of(snowflake.next_id(5))'), '6', 'the older session mints in the new region, too');
is(region('x'), '2', 'a database with a region of its own keeps it');
$z->quit;

done_testing();
