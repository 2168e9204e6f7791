# Tests the names of the extension's wait event and library in PostgreSQL's views. From PostgreSQL 17 on,
# pg_stat_activity shows the wait event of a session that waits for the clock. From PostgreSQL 18 on, SQL can read the
# version of the library.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', conf => "snowflake.max_lead = 0\nsnowflake.max_wait = 600s\n");
$node->safe_psql('postgres', 'SELECT snowflake.next_id(5)');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

my $session = $node->session;
$session->query_safe('SELECT 1');
$node->clock->step(-300);
$session->query_until(qr/minting/, "\\echo minting\nSELECT snowflake.next_id(5);\n");

my $waiting = "FROM pg_stat_activity WHERE query LIKE '%next_id(5)%' AND pid <> pg_backend_pid()";
my $name = $version >= 170000 ? 'SnowflakeClock' : 'Extension';
ok($node->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' $waiting"),
	'a call under a clock that went back waits');
is($node->safe_psql('postgres', "SELECT wait_event_type, wait_event $waiting"),
	"Extension|$name", "the wait is called $name");
is($node->safe_psql('postgres', "SELECT type FROM pg_wait_events WHERE name = '$name'"),
	'Extension', "the server lists the wait event $name")
  if $version >= 170000;

is($node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $waiting"), 't', 'the wait can be cancelled');
$session->quit;

is($node->safe_psql('postgres', <<~'SQL'), 't', 'the loaded module shows the version of the extension')
	LOAD 'snowflake';
	SELECT m.version = e.extversion
	  FROM pg_get_loaded_modules() m, pg_extension e
	 WHERE m.module_name = 'snowflake' AND e.extname = 'snowflake'
	SQL
  if $version >= 180000;

$node->stop;
done_testing();
