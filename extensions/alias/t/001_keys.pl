# Tests the file with the keys by which ids are encrypted (aliases): its format, its reload, and who may set its path.
# Tests that no key appears in the log, in pg_stat_statements, in dumps, or in the memory of sessions.

use strict;
use warnings FATAL => 'all';

use Digest::SHA qw(hmac_sha256 sha256_hex);
use FindBin;
use lib "$FindBin::RealBin/../../../t/lib";
use POSIX ();
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Node;
use Test::More;

my %key = map { $_ => sha256_hex($_) } qw(one two three four);

my $node = Snowflake::Node->create('main', allows_streaming => 1, conf => <<~'CONF');
	log_statement = all
	log_min_messages = debug5
	log_min_error_statement = debug5
	log_error_verbosity = verbose
	log_parser_stats = off
	debug_print_plan = on
	CONF
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'snowflake, pg_stat_statements'");
$node->append_conf('postgresql.conf', 'pg_stat_statements.track_utility = on');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake_alias CASCADE; CREATE EXTENSION pg_stat_statements');
my $path = $node->data_dir . '/snowflake_alias.keys';

sub write_keys
{
	my ($lines, $mode, $file) = @_;
	$file //= $path;
	unlink "$file.new";
	umask 0077;
	open my $handle, '>', "$file.new" or die "$file.new: $!";
	print $handle $lines;
	close $handle;
	chmod $mode // 0600, "$file.new" or die $!;
	rename "$file.new", $file or die $!;
	return;
}

