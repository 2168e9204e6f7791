// Tests that Objection returns each id as a string, without rounding.
'use strict';

const { Model } = require('objection');
const { equal, run, inOrder } = require('./tap');
const knex = require('knex')({ client: 'pg', connection: {} });

class Photo extends Model {
  static tableName = 'photos';
  static jsonSchema = { type: 'object', properties: { id: { type: 'string' }, caption: { type: 'string' } } };
}

run(async () => {
  await knex.schema.createTable('photos', (t) => {
    t.bigint('id').primary().defaultTo(knex.raw('snowflake.next_id(5)'));
    t.text('caption');
  });
  Model.knex(knex);
  const asText = async () => (await knex('photos').select(knex.raw('id::text AS digits')).orderBy('id')).map((row) => row.digits);

  const photo = await Photo.query().insert({ caption: 'first light' });
  equal([photo.id], await asText(), 'insert()');
  equal((await Photo.query().findById(photo.id)).caption, 'first light', 'findById()');
  const many = await Photo.query().insert(Array.from({ length: 1000 }, () => ({ caption: 'many' })));
  equal(inOrder([photo.id, ...many.map((one) => one.id)]), await asText(), '1,000 rows in an insert()');
  await knex.destroy();
});
