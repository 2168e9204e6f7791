# The record of grants: which server minted an id. Pools, in which a region is a place; regions of static servers, taken
# out and put back.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Test::More;

my $control = Snowflake::Control->create('control', conf => "listen_addresses = '127.0.0.1'\n");
$control->start;
sub sql { my ($sql, $database) = @_; return $control->safe_psql($database // 'postgres', $sql); }
# "SQLSTATE message" and what follows of an error; fails where there is none.
sub error_of
{
	my ($sql, $database) = @_;
	my ($code, undef, $err) = $control->psql($database // 'postgres', $sql, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	fail("refused: $sql") if $code == 0;
	return $err =~ s/\A.*?ERROR:  //sr;
}
my $epoch = 1735689600000;
sub id_at { my ($ms, $region) = @_; return ($ms - $epoch) << 23 | $region << 18 | 5 << 10 | 7; }
sub minted_by { my ($id, $columns, $database) = @_; return sql("SELECT $columns FROM snowflake_fleet.minted_by($id)", $database); }
# For most of an hour: no lease ends while the tests run.
sub acquire { my (%request) = @_; return $control->ask(call => 'acquire', length => 3_000_000, %request); }

my ($code, undef, $notice) = $control->psql('postgres', 'CREATE EXTENSION snowflake_fleet');
is($code, 0, 'CREATE EXTENSION');
sql(q{SELECT snowflake_fleet.enroll('alpha'), snowflake_fleet.enroll('beta')});
like(error_of('SELECT snowflake_fleet.minted_by(1)'), qr/^55000: the fleet has no layout yet\nDETAIL: .*\nHINT: /, 'no layout, no answer');

# A row a grant; renewals change it.
my $first = acquire(server => 'alpha', incarnation => 11);
my %known = (server => 'alpha', incarnation => 11, term => $first->{term}, newest => $first->{number}, region => $first->{region},
	acked => 1, nonce => 1);
my $renewed = $control->ask(call => 'renew', %known, length => 3_300_000);
is($renewed->{status}, 'granted', 'granted and renewed');
is(sql('SELECT region, server, incarnation, client_addr IS NULL, snowflake_fleet.to_ms(ids_from), snowflake_fleet.to_ms(ids_until),
	heard >= granted, given_back, evicted FROM snowflake_fleet.grants'), "0|alpha|11|t|0|$renewed->{until_ms}|t||", 'one row, to the end of the renewal');
my $now = sql('SELECT snowflake_fleet.to_ms(clock_timestamp())');
my $id = id_at($now, 0);
is(minted_by($id, 'region, snowflake_fleet.to_ms(made), server, incarnation, granted = (SELECT granted FROM snowflake_fleet.grants), note'),
	"0|$now|alpha|11|t|", 'who had the region at the id\'s time');
is(minted_by(id_at($renewed->{until_ms}, 0), 'server, note IS NOT NULL'), '|t', 'nobody at the end of the lease');
is(minted_by(id_at($renewed->{until_ms} - 1, 0), 'server, note'), 'alpha|', 'and alpha until then');
is(minted_by($id, 'server'), 'alpha', 'for pg_monitor as well') if sql('CREATE ROLE watch LOGIN; GRANT pg_monitor TO watch; SELECT 1');
is($control->safe_psql('postgres', "SELECT server FROM snowflake_fleet.minted_by($id)", extra_params => [ '-U', 'watch' ]), 'alpha', 'to whom it is open');
like(minted_by(-1, 'region, note'), qr/^\|It is no id of the fleet's layout, 41\/5\+8\/10/, 'no id');
like(minted_by(id_at($epoch + 1000, $_), 'server, note'), qr/^\|It is older than the fleet/, "older than the fleet, in region $_") foreach 3, 0;
is(minted_by('NULL', 'region, note'), '|', 'null');

# Given back: the next holder begins there, and so does its row.
my $back = $now + 1;
is($control->ask(call => 'give_back', %known, newest => $renewed->{number}, grant => $renewed->{grant_number}, highest => $back)->{status}, 'given_back', 'given back');
is(sql('SELECT snowflake_fleet.to_ms(ids_until), given_back IS NOT NULL, evicted FROM snowflake_fleet.grants'), "$back|t|", 'ends where its ids do');
is(minted_by(id_at($back, 0), 'server'), '', 'nothing of it later');
my $second = acquire(server => 'alpha', incarnation => 12);
is($second->{region}, 0, 'the region again');
is(minted_by(id_at($back - 1, 0), 'incarnation') . ',' . minted_by(id_at($back, 0), 'incarnation'), '11,12', 'from one holder to the next');

# Two machines with one role are told apart, and one of them can be named.
local $ENV{PGHOST} = '127.0.0.1';
my $question = $control->question(call => 'acquire', incarnation => 13, length => 3_000_000);
my $clone = `psql -XAtq -h 127.0.0.1 -p ${\($control->port)} -U alpha -d postgres -c "SELECT region FROM $question" 2>&1`;
is($clone, "1\n", 'a clone of alpha, over TCP');
delete $ENV{PGHOST};
is(sql('SELECT region, holder, incarnation, client_addr FROM snowflake_fleet.regions WHERE holder IS NOT NULL ORDER BY 1'),
	"0|alpha|12|\n1|alpha|13|127.0.0.1", 'regions: incarnation and address');
is(sql(q{SELECT regions, incarnations, client_addrs FROM snowflake_fleet.servers WHERE server = 'alpha'}), '{0,1}|{12,13}|{NULL,127.0.0.1}', 'servers: the same');
like(error_of('SELECT snowflake_fleet.evict(1, 12)'), qr/^42704: incarnation 12 does not hold region 1\nDETAIL: .*Incarnation 13 of server alpha does/,
	'evict() of another incarnation is refused');
sql('SELECT snowflake_fleet.evict(1, 13)');
is(sql('SELECT incarnation, evicted IS NOT NULL, given_back, ids_until > clock_timestamp() FROM snowflake_fleet.grants WHERE region = 1'), '13|t||t',
	'evicted: on record, and it may mint to the end of its lease');

# Pools: a region is a place.
sql(q{SELECT snowflake_fleet.enroll('frankfurt', regions => '[8,10)')});
is(acquire(server => 'frankfurt', incarnation => 21)->{region}, 8, 'only of its pool');
my @others = map { acquire(server => 'beta', incarnation => 100 + $_) } 1 .. 30;
is(scalar(grep { $_->{status} eq 'granted' && $_->{region} =~ /^[89]$/ } @others), 0, 'nobody else has a region of it, though one is free');
is(join(',', sort { $a <=> $b } map { $_->{region} } grep { $_->{status} eq 'granted' } @others), join(',', 2 .. 7, 10 .. 31), 'but all others');
is(acquire(server => 'frankfurt', incarnation => 22)->{region}, 9, 'that one is frankfurt\'s');
my $none = acquire(server => 'frankfurt', incarnation => 23);
is($none->{status}, 'full', 'a pool can be exhausted');
like($none->{detail}, qr/^Pool \[8,10\) of server frankfurt: 8 held by frankfurt until .*, 9 held by frankfurt/, 'and is named then');
sql(q{SELECT snowflake_fleet.enroll('frankfurt2', regions => '[8,9]')});
like(acquire(server => 'frankfurt2', incarnation => 31)->{detail}, qr/^Pool \[8,10\) of server frankfurt2: 8 held by frankfurt /, 'two servers of one place share its pool');
like(error_of(q{SELECT snowflake_fleet.enroll('paris', regions => '[9,12)')}),
	qr/^22023: pool \[9,12\) overlaps that of server frankfurt\nDETAIL: .*\[8,10\).*\nHINT: /, 'a region is of one place');
is(sql(q{SELECT count(*) FROM pg_roles WHERE rolname = 'paris'}), '0', 'and what is refused makes no role');
like(error_of("SELECT snowflake_fleet.enroll('paris', regions => '$_')"), qr/^22023: there are no such regions: .*\nDETAIL: .*0 to 31/, "no pool: $_")
  foreach '[30,33)', '[-1,3)', 'empty', '[3,)';
is(sql(q{SELECT snowflake_fleet.enroll('frankfurt'); SELECT pool FROM snowflake_fleet.servers WHERE server = 'frankfurt'}), "\n[8,10)", 'enrolled again, it keeps its pool');
($code, undef, my $warning) = $control->psql('postgres', q{SELECT snowflake_fleet.enroll('paris', regions => '[10,12)')});
like($warning, qr/WARNING:  server beta holds region 10, which is not in its pool\n.*DETAIL: .*\n.*HINT: .*evict\(10\).*WARNING:  server beta holds region 11/s,
	'who holds a region of the new pool is named');
sql(q{SELECT snowflake_fleet.enroll('paris', regions => '(,)')});
is(sql(q{SELECT pool IS NULL FROM snowflake_fleet.servers WHERE server = 'paris'}), 't', 'a pool is taken away');
sql(q{SELECT snowflake_fleet.retire('frankfurt2')});
is(sql(q{SELECT pool IS NULL FROM snowflake_fleet.servers WHERE server = 'frankfurt2'}), 't', 'and goes with a server that is retired');

# A recovery: what was granted since the last word is not on record, and it says so.
sql('SELECT snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true, although_healthy => true)');
my $gap = sql('SELECT snowflake_fleet.to_ms(ids_from) FROM snowflake_fleet.grants_gap');
like(minted_by(id_at($gap + 1, 0), 'server, note'), qr/^alpha\|The control database was recovered at .*may be missing, and this may have ended earlier/,
	'after a recovery nothing is certain of the time before');
is(minted_by(id_at($gap - 1, 0), 'server, note IS NULL'), 'alpha|t', 'but of what came before it is');

# Pruned
like(error_of('SELECT snowflake_fleet.prune_grants(NULL)'), qr/^22023: "before" has to be a time that has passed/, 'not before null');
like(error_of(q{SELECT snowflake_fleet.prune_grants('infinity')}), qr/^22023: "before" has to be a time that has passed/, 'nor the future');
sql(q{UPDATE snowflake_fleet.grants SET ids_until = clock_timestamp() - interval '1 hour' WHERE incarnation = 11});
is(sql(q{SELECT snowflake_fleet.prune_grants(clock_timestamp() - interval '10 min')}), '1', 'what has ended goes');
like(minted_by(id_at($now - 3_000_000, 0), 'server, note'), qr/^\|The record of grants before .* was pruned/, 'and it says so');
is(sql('SELECT count(*) FROM snowflake_fleet.grants WHERE incarnation = 12'), '1', 'the rest stays');

# It survives a dump.
command_ok([ 'pg_dump', '-Fc', '-f', $control->basedir . '/fleet.dump', $control->connstr('postgres') ], 'pg_dump');
sql('CREATE DATABASE restored');
command_ok([ 'pg_restore', '--exit-on-error', '-d', $control->connstr('restored'), $control->basedir . '/fleet.dump' ], 'pg_restore');
my $rows = 'SELECT * FROM snowflake_fleet.grants ORDER BY 1, 2; SELECT * FROM snowflake_fleet.grants_gap ORDER BY 1; SELECT server, pool FROM snowflake_fleet.servers ORDER BY 1';
is(sql($rows, 'restored'), sql($rows), 'every row');

# Static regions, in a fleet of their own, taken out before the first lease.
sql('CREATE DATABASE static');
$control->install('static');
sql(q{SELECT snowflake_fleet.create_fleet(lease => '1 hour', max_lead => '1 s', max_skew => '19 s');
	SELECT snowflake_fleet.enroll('alpha'); SELECT snowflake_fleet.take_out('[0,1]', 'the first two')}, 'static');
like(error_of(q{SELECT snowflake_fleet.put_back('[0,1]')}, 'static'), qr/^55000: the fleet has no layout yet/, 'not put back before there are regions');
is(acquire(server => 'alpha', incarnation => 41, database => 'static')->{region}, 2, 'the first lease is beside the static ones');
is(sql('SELECT region, holder, free, static FROM snowflake_fleet.regions WHERE region < 4 ORDER BY 1', 'static'), "0||f|t\n1||f|t\n2|alpha|f|f\n3||t|f", 'the view shows which those are');
is(minted_by(id_at($now, 1), 'server, incarnation, note LIKE $$The region is static since %$$', 'static'), 'the first two||t', 'and minted_by(), to whom they belong');
like(error_of(q{SELECT snowflake_fleet.take_out('[2,2]')}, 'static'), qr/^55006: region 2 is not free\nDETAIL: .*alpha holds it.*\nHINT: .*evict\(2\)/, 'one that is held is not taken');
sql('SELECT snowflake_fleet.evict(2)', 'static');
like(error_of(q{SELECT snowflake_fleet.take_out('[2,2]')}, 'static'), qr/^55006: region 2 is not free\nDETAIL: .*Nobody holds it.*\nHINT: .*after 20/, 'nor one whose lease runs');
sql(q{UPDATE snowflake_fleet.region SET until_ms = snowflake_fleet.to_ms(clock_timestamp()) - 2000 WHERE region = 2}, 'static');
like(error_of(q{SELECT snowflake_fleet.take_out('[2,2]')}, 'static'), qr/^55006: region 2 is not free/, 'nor one that ended a moment ago by one clock of several');
sql(q{UPDATE snowflake_fleet.region SET until_ms = snowflake_fleet.to_ms(clock_timestamp()) - 19001 WHERE region = 2; SELECT snowflake_fleet.take_out('[2,2]')}, 'static');
like(error_of("SELECT snowflake_fleet.take_out('$_')", 'static'), qr/^22023: there are no such regions/, "no regions: $_") foreach '[32,32]', 'empty', '[3,)';
like(error_of(q{SELECT snowflake_fleet.put_back('[1,3]')}, 'static'), qr/^55000: region 3 is not static/, 'what was not taken out is not put back');

# Put back: free when no id of the static server can be ahead of it. 60 s, 1 s and the 19 s of clocks.
my $grants = sql('SELECT max(grant_number) FROM snowflake_fleet.region', 'static');
my ($before, $free, $since) = split /\|/, sql(q{SELECT snowflake_fleet.to_ms(clock_timestamp()), snowflake_fleet.to_ms(snowflake_fleet.put_back('[0,1]', max_lead => '1 min')),
	snowflake_fleet.to_ms(clock_timestamp())}, 'static');
ok($before <= $free - 80_000 && $free - 80_000 <= $since + 1, 'free after max_lead, reserve and max_skew');
cmp_ok(sql('SELECT min(grant_number) FROM snowflake_fleet.region WHERE region < 2', 'static'), '>', $grants, 'no lease of before it was static goes on');
is(sql('SELECT region, free, static, floor_ms > ' . ($free - 2) . ' FROM snowflake_fleet.regions JOIN snowflake_fleet.region USING (region) WHERE region < 3 ORDER BY 1', 'static'),
	"0|f|f|t\n1|f|f|t\n2|f|t|f", 'not before');
sql('SELECT snowflake_fleet.take_out($$[3,31]$$)', 'static');
my $wait = acquire(server => 'alpha', incarnation => 42, database => 'static');
is($wait->{status} . ' ' . ($wait->{until_ms} - $free), 'full 0', 'and not granted before either');
sql('UPDATE snowflake_fleet.region SET until_ms = until_ms - 100000, floor_ms = floor_ms - 100000 WHERE region < 2', 'static');
is(acquire(server => 'alpha', incarnation => 42, database => 'static')->{region}, 0, 'nothing is lost for good');

# What is asked at each grant does not read the record of years.
sql(q{INSERT INTO snowflake_fleet.grants (region, granted, server, incarnation, ids_from, ids_until)
	SELECT g % 32, now() - g * interval '1 s', 'alpha', g, now() - g * interval '1 s', now() - g * interval '1 s' FROM generate_series(1, 64000) AS g;
	ANALYZE snowflake_fleet.grants}, 'static');
is(sql(q{BEGIN; SELECT count(*) FROM snowflake_fleet.regions; SELECT count(*) >= 0 FROM snowflake_fleet.regions_for('alpha');
	SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) < 2000 FROM pg_stat_xact_user_tables WHERE relname = 'grants'}, 'static'),
	"32\nt\nt", 'a long record slows no grant down');

done_testing();
