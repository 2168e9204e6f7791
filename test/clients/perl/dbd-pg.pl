# Tests ids with DBD::Pg. INSERT ... RETURNING returns ids without rounding. DBI's last_insert_id() fails, because the
# table has no sequence.

use strict;
use warnings FATAL => 'all';

use DBI;
use Test::More;

my $db = DBI->connect('dbi:Pg:', undef, undef, { RaiseError => 1, PrintError => 0, AutoCommit => 1 });
$db->do('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)');
sub as_text { return $db->selectcol_arrayref('SELECT id::text FROM photos ORDER BY photos.id'); }

my ($id) = $db->selectrow_array('INSERT INTO photos (caption) VALUES (?) RETURNING id', undef, 'first light');
is_deeply([$id], as_text(), 'RETURNING id');
is($db->selectrow_array('SELECT caption FROM photos WHERE id = ?', undef, $id), 'first light', 'the id as a parameter');

$db->do('COPY photos (caption) FROM STDIN');
$db->pg_putcopydata("copied\n") foreach 1 .. 1000;
$db->pg_putcopyend;
is_deeply($db->selectcol_arrayref('SELECT id FROM photos ORDER BY id'), as_text(), '1,001 ids');
is($db->selectrow_array('SELECT snowflake.shard_of(snowflake.next_id(?))', undef, 7), 7, 'the shard as a parameter');

ok(!eval { $db->last_insert_id(undef, undef, 'photos', undef) }, 'last_insert_id() fails');
like($@, qr/No suitable column found for last_insert_id/, 'the error of last_insert_id() has a reason');

done_testing();
