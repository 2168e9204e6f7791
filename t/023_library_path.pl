# Tests a server whose snowflake libraries are not in $libdir (see t/lib/Snowflake/LibraryPath.pm).

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::LibraryPath;
use Test::More;

my $node = Snowflake::LibraryPath::create_running('elsewhere');
chomp(my $libdir = $node->safe_psql('postgres', q{SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'}));
ok(-d $libdir && !glob("$libdir/snowflake*"), '$libdir contains no library of snowflake');

chdir "$FindBin::RealBin/.." or die $!;
my $out;
ok(IPC::Run::run([ $ENV{PG_REGRESS}, '--bindir=' . $node->config_data('--bindir'), '--host=' . $node->host, '--port=' . $node->port,
	  '--inputdir=.', '--outputdir=' . $node->basedir, '--encoding=UTF8', '--no-locale', '--load-extension=snowflake',
	  qw(audit bounds decode extension mint privileges) ], '>&', \$out), 'the first files of sql/ have the expected output') or diag($out);

$node->safe_psql('postgres', 'CREATE FUNCTION own(int) RETURNS bigint AS \'snowflake\', \'snowflake_next_id\' LANGUAGE C');
is($node->safe_psql('postgres', 'SELECT snowflake.shard_of(own(5))'), '5', 'a function that a user made from the library works');

done_testing();
