// Tests that TypeORM returns each id as a string, without rounding. The primary key is declared as PrimaryColumn,
// because PrimaryGeneratedColumn needs a sequence or a UUID.
'use strict';

const { DataSource, EntitySchema } = require('typeorm');
const { equal, run, inOrder } = require('../javascript/tap');

const Photo = new EntitySchema({
  name: 'Photo',
  tableName: 'photos',
  columns: {
    id: { type: 'bigint', primary: true, default: () => 'snowflake.next_id(5)' },
    caption: { type: 'text' },
  },
});

run(async () => {
  const source = await new DataSource({
    type: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT), username: process.env.PGUSER,
    database: process.env.PGDATABASE, entities: [Photo], synchronize: true,
  }).initialize();
  const asText = async () => (await source.query('SELECT id::text AS digits FROM photos ORDER BY id')).map((row) => row.digits);

  const photos = source.getRepository(Photo);
  const photo = await photos.save({ caption: 'first light' });
  equal([photo.id], await asText(), 'save(), a string');
  equal((await photos.findOneByOrFail({ id: photo.id })).caption, 'first light', 'findOneBy({ id })');
  const many = await photos.insert(Array.from({ length: 1000 }, () => ({ caption: 'many' })));
  equal(inOrder([photo.id, ...many.identifiers.map((one) => one.id)]), await asText(), '1,000 rows in an insert()');
  equal((await source.driver.createSchemaBuilder().log()).upQueries.map((one) => one.query), [], 'synchronize finds nothing to change');
  await source.destroy();

  // Tests adopt() on an application whose key had the type integer. The model of the application stays unchanged.
  const narrow = new EntitySchema({
    name: 'Comment', tableName: 'comments', columns: { id: { type: 'int', primary: true, generated: true }, body: { type: 'text' } },
  });
  const opened = () => new DataSource({ ...source.options, entities: [narrow] }).initialize();
  const before = await opened();
  await before.getRepository('Comment').save({ body: 'old' });
  await before.query('CREATE EXTENSION snowflake_migrate');
  await before.query("CALL snowflake.adopt('comments', 5, rewrite => true)");
  const [{ id }] = await before.query("INSERT INTO comments (body) VALUES ('new') RETURNING id");
  equal((await before.getRepository('Comment').find()).map((row) => row.id), ['1', id], 'an adopted table: ids of old rows are strings, too');
  await before.destroy();
  const after = await opened();
  equal((await after.getRepository('Comment').find()).map((row) => row.id), [1, 2], 'trap: with the old model, synchronize loses all ids');
  equal(await after.query('SELECT problem FROM snowflake.adopted_columns()'), [{ problem: 'its default does not mint ids' }], '... which adopted_columns() reports');
  await after.destroy();
});
