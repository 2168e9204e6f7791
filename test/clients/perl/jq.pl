# Tests ids in JSON with jq. The program jq computes with double precision, so it rounds ids that are numbers. Ids that
# are strings stay exact in jq.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use Test::More;

sub output_of
{
	my ($in, @command) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run(\@command, '<', \$in, '>', \$out, '2>', \$err) or die "@command: $err";
	return [ split /\n/, $out ];
}

sub rows { return join "\n", @{ output_of('', 'psql', '-XAtqc', $_[0]) }; }

my $many = 'FROM unnest(snowflake.next_ids(5, 1000)) AS id';
rows("CREATE TABLE photos AS SELECT id $many");
my $as_text = [ split /\n/, rows('SELECT id::text FROM photos ORDER BY photos.id') ];

# From version 1.7 on, jq prints a number exactly as it was written, unless jq has computed with this number.
my $numbers = rows('SELECT json_agg(id ORDER BY id) FROM photos');
my %distinct = map { $_ => 1 } @{ output_of($numbers, 'jq', '.[] + 0') };
cmp_ok(scalar(keys %distinct), '<', 100, 'trap: jq makes one number of many ids');

my $strings = rows('SELECT json_agg(id::text ORDER BY id) FROM photos');
is_deeply(output_of($strings, 'jq', '-r', '.[]'), $as_text, 'json_agg(id::text) is exact');

# The program awk computes with double precision, and rounds ids like jq.
%distinct = map { $_ => 1 } @{ output_of(join("\n", @$as_text), 'awk', '{ printf "%d\n", $1 + 0 }') };
cmp_ok(scalar(keys %distinct), '<', 100, 'trap: awk rounds too if it computes');

done_testing();
