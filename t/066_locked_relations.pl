# Locks each relation of the extension in turn. The function next_id() must wait if and only if health() shows that a
# lock prevents minting.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create_running('main', conf => "max_prepared_transactions = 1\n");
$node->safe_psql('postgres', 'SELECT snowflake.next_id(5)');
my %kind = map { split /\|/ } split /\n/, $node->safe_psql('postgres', <<~'SQL');
	SELECT objid::regclass, relkind
	  FROM pg_depend JOIN pg_class ON pg_class.oid = objid
	 WHERE classid = 'pg_class'::regclass AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
	SQL
is(scalar(grep { $kind{$_} eq 'S' } keys %kind), 5, 'the extension has five sequences');
cmp_ok(scalar(grep { $kind{$_} eq 'r' } keys %kind), '>=', 3, 'the extension has at least three tables');

# Returns whether a statement fails by lock_timeout.
sub waits
{
	my ($sql) = @_;
	my $error = $node->error_of("SET lock_timeout = '100ms'; $sql");
	like($error, qr/^(?:no error|.*55P03|.*55000)/s, "$sql: the call succeeds, is refused, or ends with lock_timeout") or diag($error);
	return $error =~ /55P03/;
}
foreach my $relation (sort keys %kind)
{
	# ALTER TABLE ... RENAME locks a table, a sequence or a view in ACCESS EXCLUSIVE mode.
	$node->safe_psql('postgres', "BEGIN; ALTER TABLE $relation RENAME TO other; PREPARE TRANSACTION 'lock'");
	$node->restart if $kind{$relation} ne 'v';
	my $health = $node->error_of("SET lock_timeout = '100ms'; SELECT reason FROM snowflake.health()");
	like($health, qr/^no error/, "$relation is locked: health() does not wait");
	my $shown = $health =~ /"another session has locked a sequence of the extension"/;
	my $waits = waits('SELECT snowflake.next_id(5)');
	is($waits ? 1 : 0, $shown ? 1 : 0, "$relation is locked: a call waits if and only if health() shows it");
	ok(!$waits, "$relation is locked: no call waits for it, because it is not a sequence") if $kind{$relation} ne 'S';
	$node->safe_psql('postgres', "ROLLBACK PREPARED 'lock'");
}
is($node->safe_psql('postgres', 'SELECT minting FROM snowflake.health()'), 't', 'without a lock health() shows that the database mints');

done_testing();
