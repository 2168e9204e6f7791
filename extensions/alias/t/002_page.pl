# Runs the SQL statements in doc/outside.md. Compares the examples of doc/outside.md with results of the server and of
# the decoders in doc/examples.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../../t/lib";
use IPC::Run;
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Node;
use Test::More;

my $page = slurp_file("$FindBin::RealBin/../../../doc/outside.md");
my ($key) = $page =~ /`([0-9a-f]{64})`,\s+check\s+value\s+`([0-9a-f]{16})`/ or die 'the page has no key';
my $check_value = $2;

my $node = Snowflake::Node->create('main');
$node->start;

# The argument $1 in statements of doc/outside.md is the id of the only row of the table "photos", as text.
$node->safe_psql('postgres', 'CREATE DATABASE page');
my ($photos) = slurp_file("$FindBin::RealBin/../../../README.md") =~ /^(CREATE TABLE photos .*?;)$/m or BAIL_OUT('the README has no table');
$node->safe_psql('page', "CREATE EXTENSION snowflake; $photos; INSERT INTO photos VALUES (499712025023222784, 'first light'); CREATE ROLE web_server");
my @blocks = map { [ /^```(\w+)\n(.*?)^```$/ms ] } $page =~ /^(```(?:sql|sh)\n.*?^```)$/msg;
foreach my $block (@blocks)
{
	my ($language, $text) = @$block;
	if ($language eq 'sh')
	{
		my $directory = $node->data_dir;
		ok(IPC::Run::run([ 'bash', '-euc', "cd '$directory'\n$text" ]), 'the page: ' . ($text =~ /^(?!#)(.*)/m)[0]);
		next;
	}
	while ($text =~ /\G\s*(.*?;)[ \t]*(?:--[ \t]*([^\n]*))?(?=\n)/gs)
	{
		my ($statement, $comment) = ($1, $2 // '');
		my $name = 'the page: ' . ($statement =~ /^(.*)/)[0];
		if ($statement =~ /\$1/)
		{
			my ($form, $more) = $statement =~ /snowflake\.(?:try_)?from_(\w+)\(\$1(.*?)\)/;
			my $argument = defined $form ? $node->safe_psql('page', 'SELECT snowflake.' . ($form =~ /^(?:alias|digits)$/ ? $form : "to_$form") . "(id$more) FROM photos")
			  : '[{"id":"0augYQesYgz","caption":"second"}]';
			my $prepare = "SET enable_seqscan = off; SET enable_bitmapscan = off; PREPARE typed AS $statement";
			like($node->safe_psql('page', "$prepare EXPLAIN EXECUTE typed('$argument')"), qr/Index Cond: \(id = /, "$name: uses the primary key") if $comment =~ /primary key/;
			my $answer = $node->safe_psql('page', "$prepare EXECUTE typed('$argument')");
			is($answer, defined $form ? '499712025023222784|first light' : '', $name);
			next;
		}
		my ($status, $answer, $err) = $node->psql('page', $statement);
		is($status, 0, $name) or diag($err);
		is($answer, $comment, "$name: has the result of the comment") if $comment =~ /^\[/;
	}
}
is($node->safe_psql('page', 'SELECT id, caption, public_id FROM photos ORDER BY id'),
	"499712025023222784|first light|0augYQesYgy\n499712025023222785|second|0augYQesYgz", 'the statements of the page have inserted the expected rows');
like($node->safe_psql('page', "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'photos'::regclass AND NOT indisprimary"),
	qr/snowflake\.to_base32\(id/, 'the statements of the page have made an index on the text form');
is($node->safe_psql('page', 'SET ROLE web_server; SELECT photo_alias(499712025023222784) = snowflake.alias(499712025023222784, \'photos\')'), 't',
	'a role with the grant of the page can make aliases');

$node->safe_psql('postgres', 'CREATE EXTENSION snowflake_alias CASCADE');
{
	umask 0077;
	open my $keys, '>', $node->data_dir . '/snowflake_alias.keys' or die $!;
	print $keys "photos 0 $key\n";
}
is($node->safe_psql('postgres', 'SELECT check_value FROM snowflake.alias_keys()'), $check_value, 'alias_keys() shows the check value of the page');

# Returns the rows of the table in doc/outside.md whose header begins with $head.
sub rows
{
	my ($head) = @_;
	my ($table) = $page =~ /^\Q| id | $head\E[^\n]*\n\|[-:|]+\n((?:\|[^\n]*\n)+)/m or die "no table of $head";
	return map { [ map { s/^ ?`?|`? $//gr } /\| ([^|]*)(?=\|)/g ] } split /\n/, $table;
}

my %forms = (
	'base62' => [ 7, 'to_base62(id), to_base32(id), right(snowflake.to_base32(id, true), 1)',
		'from_base62(a) = id AND snowflake.from_base32(b) = id AND snowflake.from_base32(b || c, true) = id' ],
	'UUID' => [ 5, 'to_uuid(id), to_ulid(id)', 'from_uuid(a::uuid) = id AND snowflake.from_ulid(b) = id' ],
	'alias' => [ 6, "alias(id, 'photos'), digits(id, 'photos'), token(id, 'photos')",
		"from_alias(a, 'photos') = id AND snowflake.from_digits(b, 'photos') = id AND snowflake.from_token(c, 'photos') = id" ]);
my @vectors;
foreach my $head (sort keys %forms)
{
	my ($count, $write, $read) = @{ $forms{$head} };
	my @rows = rows($head);
	is(scalar @rows, $count, "the table of $head has $count vectors");
	$write =~ s/(?<![\w.(])(?=(?:to_|alias|digits|token))/snowflake./g;
	foreach (@rows)
	{
		my ($id, @expected) = @$_;
		is($node->safe_psql('postgres', "SELECT $write FROM (VALUES ($id\::bigint)) v (id)"), join('|', @expected), "the forms of id $id are those of the page");
		my ($x, $y, $z) = map { "'$_'" } @expected, '';
		is($node->safe_psql('postgres', "SELECT snowflake.$read FROM (VALUES ($id\::bigint, $x, $y, $z)) v (id, a, b, c)"), 't', "the forms of the page decode to id $id");
	}
	@vectors = @rows if $head eq 'base62';
}

# The first table of doc/outside.md shows one id in every text form.
my ($shown) = $page =~ /^\| form \| (\d+) becomes/m;
my %shown = $page =~ /^\| (base62|base32|UUID|ULID|alias|digits|token) \| `([^`]+)`/mg;
is(join('|', @shown{qw(base62 base32 UUID ULID alias digits token)}),
	$node->safe_psql('postgres', "SELECT snowflake.to_base62(id), snowflake.to_base32(id), snowflake.to_uuid(id), snowflake.to_ulid(id), snowflake.alias(id, 'photos'), snowflake.digits(id, 'photos'), snowflake.token(id, 'photos') FROM (VALUES ($shown\::bigint)) v (id)"),
	'the first table of the page shows the right forms');

# Checks that doc/outside.md and doc/reference.md list exactly the functions of the extension.
my $reference = slurp_file("$FindBin::RealBin/../../../doc/reference.md");
my $functions = $node->safe_psql('postgres', <<~'SQL');
	SELECT string_agg(DISTINCT proname, ' ' ORDER BY proname)
	  FROM pg_depend AS d JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND extname = 'snowflake_alias'
	  JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	SQL
my ($table) = $page =~ /^## Functions\n.*?^\| function \|.*?\n((?:\|.*\n)+)/ms or BAIL_OUT('the page has no table of functions');
is(join(' ', sort grep { !/base62|uuid/ } $table =~ /`(\w+)\(/g), $functions, 'the page lists exactly the functions of the extension');
my ($row) = $reference =~ /^\|(.*)\| functions of the extension `snowflake_alias`/m or BAIL_OUT('the reference has no row of aliases');
is(join(' ', sort $row =~ /`(\w+)\(/g), $functions, 'the reference lists exactly the functions of the extension');
my %by = (sighup => 'reload');
is(join("\n", map { join '|', map { s/`//gr } (split / *\| */)[ 1 .. 3 ] } $reference =~ /^(\| `snowflake_alias\..*)/mg),
	join("\n", map { s/(\w+)$/$by{$1}/r } split /\n/, $node->safe_psql('postgres', q{LOAD 'snowflake_alias'; SELECT name, boot_val, context FROM pg_settings WHERE name LIKE 'snowflake\_alias.%'})),
	'the reference has the right default and context of each setting');

# Makes texts to decode: valid ids, texts with one error, and texts with characters that look like ASCII.
my @texts;
foreach (@vectors)
{
	my (undef, undef, $base32, $check) = @$_;
	push @texts, [ '32', $base32 ], [ '32c', $base32 . $check ], [ '32c', $base32 ], [ '32', $base32 . $check ],
	  [ '32', lc $base32 ], [ '32c', lc "$base32$check" ], [ '32', " $base32" ], [ '32', "$base32\n" ];
}
push @texts, map { [ $_, '' ], [ $_, '-' ], [ $_, '0-0-0' ], [ $_, '0' x 20 ] } qw(32 32c);
push @texts, [ '32', '8000000000000' ], [ '32', 'ZZZZZZZZZZZZZ' ],
  [ '32c', 'ZZZZZZZZZZZZZ0' ], map { my $odd = $_; map { [ $_, $odd . '0' x 12 ], [ $_, '0' x 12 . $odd ], [ $_, '0' x 13 . $odd ] } qw(32 32c) }
  "\x{131}", "\x{17f}", "\x{212a}", "\x{663}", "\x{ff11}", "\x{e9}", "\x{1d7d8}", 'U', 'u', '*', '$', '=', '~', 'o', 'I', 'l';
my @symbols = split //, '0123456789ABCDEFGHJKMNPQRSTVWXYZabcxyzoilOIL-*~$=Uu';
foreach my $number (1 .. 1500)
{
	my $form = (qw(32 32c))[ $number % 2 ];
	my $length = { 32 => 13, '32c' => 14 }->{$form} + (rand() < 0.1 ? int(rand 3) - 1 : 0);
	push @texts, [ $form, join '', '0', map { $symbols[ rand(rand() < 0.95 ? 38 : @symbols) ] } 2 .. $length ];
}
push @texts, map { [ '32c', $_ ] } $node->ids('SELECT snowflake.to_base32(trunc(random()::numeric * 9223372036854775808)::bigint, true) FROM generate_series(1, 300)');

my $hex = sub { my $bytes = $_[0]; utf8::encode($bytes); return unpack 'H*', $bytes };
$node->safe_psql('postgres', <<~'SQL');
	CREATE FUNCTION reads(form text, encoded text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
	  RETURN CASE form WHEN '32' THEN snowflake.from_base32(encoded)
	         ELSE snowflake.from_base32(encoded, true) END;
	EXCEPTION WHEN invalid_text_representation OR numeric_value_out_of_range THEN
	  RETURN 'refused';
	END $$;
	SQL
my $values = join ', ', map { "('$_->[0]', '\\x" . $hex->($_->[1]) . "')" } @texts;
my @expected = $node->ids("SELECT reads(form, convert_from(bytes::bytea, 'UTF8')) FROM (VALUES $values) v (form, bytes)");
is(scalar @expected, scalar @texts, 'the server has decoded or refused all ' . scalar(@texts) . ' texts');
cmp_ok(scalar(grep { $_ ne 'refused' } @expected), '>', 500, 'the server has decoded more than 500 texts');
cmp_ok(scalar(grep { $_ eq 'refused' } @expected), '>', 200, 'the server has refused more than 200 texts');

# Runs each decoder in doc/examples with a few lines of code that read the input.
my $directory = $node->basedir;
my $input = join '', map { $_->[0] . ' ' . $hex->($_->[1]) . "\n" } @texts;
sub keep
{
	my ($name, $text) = @_;
	open my $file, '>', "$directory/$name" or die "$name: $!";
	print $file $text;
	close $file;
	return "$directory/$name";
}
sub reader
{
	my ($name) = @_;
	like($page, qr{\(examples/\Q$name\E\)}, "the page links to examples/$name");
	return slurp_file("$FindBin::RealBin/../../../doc/examples/$name");
}
sub agrees
{
	my ($language, $environment, @command) = @_;
	my ($out, $err) = ('', '');
	local %ENV = (%ENV, %$environment);
	IPC::Run::run(\@command, '<', \$input, '>', \$out, '2>', \$err) or return fail("$language: $err");
	my @got = split /\n/, $out;
	my @differ = grep { ($got[$_] // '') ne $expected[$_] } 0 .. $#expected;
	return is(join("\n", map { "$texts[$_][0] " . $hex->($texts[$_][1]) . ": $got[$_], the server: $expected[$_]" } @differ),
		'', "the decoder in $language decodes and refuses the same texts as the server");
}

keep('ids.mjs', reader('base32.mjs'));
agrees('JavaScript', {}, 'node', keep('feed.mjs', <<~'JS'));
	import { readFileSync } from 'fs';
	import { fromBase32 } from './ids.mjs';
	for (const line of readFileSync(0, 'utf8').trimEnd().split('\n')) {
	  const [form, hex] = line.split(' ');
	  const text = Buffer.from(hex, 'hex').toString();
	  let id = 'refused';
	  try { id = fromBase32(text, form === '32c'); } catch (e) { if (!(e instanceof RangeError)) throw e; }
	  console.log(String(id));
	}
	JS

keep('ids.py', reader('base32.py'));
agrees('Python', {}, 'python3', '-B', keep('feed.py', <<~'PYTHON'));
	import sys
	from ids import from_base32
	for line in sys.stdin:
	    form, text = line[:-1].split(' ')
	    text = bytes.fromhex(text).decode()
	    try:
	        print(from_base32(text, form == '32c'))
	    except ValueError:
	        print('refused')
	PYTHON

# The decoder in Go is tested only if a Go compiler is available.
my $go = reader('base32.go');
if (IPC::Run::run([ 'sh', '-c', 'command -v go' ], '>', \my $path))
{
	mkdir "$directory/source" or die $!;
	keep('source/go.mod', "module ids\n\ngo 1.18\n");
	keep('source/ids.go', $go =~ s/^package ids$/package main/mr);
	keep('source/feed.go', <<~'GO');
		package main

		import (
			"bufio"
			"encoding/hex"
			"fmt"
			"os"
			"strings"
		)

		func main() {
			for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
				form, text, _ := strings.Cut(lines.Text(), " ")
				bytes, _ := hex.DecodeString(text)
				id, err := FromBase32(string(bytes), form == "32c")
				if err != nil {
					fmt.Println("refused")
				} else {
					fmt.Println(id)
				}
			}
		}
		GO
	agrees('Go', { GOCACHE => "$directory/source/cache", GOFLAGS => '-mod=mod', GOPATH => "$directory/gopath", HOME => $directory }, 'sh', '-c', 'cd "$0" && go run .', "$directory/source");
	IPC::Run::run([ 'gofmt', '-l', keep('formatted.go', $go) ], '>', \my $unformatted);
	is($unformatted, '', 'gofmt changes nothing in the decoder in Go');
}

done_testing();
