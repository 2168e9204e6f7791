# Runs monitoring programs that check all relations of a database, for example sequences, bloat, vacuum and indexes.
# The monitoring programs must not report the relations of the schema snowflake.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use IPC::Run;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main');
# Creates another database, because the monitoring programs ignore the database "postgres".
$node->create_database('app');
$node->add_tools('app');
# Calls functions that insert rows into every table of the extensions.
$node->safe_psql('app', <<~'SQL');
	CREATE TABLE old (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), made timestamptz);
	INSERT INTO old SELECT snowflake.late_id('2026-01-01', 5), now() FROM generate_series(1, 100);
	SQL
$node->safe_psql('app', 'VACUUM ANALYZE');
my ($host, $port) = ($node->host, $node->port);
sub reports_ok
{
	my ($program, @arguments) = @_;
	my ($out, $err) = ('', '');
	my $done = IPC::Run::run([ $program, @arguments ], '>', \$out, '2>', \$err);
	ok($done, "$program @arguments[0 .. 1]") or diag($out . $err);
	note($out);
	return like($out, qr/\bOK\b/, '... OK');
}
# Returns the exit status of a monitoring program, which is 0 if the program reports no problem.
sub system_of
{
	my @command = @_;
	my ($out, $err) = ('', '');
	my $done = IPC::Run::run(\@command, '>', \$out, '2>', \$err);
	note($out);
	return $done ? 0 : 1;
}
reports_ok('check_pgactivity', '-s', @$_, '-h', $host, '-p', $port, '-F', 'nagios',
	'--status-file', $node->data_dir . '/checks')
  foreach [ 'sequences_exhausted', '-w', '75%', '-c', '90%' ], ['table_unlogged'], ['invalid_indexes'], [ 'btree_bloat', '-w', '50%', '-c', '90%' ],
  [ 'table_bloat', '-w', '50%', '-c', '90%' ], [ 'max_freeze_age', '-w', '40%', '-c', '60%' ];
reports_ok('check_postgres', "--action=$_", "--host=$host", "--port=$port", '--dbname=app', '--output=nagios')
  foreach qw(sequence bloat autovac_freeze txn_wraparound last_vacuum last_analyze);

# Lists the queries with which other monitoring programs check relations. Each query returns the relations that the
# monitoring program would report.
my %formula = (
	'half of the range is used' => q{SELECT sequencename FROM pg_sequences WHERE schemaname = 'snowflake' AND last_value >= max_value / 2},
	'the share of the range' => q{SELECT sequencename FROM pg_sequences WHERE schemaname = 'snowflake' AND (last_value - min_value) * 100.0 / (max_value - min_value) > 50},
	'no primary key' => q{SELECT relname FROM pg_class AS c WHERE relnamespace = 'snowflake'::regnamespace AND relkind IN ('r', 'p')
		AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'p')},
	'an index that no query uses' => q{SELECT indexrelname FROM pg_stat_user_indexes AS s JOIN pg_index AS i USING (indexrelid)
		WHERE schemaname = 'snowflake' AND idx_scan = 0 AND NOT indisunique},
	'two indexes of the same columns' => q{SELECT indrelid::regclass FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
		WHERE relnamespace = 'snowflake'::regnamespace GROUP BY indrelid, indkey::text HAVING count(*) > 1},
	'a foreign key without an index' => q{SELECT conname FROM pg_constraint WHERE connamespace = 'snowflake'::regnamespace AND contype = 'f'},
	'unlogged' => q{SELECT relname FROM pg_class WHERE relnamespace = 'snowflake'::regnamespace AND relpersistence <> 'p'});
is($node->safe_psql('app', $formula{$_}), '', "this query returns no relation: $_") foreach sort keys %formula;

# Checks that the monitoring programs report a sequence of the schema snowflake if the sequence is nearly exhausted.
$node->safe_psql('app', "SELECT setval('snowflake.origin_fingerprint', 8625000000000000000)");
isnt(system_of('check_pgactivity', '-s', 'sequences_exhausted', '-w', '75%', '-c', '90%', '-h', $host, '-p', $port, '--status-file', $node->data_dir . '/checks'), 0,
	'check_pgactivity reports a sequence at 93 per cent');

done_testing();
