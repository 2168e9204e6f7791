# Tests the programs (readers) of doc/readers.md, which decode ids without the server. Compares the results of readers
# with the server's results for thousands of ids, texts and keys, and for examples in doc/readers.md. The environment
# variable SNOWFLAKE_CLIENTS lists the programs to test, such as reader-python for the Python program that decodes ids.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my @languages = map { /^reader-(\w+)$/ ? $1 : () } split ' ', $ENV{SNOWFLAKE_CLIENTS} // '';
if (!@languages)
{
	pass('no reader is named');
	done_testing();
	exit;
}

my $page = slurp_file("$FindBin::RealBin/../../doc/readers.md");
my $node = Snowflake::Node->create_running('readers');

# Stores the results of the server, with one line for each input.
my @ids = (0, 1, 61, 62, 499712025023222784, ~0 >> 1, -1, -(~0 >> 1) - 1, $node->ids('SELECT snowflake.next_id(7) FROM generate_series(1, 20)'));
push @ids, map { 1 << $_, (1 << $_) - 1 } 2 .. 62;
push @ids, map { int(rand 2**32) << 31 ^ int rand 2**31 } 1 .. 2000;
my @texts = (
	'', '0', '0' x 10, '0' x 12, ' 0000000000', "0000000000\n", '0000000000-', 'AzL8n0Y58m8', 'LygHa16AHYG', 'z' x 11, "\x{ff11}0000000000", "\x{e9}0000000000", "0000000000\x{1d7d8}",
	$node->ids('SELECT snowflake.to_base62(trunc(random()::numeric * 9223372036854775808)::bigint) FROM generate_series(1, 500)'));
