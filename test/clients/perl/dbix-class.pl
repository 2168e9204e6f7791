# Tests ids with DBIx::Class. With the attribute retrieve_on_insert, DBIx::Class reads the id of a new row by RETURNING.
# If the result of populate() is not used, DBIx::Class inserts only the columns that the given rows contain.

use strict;
use warnings FATAL => 'all';

package Photo;
use parent 'DBIx::Class::Core';
__PACKAGE__->table('photos');
__PACKAGE__->add_columns(
	id => { data_type => 'bigint', default_value => \'snowflake.next_id(5)', retrieve_on_insert => 1 },
	caption => { data_type => 'text', is_nullable => 1 });
__PACKAGE__->set_primary_key('id');

package Schema;
use parent 'DBIx::Class::Schema';
__PACKAGE__->register_class('Photo', 'Photo');

package main;
use Test::More;

my $schema = Schema->connect('dbi:Pg:', undef, undef, { AutoCommit => 1 });
my $db = $schema->storage->dbh;
$db->do('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)');
sub as_text { return $db->selectcol_arrayref('SELECT id::text FROM photos ORDER BY photos.id'); }

my $photo = $schema->resultset('Photo')->create({ caption => 'first light' });
is_deeply([ $photo->id ], as_text(), 'create() has the id');
is($schema->resultset('Photo')->find($photo->id)->caption, 'first light', 'find() by it');
$schema->resultset('Photo')->populate([ map { { caption => $_ } } 1 .. 100 ]);
is_deeply([ $schema->resultset('Photo')->search({}, { order_by => 'id' })->get_column('id')->all ], as_text(), '101 ids');

ok(!eval { $schema->resultset('Photo')->populate([ { id => undef, caption => 'null' } ]); 1 }, 'a null key is refused');
$db->do('CREATE TRIGGER set_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id()');
$schema->resultset('Photo')->populate([ map { { id => undef, caption => $_ } } 1 .. 100 ]);
is(scalar @{ as_text() }, 201, 'but with set_id()');

done_testing();
