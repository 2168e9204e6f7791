# Tests ALTER EXTENSION snowflake UPDATE. After all updates from the oldest version, the catalogue must equal the
# catalogue of a fresh installation. Updates of the extension must change neither the ids of existing rows nor the
# high-water mark.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Catalogue;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('main', conf => 'snowflake.max_lead = 60s');
$node->start;

sub query { return $node->safe_psql($_[0], $_[1]) }
sub snapshot { return Snowflake::Catalogue::snapshot($node, $_[0]) }
sub differences { return Snowflake::Catalogue::differences(snapshot($_[0]), $_[1]) }

my $by_version = "string_to_array(version, '.')::int[]";
my @versions = split /\n/, query('postgres',
	"SELECT version FROM pg_available_extension_versions WHERE name = 'snowflake' ORDER BY $by_version");
my $newest = query('postgres',
	"SELECT default_version FROM pg_available_extensions WHERE name = 'snowflake'");
is($versions[-1], $newest, 'the default version is the newest one');

# "make install" must install every SQL script of the repository, because a missing script would prevent an update.
my ($share) = run_command([ 'pg_config', '--sharedir' ]);
my %scripts;
foreach my $directory ("$FindBin::RealBin/..", "$share/extension")
{
	$scripts{$directory} = join ' ', sort map { m{([^/]*)$} } glob "$directory/snowflake--*.sql";
}
my ($wanted, $installed) = map { $scripts{$_} } "$FindBin::RealBin/..", "$share/extension";
is($installed, $wanted, 'every script of the repository is installed, and no other');

my @fresh = map { /^snowflake--([\d.]+)\.sql$/ ? $1 : () } split / /, $installed;
foreach my $from (grep { $_ ne $newest } @fresh)
{
	isnt(query('postgres',
			"SELECT path FROM pg_extension_update_paths('snowflake')
			  WHERE source = '$from' AND target = '$newest'"),
		'', "$from can be updated to $newest");
}

# Updates the extension from its oldest version to its newest version, one version at a time.
my $oldest = $versions[0];
my @steps = split /--/, query('postgres',
	"SELECT path FROM pg_extension_update_paths('snowflake')
	  WHERE source = '$oldest' AND target = '$newest'");
@steps = ($oldest) unless @steps;
note 'steps: ' . join ' -> ', @steps;

my $state = "SELECT (SELECT last_value FROM snowflake.seal), (SELECT last_value FROM snowflake.seal_local)";
my $mark = 'SELECT last_value FROM snowflake.high_water';
query('postgres', 'CREATE DATABASE walked');
query('walked', <<~"SQL");
	CREATE EXTENSION snowflake VERSION '$oldest';
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), n int,
	                     shard int GENERATED ALWAYS AS (snowflake.shard_of(id)) STORED);
	CREATE VIEW recent AS
	  SELECT * FROM photos WHERE snowflake.created_within(id, now() - interval '1 day', now());
	INSERT INTO photos (n) SELECT generate_series(1, 1000);
	SQL
my $rows = query('walked', 'SELECT id, shard FROM photos ORDER BY id');
my $seals = query('walked', $state);
my $mark_before = query('walked', $mark);

shift @steps;
foreach my $step (@steps)
{
	query('walked', "ALTER EXTENSION snowflake UPDATE TO '$step'");
	is(query('walked', "SELECT extversion FROM pg_extension WHERE extname = 'snowflake'"),
		$step, "ALTER EXTENSION UPDATE installs version $step");
	query('walked', 'INSERT INTO photos (n) SELECT generate_series(1, 100)');
	next unless grep { $_ eq $step } @fresh;
	(my $database = "fresh_$step") =~ s/\W/_/g;
	query('postgres', "CREATE DATABASE $database");
	query($database, "CREATE EXTENSION snowflake VERSION '$step'");
	is(differences('walked', snapshot($database)), '', "after the update to $step the catalogue equals that of a fresh installation");
}

query('postgres', 'CREATE DATABASE fresh');
query('fresh', 'CREATE EXTENSION snowflake');
my $fresh = snapshot('fresh');
like($fresh, qr/^$_/m, "the snapshot of the catalogue contains: $_")
  foreach 'extension', 'dumped', 'schema', 'function', 'relation', 'column', 'sequence', 'view';
is(differences('walked', $fresh), '', "after all updates from $oldest the catalogue equals that of a fresh $newest");

is(query('walked', 'SELECT id, shard FROM photos ORDER BY id LIMIT 1000'), $rows, 'after the updates ids decode to the same shards');
is(query('walked', $state), $seals, 'after the updates the seal is the same');
cmp_ok(query('walked', $mark), '>=', $mark_before, 'the updates did not lower the mark');
query('walked', 'INSERT INTO photos (n) SELECT generate_series(1, 1000)');
is(query('walked', 'SELECT count(*) - count(DISTINCT id), bool_and(up) FROM
	(SELECT id, id > lag(id, 1, 0::bigint) OVER (ORDER BY n_th) AS up
	   FROM (SELECT id, row_number() OVER (ORDER BY ctid) AS n_th FROM photos) p) q'),
	'0|t', 'over the updates ids are unique and ascending');

# Makes each mistake that an update script could make, and checks that the comparison of catalogues detects the mistake.
my @mistakes = (
	'COMMENT ON FUNCTION snowflake.next_id(int) IS NULL',
	'ALTER FUNCTION snowflake.next_id(int) PARALLEL SAFE',
	'ALTER FUNCTION snowflake.time_of(bigint) VOLATILE',
	'ALTER FUNCTION snowflake.created_within(bigint, timestamptz, timestamptz) STRICT',
	'ALTER FUNCTION snowflake.shard_stats() ROWS 7',
	'GRANT EXECUTE ON FUNCTION snowflake.observe(bigint) TO PUBLIC',
	'REVOKE SELECT ON SEQUENCE snowflake.high_water FROM PUBLIC',
	'REVOKE USAGE ON SCHEMA snowflake FROM PUBLIC',
	'ALTER SEQUENCE snowflake.seal CYCLE',
	'ALTER VIEW snowflake.layout SET (security_barrier)',
	'CREATE OR REPLACE VIEW snowflake.layout AS SELECT *, 1 AS more FROM snowflake.layout()',
	"UPDATE pg_extension SET extconfig = extconfig[1:1], extcondition = extcondition[1:1]
	  WHERE extname = 'snowflake'",
	"CREATE FUNCTION snowflake.more() RETURNS int LANGUAGE sql RETURN 1;
	 ALTER EXTENSION snowflake ADD FUNCTION snowflake.more()",
	'ALTER EXTENSION snowflake DROP FUNCTION snowflake.last_id()',
	"UPDATE pg_extension SET extversion = '0' WHERE extname = 'snowflake'");
foreach my $mistake (@mistakes)
{
	query('postgres', 'CREATE DATABASE wrong TEMPLATE fresh');
	query('wrong', $mistake);
	isnt(differences('wrong', $fresh), '', 'the comparison detects the mistake: ' . join ' ', split /\s+/, $mistake);
	query('postgres', 'DROP DATABASE wrong');
}

$node->stop;
done_testing();