sub refused
{
	my ($expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->refuses("SELECT snowflake.$_", $expected, "$name: $_")
	  foreach "alias(1, 'photos')", "from_token('0000000000000000000000', 'photos')", 'alias_keys()';
	return;
}

sub reload
{
	my ($session) = @_;
	my $before = $session->query_safe('SELECT pg_conf_load_time()');
	$node->reload;
	for (1 .. 600)
	{
		return if $session->query_safe('SELECT pg_conf_load_time()') ne $before;
		select undef, undef, undef, 0.1;
	}
	die 'the session has not heard of the reload';
}

# An error message contains the path of the key file only for roles that may read snowflake_alias.key_file.
my %missing = (sqlstate => '58P01', message => 'could not open the key file: No such file', detail => "The path of the key file is \"$path\"", hint => 'read it');
my $since = -s $node->logfile;
refused(\%missing, 'the key file does not exist');
$node->safe_psql('postgres', 'CREATE ROLE reader; GRANT EXECUTE ON FUNCTION snowflake.alias(bigint, text) TO reader');
like($node->error_of("SET ROLE reader; SELECT snowflake.alias(1, 'photos')"), qr/^(?!.*alias\.keys).*A relative path begins in the data directory/s,
	'the error of an ordinary role does not contain the path of the key file');
like(substr($node->log_content, $since), qr/DETAIL:  The path of the key file is "snowflake_alias\.keys"/, 'the log contains the path of the missing key file');

foreach my $mode (0604, 0640, 0644, 0660, 0602, 0610)
{
	write_keys("photos 0 $key{one}\n", $mode);
	refused({ sqlstate => 'F0000', message => 'unsafe permissions', detail => '0600', hint => 'replace the keys' },
		sprintf 'the key file has mode %04o', $mode);
}
foreach my $mode (0600, 0400, 0700)
{
	write_keys("photos 0 $key{one}\n", $mode);
	is(length $node->safe_psql('postgres', "SELECT snowflake.alias(1, 'photos')"), 11, sprintf 'a key file with mode %04o is accepted', $mode);
}
write_keys("photos 0 $key{one}\n", 0000);
refused({ sqlstate => '42501', message => 'could not open the key file: Permission denied', hint => 'read it' }, 'the key file has mode 0000');
unlink $path;
mkdir $path, 0700;
refused({ sqlstate => 'F0000', message => 'the key file is not a regular file', hint => 'regular file' }, 'the key file is a directory');
rmdir $path;
POSIX::mkfifo($path, 0600) or die $!;
refused({ sqlstate => 'F0000', message => 'the key file is not a regular file' }, 'the key file is a pipe, and the call does not wait for it');
unlink $path;
write_keys('#' x 65537);
refused({ sqlstate => 'F0000', message => 'the key file is too large', detail => '65536', hint => 'Remove' }, 'the key file has more than 65536 bytes');
write_keys('#' x 65536);
$node->refuses("SELECT snowflake.alias(1, 'photos')", { sqlstate => '42704', message => 'key "photos" does not exist' }, 'a key file of 65536 bytes is read');

# If a line of the key file is invalid, the error contains the number of the line and the reason.
my %wrong = (
	"photos 0" => [ 1, 'A line has a name, a version and a key' ],
	"# comment\n\nphotos 0 $key{one} x" => [ 3, 'A line has a name, a version and a key' ],
	"photos 0 $key{one}\nphö 1 $key{two}" => [ 2, 'A name has 1 to 63 characters' ],
	"photos 5 $key{one}" => [ 1, 'A version is a digit, 0 to 4' ],
	"photos 1 $key{one}0" => [ 1, '64 hexadecimal digits' ],
	"photos 1 $key{one}\nphotos 1 $key{two}" => [ 2, 'An earlier line of the file has a key with the same name and version' ],
	"photos 1 $key{one}\nposts 1 " . uc $key{one} => [ 2, 'An earlier line of the file has the same key' ]);
foreach my $lines (sort keys %wrong)
{
	my ($number, $reason) = @{ $wrong{$lines} };
	write_keys($lines);
	refused({ sqlstate => 'F0000', message => "line $number of the key file is invalid", detail => $reason, hint => 'Correct the line' }, $reason);
}

# Until the configuration is reloaded, a session uses the keys that it has already read.
write_keys("photos 0 $key{one}\n");
my $session = $node->session;
my ($old_alias, $old_token) = split /\|/, $session->query_safe("SELECT snowflake.alias(77, 'photos'), snowflake.token(77, 'photos')");
my $reads = "SELECT snowflake.from_alias('$old_alias', 'photos'), snowflake.from_token('$old_token', 'photos')";
# A key that is not in the top line of the key file is used only to decode aliases. All servers must have a new key
# before any server makes aliases with the key.
write_keys("photos 0 $key{one}\nphotos 1 $key{two}\n");
reload($session);
is($session->query_safe("SELECT snowflake.alias(77, 'photos')"), $old_alias, 'aliases are made with the version in the topmost line');
is($session->query_safe('SELECT string_agg(format(\'%s %s %s\', name, version, writes), \', \') FROM snowflake.alias_keys()'),
	'photos 0 t, photos 1 f', 'alias_keys() shows which version makes aliases');
write_keys("photos 1 $key{two}\nphotos 0 $key{one}\n");
is($session->query_safe("SELECT snowflake.alias(77, 'photos')"), $old_alias, 'an open session uses the former topmost line until a reload');
isnt($node->safe_psql('postgres', "SELECT snowflake.alias(77, 'photos')"), $old_alias, 'a new session uses the new topmost line');
reload($session);
my ($new_alias, $new_token) = split /\|/, $session->query_safe("SELECT snowflake.alias(77, 'photos'), snowflake.token(77, 'photos')");
isnt($new_alias, $old_alias, 'after the reload an open session makes aliases with the new version');
isnt($new_token, $old_token, 'after the reload an open session makes tokens with the new version');
is($session->query_safe($reads), '77|77', 'aliases and tokens of the old version are decoded');
is($session->query_safe("SELECT snowflake.from_alias('$new_alias', 'photos'), snowflake.from_token('$new_token', 'photos')"), '77|77', 'aliases and tokens of the new version are decoded');
# If a key is removed from the key file, aliases that were made with the key cannot be decoded.
write_keys("photos 1 $key{two}\n");
reload($session);
$node->refuses("SELECT snowflake.from_alias('$old_alias', 'photos')",
	{ sqlstate => '22023', message => 'the alias was not made with key "photos"', detail => 'requires version 0', hint => 'missing version' }, 'an alias of a removed version is refused');
$node->refuses("SELECT snowflake.from_token('$old_token', 'photos')",
	{ sqlstate => '22023', message => 'the token was not made with key "photos"', hint => 'token' }, 'a token of a removed version is refused');
$session->query($reads);
like($session->{stderr}, qr/the alias was not made with key "photos"/, 'an open session also refuses an alias of a removed version');
$session->{stderr} = '';
is($session->query_safe("SELECT snowflake.from_alias('$new_alias', 'photos')"), '77', 'an alias of the remaining version is decoded');
# If a new key gets the version number of a removed key, aliases of the removed key decode to wrong ids.
write_keys("photos 0 $key{three}\nphotos 1 $key{two}\n");
isnt($node->safe_psql('postgres', "SELECT snowflake.from_alias('$old_alias', 'photos')"), '77', 'if a version has a new key, an old alias decodes to another id');
$node->refuses("SELECT snowflake.from_token('$old_token', 'photos')", { sqlstate => '22023', message => 'the token was not made' }, 'if a version has a new key, an old token is refused');

# If an invalid key file is reloaded, every call for aliases fails until the file is corrected.
write_keys("photos 1 $key{two}\nnonsense\n");
reload($session);
for (1 .. 3)
{
	$session->query("SELECT snowflake.alias(77, 'photos')");
	like($session->{stderr}, qr/line 2 of the key file is invalid/, 'alias() fails with an invalid key file, although the session had read keys');
	$session->{stderr} = '';
}
is($session->query_safe('SELECT snowflake.shard_of(snowflake.next_id(5))'), '5', 'next_id() works with an invalid key file');
write_keys("photos 1 $key{two}\n");
is($session->query_safe("SELECT snowflake.alias(77, 'photos')"), $new_alias, 'alias() works as soon as the key file is corrected');
$session->quit;

# Searches the memory of a session for keys of the key file, which must be removed from the memory after use.
sub memory_of
{
	my ($session) = @_;
	no warnings 'portable';    # hex() would warn about addresses of more than 32 bits
	my $file = $node->basedir . '/memory';
	foreach (1 .. 5)
	{
		my @pieces;
		foreach (split /\n/, $session->query_safe(q{SELECT pg_read_file('/proc/self/maps')}))
		{
			my ($from, $to) = /^([0-9a-f]+)-([0-9a-f]+) rw-p/ or next;
			my ($at, $end) = (hex $from, hex $to);
			for (; $at < $end; $at += 1 << 20) { push @pieces, "($at, " . ($end - $at < 1 << 20 ? $end - $at : 1 << 20) . ')'; }
		}
		$session->query("COPY (SELECT encode(pg_read_binary_file('/proc/self/mem', at, size), 'hex') FROM (VALUES " . join(', ', @pieces) . ") p (at, size)) TO '$file'");
		my $error = $session->{stderr};
		$session->{stderr} = '';
		return pack 'H*', slurp_file($file) =~ tr/\n//dr if $error eq '';
		note($error);    # the session freed memory after it had read /proc/self/maps
	}
	die 'the memory cannot be read';
}
sub held
{
	my ($memory, $name) = @_;
	my $raw = pack 'H*', $key{$name};
	my @secrets = ($raw, $key{$name}, map { hmac_sha256("snowflake_alias $_\1", $raw) } qw(compact token));
	return join ' ', map { index($memory, $_) >= 0 ? 1 : 0 } @secrets;
}
write_keys("photos 1 $key{two}\nother 0 $key{three}\n");
{
	my $core = $node->session;
	$core->set_query_timer_restart;
	$core->query_safe("SELECT snowflake.alias(1, 'photos')");
	my $memory = memory_of($core);
	cmp_ok(length $memory, '>', 1_000_000, 'the memory of a session is read');
	is(held($memory, 'two'), '0 0 1 1', 'the memory contains only the derived keys of a key that was used');
	is(held($memory, 'three'), '0 0 1 1', 'the memory contains only the derived keys of a key that was not used');
	undef $memory;
	write_keys("photos 1 $key{two}\n");
	reload($core);
	$core->query_safe("SELECT snowflake.token(1, 'photos')");
	$memory = memory_of($core);
	is(held($memory, 'three'), '0 0 0 0', 'after a reload the memory contains nothing of a removed key');
	is(held($memory, 'two'), '0 0 1 1', 'after a reload the memory contains the derived keys of the remaining key');
	$core->quit;
}

write_keys(join "\n", map { sprintf 'key%03d %d %s%08x', $_, $_ % 5, substr($key{four}, 0, 56), $_ } 1 .. 800);
is($node->safe_psql('postgres', "SELECT count(DISTINCT snowflake.alias(1, name)), count(*) FROM snowflake.alias_keys()"), '800|800', 'each of 800 keys makes another alias');
write_keys("photos 1 $key{two}\n");

# alias() is not parallel safe, because one statement must not use two versions of the key file. A function declared
# PARALLEL SAFE that calls alias() must fail in a parallel worker.
my $force = $node->safe_psql('postgres', "SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')");
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE many AS SELECT g AS id FROM generate_series(1, 20000) g;
	ANALYZE many;
	CREATE FUNCTION hidden(id bigint) RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
	  RETURN snowflake.alias(id, 'photos');
	SQL
my $parallel = $node->session;
$parallel->query_safe("SET $_") foreach 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'parallel_leader_participation = off';
write_keys("photos 0 $key{one}\n");
my $count = q{SELECT count(*), count(*) FILTER (WHERE snowflake.alias(id, 'photos') COLLATE "C" < 'AzL8n0Y58m8'), count(*) FILTER (WHERE md5(id::text) > '') FROM many};
reload($parallel);
is($parallel->query_safe($count), '20000|20000|20000', 'with one version all aliases have version 0');
write_keys("photos 1 $key{two}\nphotos 0 $key{one}\n");
is($parallel->query_safe($count), '20000|20000|20000', 'after an edit without a reload all aliases of a large statement have version 0');
is($parallel->query_safe(q{SELECT count(*) FROM many a JOIN many b ON snowflake.alias(a.id, 'photos') = snowflake.alias(b.id, 'photos')}), '20000',
	'after an edit without a reload a join by aliases finds all rows');
reload($parallel);
is($parallel->query_safe($count), '20000|0|20000', 'after the reload all aliases have version 1');
$parallel->quit;
like($node->error_of("SET $force = on; SELECT hidden(1)"), qr/25000: aliases and tokens cannot be made or read by a parallel worker.*DETAIL: .*HINT:  Label the calling function/s,
	'alias() fails in a parallel worker');
is($node->safe_psql('postgres', "SET $force = on; SELECT snowflake.alias(77, 'photos')"), $new_alias, 'alias() in a statement runs in the leader, and works');
write_keys("photos 1 $key{two}\n");

# Before PostgreSQL 17, ALTER SYSTEM accepts snowflake_alias.key_file only in a session that has loaded the library.
my $alter = "ALTER SYSTEM SET snowflake_alias.key_file = 'snowflake_alias.keys'";
$node->refuses($alter, { sqlstate => '42704', message => 'unrecognized configuration parameter "snowflake_alias.key_file"' }, 'ALTER SYSTEM fails in a session that has not loaded the library')
  if $node->safe_psql('postgres', 'SHOW server_version_num') < 170000;

# The setting snowflake_alias.key_file can only be changed in the configuration files.
$node->safe_psql('postgres', 'CREATE ROLE somebody LOGIN; GRANT EXECUTE ON FUNCTION snowflake.alias(bigint, text) TO somebody');
write_keys("photos 1 $key{three}\n", 0600, $node->basedir . '/planted');
my $planted = $node->basedir . '/planted';
foreach my $first ('SELECT 1', "SELECT snowflake.alias(1, 'photos')")
{
	my ($code, $out, $err) = $node->psql('postgres',
		"$first; SET snowflake_alias.key_file = '$planted'; SELECT snowflake.alias(77, 'photos')", on_error_stop => 0, extra_params => [ '-U', 'somebody' ]);
	like($out, qr/^\Q$new_alias\E$/m, "the setting of a user's session has no effect, after $first");
	like($err, qr/parameter "snowflake_alias.key_file" cannot be changed/, "a user gets an error for the setting, after $first");
}
$node->refuses("LOAD 'snowflake_alias'; SET snowflake_alias.key_file = '$planted'", { sqlstate => '55P02', message => 'cannot be changed now' }, 'a superuser cannot change the setting for a session');
$node->reconfigure('snowflake_alias.key_file' => "'$planted'");
my $planted_alias = $node->safe_psql('postgres', "SELECT snowflake.alias(77, 'photos')");
isnt($planted_alias, $new_alias, 'the configuration can name another file by its absolute path');
$node->safe_psql('postgres', <<~'SQL');
	CREATE TABLE same AS SELECT 77::bigint AS id FROM generate_series(1, 2000);
	ANALYZE same;
	CREATE FUNCTION aliased(id bigint) RETURNS text LANGUAGE plpgsql PARALLEL RESTRICTED AS $$BEGIN RETURN snowflake.alias(id, 'photos'); END$$;
	SQL
is($node->safe_psql('postgres', <<~'SQL'), "$planted_alias|2000", 'a parallel query loads the library with the configured key file');
	SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0;
	SET min_parallel_table_scan_size = 0;
	SELECT min(a), count(*) FROM (SELECT aliased(id) AS a FROM same OFFSET 0) AS aliases;
	SQL
{
	local $ENV{PGOPTIONS} = "-c snowflake_alias.key_file=$path";
	$node->refuses("SELECT snowflake.alias(77, 'photos')",
		{ sqlstate => '55000', message => 'the configured value of "snowflake_alias.key_file" was rejected', detail => 'Only the configuration', hint => 'connection options' },
		'a client that sets the key file does not get the default key file');
}
$node->reconfigure('snowflake_alias.key_file' => "''");
refused({ sqlstate => '55000', message => '"snowflake_alias.key_file" is empty', detail => 'made with the keys', hint => 'Set "snowflake_alias.key_file"' }, 'the setting is empty');
$node->reconfigure('snowflake_alias.key_file' => "'snowflake_alias.keys'");
my ($altered, undef, $alter_error) = $node->psql('postgres', "LOAD 'snowflake_alias';\n$alter;");
is($altered, 0, 'ALTER SYSTEM works after LOAD') or diag($alter_error);
is($node->safe_psql('postgres', "SELECT setting FROM pg_file_settings WHERE name = 'snowflake_alias.key_file' ORDER BY seqno DESC LIMIT 1"), 'snowflake_alias.keys', 'ALTER SYSTEM has written the setting');

# When the library is loaded, only roles with pg_read_all_settings can read snowflake_alias.key_file.
my $show = 'SHOW snowflake_alias.key_file';
my $plain = sub { return $node->psql('postgres', $_[0], on_error_stop => 1, extra_params => [ '-U', 'somebody' ]); };
is(($plain->($show))[1], 'snowflake_alias.keys', 'an ordinary role can read the setting before the library is loaded');
like(($plain->("SELECT snowflake.alias(1, 'photos'); $show"))[2], qr/must be superuser or have privileges of pg_read_all_settings|permission denied to examine|must be .*pg_read_all_settings/, 'an ordinary role cannot read the setting after the library is loaded');
$node->append_conf('postgresql.conf', "session_preload_libraries = 'snowflake_alias'");
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('session_preload_libraries') = 'snowflake_alias'});
like(($plain->($show))[2], qr/pg_read_all_settings|permission denied to examine/, 'an ordinary role cannot read the setting if the library is preloaded');
$node->append_conf('postgresql.conf', "session_preload_libraries = ''");
$node->reload;