my @keys = (@ids, '', 'Ann', "M\x{fc}ller", "\x{65e5}\x{672c}", 'x' x 55, 'x' x 56, 'x' x 64, 'x' x 1000, '01941f29-7c00-7000-abcd-ef9876543210');
my $hex = sub { my $bytes = "$_[0]"; utf8::encode($bytes); return unpack 'H*', $bytes };
my @input = ((map { "id $_" } @ids), (map { 'text ' . $hex->($_) } @texts), (map { 'key ' . $hex->($_) } @keys), map { "of $_" } (-1, 0, 1, 7, 255, 256, 257, 1_000_000_000));
$node->safe_psql('postgres', <<~'SQL');
	CREATE FUNCTION answer(kind text, given text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
	  RETURN CASE kind
	    WHEN 'id' THEN (SELECT concat_ws(' ', (extract(epoch FROM created_at) * 1000)::bigint, region, shard, sequence, snowflake.to_base62(given::bigint)) FROM snowflake.decode(given::bigint))
	    WHEN 'text' THEN snowflake.from_base62(convert_from(decode(given, 'hex'), 'UTF8'))::text
	    WHEN 'key' THEN snowflake.shard_for(convert_from(decode(given, 'hex'), 'UTF8')) || ' ' || snowflake.shard_for(convert_from(decode(given, 'hex'), 'UTF8'), 200)
	    WHEN 'of' THEN snowflake.shard_for('Ann', given::integer)::text END;
	EXCEPTION WHEN invalid_parameter_value OR invalid_text_representation OR numeric_value_out_of_range THEN
	  RETURN 'refused';
	END $$;
	SQL
my @expected = split /\n/, $node->safe_psql('postgres', 'SELECT answer(kind, given) FROM (VALUES '
	  . join(', ', map { my ($kind, $given) = split / /, $_, 2; "('$kind', '" . ($given // '') . "')" } @input) . ') AS v (kind, given)');
is(scalar @expected, scalar @input, scalar(@input) . ' answers of the server');
cmp_ok(scalar(grep { $_ eq 'refused' } @expected), '>=', 13, 'of which some are refusals');

# The page's vectors
my @vectors = $page =~ /^\| (\d+ \| `\w+` \| .*) \|$/mg;
is(scalar @vectors, 4, 'vectors of the page');
foreach (@vectors)
{
	my ($id) = /^(\d+)/;
	is(s/`//gr, $node->safe_psql('postgres', "SELECT concat_ws(' | ', $id, snowflake.to_base62($id), to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'), region, shard, sequence) FROM snowflake.decode($id)"),
		"$id as the page has it");
}
my ($statement) = $page =~ /^```sql\n(CREATE EXTENSION .*?;\n.*?;).*?^```$/ms;
like($node->safe_psql('postgres', $statement // ''), qr/^-- Readers of ids of layout 41\/5\+8\/10/, 'the statement of the page');
my ($pipe) = $page =~ /^```sh\n(.*?)^```$/ms;
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(app warehouse);
$node->safe_psql('app', 'CREATE EXTENSION snowflake_migrate CASCADE');
{
	local %ENV = (%ENV, PATH => $node->config_data('--bindir') . ":$ENV{PATH}", PGHOST => $node->host, PGPORT => $node->port);
	PostgreSQL::Test::Utils::system_log('bash', '-euc', $pipe // 'false');
}
is($node->safe_psql('warehouse', 'SELECT snowflake.shard_of(499712025023222784)'), '5', 'the command of the page');

my $directory = $node->basedir;
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
	like($page, qr{\(examples/\Q$name\E\)}, "the page names $name");
	return slurp_file("$FindBin::RealBin/../../doc/examples/$name");
}
sub compiled
{
	my ($out, $err) = ('', '');
	return IPC::Run::run([@_], '<', \undef, '>', \$out, '2>', \$err) || diag("@_: $out$err");
}

# Lists for each language the commands that compile and run a reader (a program that decodes ids). Each reader of ids is
# compiled together with a few lines of code that read the input of the test.
my %run = (
	javascript => sub {
		keep('ids.mjs', reader('ids.mjs'));
		return ('node', keep('feed.mjs', <<~'JS'));
			import { readFileSync } from 'fs';
			import * as ids from './ids.mjs';
			function answer(kind, given) {
			  if (kind === 'of') return ids.shardFor('Ann', Number(given));
			  const text = Buffer.from(given, 'hex').toString();
			  if (kind === 'text') return ids.fromBase62(text);
			  if (kind === 'key') return ids.shardFor(text) + ' ' + ids.shardFor(text, 200);
			  const id = BigInt(given);
			  return [ids.timeOf(id).getTime(), ids.regionOf(id), ids.shardOf(id), ids.sequenceOf(id), ids.toBase62(id)].join(' ');
			}
			for (const line of readFileSync(0, 'utf8').slice(0, -1).split('\n')) {
			  let said = 'refused';
			  try { said = answer(...line.split(' ')); } catch (e) { if (!(e instanceof RangeError)) throw e; }
			  console.log(String(said));
			}
			JS
	},
	python => sub {
		keep('ids.py', reader('ids.py'));
		return ('python3', '-B', keep('feed.py', <<~'PYTHON'));
			import sys
			from datetime import datetime, timedelta, timezone
			import ids
			try:
			    sys.exit(f"computed shard {ids.shard_for('Ann', 1.5)} of 1.5 shards")
			except ValueError:
			    pass
			for line in sys.stdin:
			    kind, given = line[:-1].split(' ')
			    try:
			        if kind == 'id':
			            n = int(given)
			            ms = (ids.time_of(n) - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)
			            print(ms, ids.region_of(n), ids.shard_of(n), ids.sequence_of(n), ids.to_base62(n))
			        elif kind == 'of':
			            print(ids.shard_for('Ann', int(given)))
			        else:
			            text = bytes.fromhex(given).decode()
			            print(ids.from_base62(text) if kind == 'text' else f'{ids.shard_for(text)} {ids.shard_for(text, 200)}')
			    except ValueError:
			        print('refused')
			PYTHON
	},
	go => sub {
		mkdir "$directory/go";
		my $reader = keep('go/ids.go', reader('ids.go') =~ s/^package ids$/package main/mr);
		IPC::Run::run([ 'gofmt', '-l', $reader ], '>', \my $unformatted);
		is($unformatted, '', 'gofmt finds nothing to change');
		local %ENV = (%ENV, GOCACHE => "$directory/go-cache", GOPATH => "$directory/go-path", GO111MODULE => 'off', HOME => $directory);
		compiled('go', 'build', '-o', "$directory/go-reader", $reader, keep('go/feed.go', <<~'GO'));
			package main

			import (
				"bufio"
				"encoding/hex"
				"fmt"
				"os"
				"strconv"
				"strings"
			)

			func answer(kind, given string) (string, error) {
				if kind == "of" {
					shards, _ := strconv.ParseInt(given, 10, 64)
					shard, err := ShardFor("Ann", shards)
					return fmt.Sprint(shard), err
				}
				text, _ := hex.DecodeString(given)
				if kind == "key" {
					all, _ := ShardFor(string(text), Shards)
					some, err := ShardFor(string(text), 200)
					return fmt.Sprint(all, some), err
				}
				if kind == "text" {
					id, err := FromBase62(string(text))
					return fmt.Sprint(id), err
				}
				id, _ := strconv.ParseInt(given, 10, 64)
				fields, err := Decode(id)
				if err != nil {
					return "", err
				}
				base62, err := ToBase62(id)
				return fmt.Sprint(fields.Time.UnixMilli(), fields.Region, fields.Shard, fields.Sequence, " ", base62), err
			}

			func main() {
				for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
					kind, given, _ := strings.Cut(lines.Text(), " ")
					said, err := answer(kind, given)
					if err != nil {
						said = "refused"
					}
					fmt.Println(said)
				}
			}
			GO
		return "$directory/go-reader";
	},
	java => sub {
		compiled('javac', '-nowarn', '-encoding', 'UTF-8', '-d', "$directory/classes", keep('Ids.java', reader('Ids.java')), keep('Feed.java', <<~'JAVA'));
			import java.io.BufferedReader;
			import java.io.InputStreamReader;
			import java.nio.charset.StandardCharsets;

			class Feed {
			  static String answer(String kind, String given) {
			    if (kind.equals("id")) {
			      long id = Long.parseLong(given);
			      return Ids.timeOf(id).toEpochMilli() + " " + Ids.regionOf(id) + " " + Ids.shardOf(id) + " " + Ids.sequenceOf(id) + " " + Ids.toBase62(id);
			    }
			    if (kind.equals("of")) return "" + Ids.shardFor("Ann", Integer.parseInt(given));
			    byte[] bytes = new byte[given.length() / 2];
			    for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) Integer.parseInt(given.substring(2 * i, 2 * i + 2), 16);
			    String text = new String(bytes, StandardCharsets.UTF_8);
			    return kind.equals("text") ? "" + Ids.fromBase62(text) : Ids.shardFor(text) + " " + Ids.shardFor(text, 200);
			  }

			  public static void main(String[] arguments) throws Exception {
			    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
			    for (String line; (line = in.readLine()) != null; ) {
			      String[] words = line.split(" ", 2);
			      String said = "refused";
			      try {
			        said = answer(words[0], words[1]);
			      } catch (IllegalArgumentException e) {
			      }
			      System.out.println(said);
			    }
			  }
			}
			JAVA
		return ('java', '-cp', "$directory/classes", 'Feed');
	},
	csharp => sub {
		compiled('mcs', "-out:$directory/feed.exe", keep('Ids.cs', reader('Ids.cs')), keep('Feed.cs', <<~'CSHARP'));
			using System;
			using System.Text;

			static class Feed
			{
			    static string Answer(string kind, string given)
			    {
			        if (kind == "id")
			        {
			            long id = long.Parse(given);
			            return string.Join(" ", Ids.TimeOf(id).ToUnixTimeMilliseconds(), Ids.RegionOf(id), Ids.ShardOf(id), Ids.SequenceOf(id), Ids.ToBase62(id));
			        }
			        if (kind == "of") return Ids.ShardFor("Ann", int.Parse(given)).ToString();
			        var bytes = new byte[given.Length / 2];
			        for (int i = 0; i < bytes.Length; i++) bytes[i] = Convert.ToByte(given.Substring(2 * i, 2), 16);
			        var text = Encoding.UTF8.GetString(bytes);
			        return kind == "text" ? Ids.FromBase62(text).ToString() : Ids.ShardFor(text) + " " + Ids.ShardFor(text, 200);
			    }

			    static void Main()
			    {
			        for (string line; (line = Console.ReadLine()) != null; )
			        {
			            var words = line.Split(new[] { ' ' }, 2);
			            var said = "refused";
			            try { said = Answer(words[0], words[1]); }
			            catch (FormatException) { }
			            catch (ArgumentOutOfRangeException) { }
			            Console.WriteLine(said);
			        }
			    }
			}
			CSHARP
		return ('mono', "$directory/feed.exe");
	},
	cpp => sub {
		keep('ids.hpp', reader('ids.hpp'));
		local %ENV = %ENV;
		delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
		compiled('make', '-s', '-C', "$FindBin::RealBin/../../src/core", 'install', "prefix=$directory/usr");
		compiled('c++', '-std=c++20', '-Wall', '-Wextra', '-Werror', "-I$directory/usr/include", "-I$directory", '-o', "$directory/cpp-reader", keep('feed.cpp', <<~'CPP'));
			#include "ids.hpp"

			#include <cstdlib>
			#include <iostream>

			int main() {
			  for (std::string line; std::getline(std::cin, line);) {
			    const auto space = line.find(' ');
			    const std::string kind = line.substr(0, space), given = line.substr(space + 1);
			    if (kind == "id") {
			      const auto id = static_cast<uint64_t>(std::strtoll(given.c_str(), nullptr, 10));
			      if (!ids::layout.contains(id)) {
			        std::cout << "refused\n";
			        continue;
			      }
			      std::cout << ids::time_of(id).time_since_epoch().count() << ' ' << ids::region_of(id) << ' ' << ids::shard_of(id) << ' '
			                << ids::sequence_of(id) << ' ' << ids::to_base62(id) << '\n';
			      continue;
			    }
			    if (kind == "of") {
			      try {
			        std::cout << std::to_string(ids::shard_for("Ann", static_cast<uint32_t>(std::stoi(given)))) << '\n';
			      } catch (const std::out_of_range &) {
			        std::cout << "refused\n";
			      }
			      continue;
			    }
			    std::string text;
			    for (size_t i = 0; i < given.size(); i += 2) text += static_cast<char>(std::stoi(given.substr(i, 2), nullptr, 16));
			    if (kind == "key") {
			      std::cout << ids::shard_for(text) << ' ' << ids::shard_for(text, 200) << '\n';
			    } else if (const auto parsed = ids::from_base62(text); parsed.error != snowflake::NumeralError::none) {
			      std::cout << "refused\n";
			    } else {
			      std::cout << parsed.value << '\n';
			    }
			  }
			}
			CPP
		return "$directory/cpp-reader";
	});

foreach my $language (@languages)
{
	my $prepare = $run{$language} or fail("there is a reader in $language"), next;
	my @command = $prepare->();
	my ($out, $err) = ('', '');
	my $input = join '', map { "$_\n" } @input;
	IPC::Run::run(\@command, '<', \$input, '>', \$out, '2>', \$err, IPC::Run::timeout(300)) or fail("$language: $err"), next;
	my @got = split /\n/, $out;
	my @differ = grep { ($got[$_] // '') ne $expected[$_] } 0 .. $#expected;
	is(join("\n", map { "$input[$_]: $got[$_], the server: $expected[$_]" } grep { defined } @differ[ 0 .. ($#differ < 5 ? $#differ : 5) ]), '', "$language reads as the server does");
}

done_testing();
