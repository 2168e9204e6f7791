# Tests ids with ActiveRecord. The column defaults of migrations must be in schema.rb, and a role that is not a
# superuser must be able to create test databases.

require 'active_record'
require 'stringio'

$count = 0
def ok(passed, what, found = '')
  $count += 1
  puts "#{passed ? 'ok' : 'not ok'} #{$count} - #{what}"
  puts "# found: #{found.to_s[0, 500].inspect}" unless passed
end

settings = { adapter: 'postgresql', database: ENV['PGDATABASE'], host: ENV['PGHOST'], port: ENV['PGPORT'], username: ENV['PGUSER'] }
ActiveRecord::Base.establish_connection(settings)
ActiveRecord::Schema.verbose = false

class CreatePhotos < ActiveRecord::Migration[6.1]
  def change
    create_table :photos, id: :bigint, default: -> { 'snowflake.next_id(5)' } do |t|
      t.text :caption
    end
  end
end

class Photo < ActiveRecord::Base
end

CreatePhotos.suppress_messages { CreatePhotos.migrate(:up) }
as_text = -> { ActiveRecord::Base.connection.select_values('SELECT id::text FROM photos ORDER BY photos.id') }

photo = Photo.create!(caption: 'first light')
ok([photo.id.to_s] == as_text.call, 'create!', photo.id)
ok(Photo.find(photo.id).caption == 'first light', 'find')
many = Photo.insert_all(Array.new(1000) { { caption: 'many' } })
ok([photo.id, *many.rows.flatten].map(&:to_s).sort_by(&:to_i) == as_text.call, 'insert_all')

# Tests a bulk import, which sends NULL for each id, because the table has no sequence.
require 'activerecord-import'
begin
  Photo.import(Array.new(2) { Photo.new(caption: 'imported') })
  ok(false, 'trap: a bulk import sends NULL')
rescue ActiveRecord::NotNullViolation => e
  ok(e.message.include?('null value in column "id"'), 'trap: a bulk import sends NULL', e.message)
end
ActiveRecord::Base.connection.execute('CREATE TRIGGER set_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id()')
ok(Photo.import(Array.new(100) { Photo.new(caption: 'imported') }).ids.uniq.size == 100, 'but with set_id()')
ActiveRecord::Base.connection.execute('DROP TRIGGER set_id ON photos')

# Tests adopt() on an application whose primary keys had the type integer, while a process of the application continues
# to run.
class Comment < ActiveRecord::Base
end
base = ActiveRecord::Base.connection
base.create_table(:comments, id: :integer) { |t| t.text :body }
base.create_table(:likes, id: :integer) { |t| t.belongs_to :comment, type: :integer }
Comment.create!(body: 'old')
base.execute('CREATE EXTENSION snowflake_migrate')
base.execute("CALL snowflake.adopt('comments', 5, rewrite => true)")
failed = begin
  Comment.create!(body: 'new')
rescue ActiveModel::RangeError, ActiveRecord::StatementInvalid => e
  e.class.name
end
ok(failed == 'ActiveModel::RangeError', 'trap: an adopted table, and a process that has read the types before', failed)
id = base.select_value("INSERT INTO comments (body) VALUES ('new') RETURNING id")
ok(Comment.where(id: id).to_a == [], '... which finds no new row')
Comment.reset_column_information
ok([Comment.find(1).body, Comment.create!(body: 'later').reload.body, Comment.find(id).body] == %w[old later new], '... but after a restart')
%w[comments likes].each { |table| base.drop_table(table) }
base.execute('DELETE FROM snowflake.adopted')
base.execute('DROP EXTENSION snowflake_migrate')

# The argument of SchemaDumper.dump is a connection pool since Rails 7.2, and was a connection before.
dump = lambda do
  base = ActiveRecord::Base
  StringIO.new.tap { |io| ActiveRecord::SchemaDumper.dump(ActiveRecord.version < Gem::Version.new('7.2') ? base.connection : base.connection_pool, io) }
end
if ActiveRecord.version >= Gem::Version.new('7.1')
  ok(dump.call.string.include?('create_schema "snowflake"'), 'trap: since 7.1 schema.rb makes the schema of the extension itself')
end

ActiveRecord::ConnectionAdapters::PostgreSQLAdapter.prepend(Module.new do
  def schema_names = super - ['snowflake']
end)
schema = dump.call
ok(!schema.string.include?('create_schema'), 'schema.rb leaves the schema to the extension', schema.string)
ok(schema.string.include?('enable_extension "snowflake"'), 'schema.rb has the extension', schema.string)
ok(schema.string.include?('default: -> { "snowflake.next_id(5)" }'), 'schema.rb has the default', schema.string)

# Runs the steps of `rails db:test:prepare` as a role that has only CREATEDB.
application = settings.merge(username: 'application')
load_schema = lambda do |template|
  ActiveRecord::Base.establish_connection(application.merge(database: 'postgres'))
  ActiveRecord::Base.connection.recreate_database('client_activerecord_test', template: template)
  ActiveRecord::Base.establish_connection(application.merge(database: 'client_activerecord_test'))
  eval(schema.string)
  Photo.reset_column_information
  Photo.create!(caption: 'test').id
end
ok(load_schema.call('template1').positive?, 'test databases, the extension is in template1')
begin
  load_schema.call('template0')
  ok(false, 'trap: test databases, it is not', 'no error')
rescue ActiveRecord::StatementInvalid => e
  ok(e.message.include?('permission denied to create extension'), 'trap: test databases, it is not', e.message)
end
puts "1..#{$count}"
