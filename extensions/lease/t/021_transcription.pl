# Sends random lease requests to the SQL functions and to a C++ model (test/core/lease_server.hpp), and compares the
# answers.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::LeaseServer;
use Test::More;

my $steps = $ENV{SNOWFLAKE_LEASE_STEPS} // 12_000;
my $seed = $ENV{SNOWFLAKE_TEST_SEED} // int rand 2**31;
note "SNOWFLAKE_TEST_SEED=$seed";

my $trace = "$FindBin::RealBin/../test/trace";
my @lines = `$trace $seed $steps`;
is($?, 0, 'the reference model has decided the requests');
is(scalar(grep { !/^reset/ } @lines), $steps, 'the trace has every request');

my $lease_server = Snowflake::LeaseServer->create('lease_server');
$lease_server->start;
$lease_server->install;
$lease_server->safe_psql('postgres', <<~'SQL');
	SELECT snowflake_fleet.create_fleet();
	INSERT INTO snowflake_fleet.server (name, role) VALUES ('0', 0), ('1', 0), ('2', 0);
	CREATE TABLE trace (step serial, line text);
	SQL
open my $copy, '|-', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $lease_server->connstr('postgres'), '-c',
  q{COPY trace (line) FROM STDIN (DELIMITER E'\x01')} or die "psql: $!";
print $copy map { s/\t/|/gr } @lines;
ok(close $copy, 'the trace is loaded into a table');

my ($code, $out, $err) = $lease_server->psql('postgres', <<~'SQL');
	DO $$
	DECLARE
	  t record;
	  w text[];
	  answer snowflake_fleet.answer;
	  told text;
	  remains text;
	BEGIN
	  FOR t IN SELECT * FROM trace ORDER BY step LOOP
	    w := string_to_array(t.line, '|');
	    told := '';
	    IF w[1] = 'reset' THEN
	      DELETE FROM snowflake_fleet.region;
	      UPDATE snowflake_fleet.fleet SET term = w[2]::bigint, lasting = w[2]::bigint, newest = w[3]::bigint,
	             longest_ms = w[4]::bigint, skew_ms = w[5]::bigint, halted = false, reported_term = 0, began = 0,
	             newest_ms = 0, fresh_ms = 0, adopt_ms = 0;
	      INSERT INTO snowflake_fleet.region (region) SELECT generate_series(0, w[6]::int - 1);
	      CONTINUE;
	    ELSIF w[1] = 'data_loss' THEN
	      PERFORM snowflake_fleet.lose_leases(w[2]::bigint, w[3]::bigint, w[4]::int::boolean);
	    ELSIF w[1] = 'no_data_loss' THEN
	      PERFORM snowflake_fleet.begin_term(w[2]::bigint, w[3]::bigint);
	    ELSIF w[1] = 'revoke' THEN
	      PERFORM snowflake_fleet.end_lease(r) FROM snowflake_fleet.region AS r WHERE r.region = w[2]::int;
	    ELSE
	      answer := snowflake_fleet.decide(ROW(w[2], w[3], w[4]::bigint, w[5]::bigint, w[6]::bigint, w[7]::bigint,
	        w[8]::bigint, w[9]::bigint, w[10]::bigint, w[11]::bigint, w[18]::int[], w[12]::int, w[13]::bigint, w[14]::bigint,
	        w[15]::bigint, w[16]::bigint)::snowflake_fleet.request, w[17]::bigint);
	      told := format('%s,%s,%s,%s,%s,%s,%s,%s', answer.status, answer.term, answer.number, answer.region,
	        answer.grant_number, answer.floor_ms, answer.until_ms, answer.clock_ms);
	    END IF;
	    SELECT format('%s,%s,%s,%s,%s,%s,%s,%s', halted::int, term, newest, reported_term, began, lasting, adopt_ms,
	           newest_ms) INTO remains FROM snowflake_fleet.fleet;
	    SELECT remains || string_agg(format(';%s,%s,%s,%s,%s,%s,%s', r.floor_ms, r.until_ms, r.incarnation, r.grant_number,
	             r.nonce, coalesce(r.server, '-1'), r.state), '' ORDER BY r.region)
	      INTO remains FROM snowflake_fleet.region AS r;
	    IF (w[1] = 'ask' AND told <> w[19]) OR remains <> w[cardinality(w)] THEN
	      RAISE EXCEPTION E'step %: %\nC++: % %\nSQL: % %', t.step, t.line, w[19], w[cardinality(w)], told, remains;
	    END IF;
	  END LOOP;
	END
	$$;
	SQL
is($err, '', 'the SQL functions give the same answers and leave the same rows');

my %seen;
$seen{$_}++ foreach map { /\t(granted|given_back|lost|full|halted|clock_ahead|taken|term_over),/ ? $1 : () } @lines;
cmp_ok($seen{$_} // 0, '>', 20, "the case $_ occurs " . ($seen{$_} // 0) . ' times')
  foreach qw(granted given_back lost full halted clock_ahead taken term_over);

# Counts renewals of leases of which the lease server has no record.
my ($adopted, $older) = (0, 0);
my @holder;
foreach (@lines)
{
	my @words = split /\t/;
	$adopted++ if $words[0] eq 'ask' && $words[1] eq 'renew' && $words[18] =~ /^granted/ && !$holder[$words[11]];
	# Counts requests in which a server returns a lease, although the server has not received the newest renewal of the
	# lease.
	$older++ if $words[0] eq 'ask' && $words[1] eq 'give_back' && $words[14] > $words[5] && $words[18] =~ /^lost/;
	my (undef, @regions) = split /;/, $words[-1];
	@holder = map { (split /,/)[2] } @regions;
}
cmp_ok($adopted, '>', 20, "a region without a holder is renewed $adopted times after a recovery");
cmp_ok($older, '>', 20, "a grant that is newer than the server's newest answer is returned $older times");

done_testing();