$node->refuses('SET snowflake_alias.other = 1; LOAD \'snowflake_alias\'; SET snowflake_alias.another = 1',
	{ sqlstate => '42602', message => 'invalid configuration parameter name "snowflake_alias.another"' }, 'no other setting with the prefix snowflake_alias can be set');

# A standby must decode aliases of its primary. A dump must not contain keys.
$node->backup('base');
my $standby = Snowflake::Node->create_from_backup('standby', $node, 'base', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', "SELECT snowflake.from_alias('$new_alias', 'photos'), snowflake.from_token('$new_token', 'photos')"), '77|77', 'a standby decodes aliases and tokens');
$standby->stop;
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
like(slurp_file($dump), qr/CREATE EXTENSION IF NOT EXISTS snowflake WITH.*CREATE EXTENSION IF NOT EXISTS snowflake_alias WITH.*GRANT ALL ON FUNCTION snowflake\.alias\(id bigint, key_name text\) TO somebody/s,
	'the dump contains the extensions in order, and the grant');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'the dump is restored');
is($node->safe_psql('restored', "SELECT snowflake.alias(77, 'photos')"), $new_alias, 'the restored database makes the same aliases');

# snowflake_alias works although the library snowflake is not preloaded.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'pg_stat_statements'");
$node->restart;
is($node->safe_psql('postgres', "SELECT snowflake.alias(77, 'photos')"), $new_alias, 'alias() works if the library snowflake is not preloaded');

# Checks that no key has appeared in the log, in pg_stat_statements or in the dump.
my $log = $node->log_content;
my $statements = $node->safe_psql('postgres', 'SELECT string_agg(query, $$ $$) FROM pg_stat_statements');
like($statements, qr/snowflake\.alias\(\$1, \$2\)/, 'pg_stat_statements contains the calls');
like($log, qr/statement: SELECT snowflake\.alias\(77, 'photos'\)/, 'the log contains the calls');
foreach my $name (sort keys %key)
{
	my $begins = substr $key{$name}, 0, 12;
	unlike($log, qr/$begins/i, "the log does not contain key $name");
	unlike($statements, qr/$begins/i, "pg_stat_statements does not contain key $name");
	unlike(slurp_file($dump), qr/$begins/i, "the dump does not contain key $name");
}

done_testing();
