// Tests that Sequelize returns each id as a string, without rounding.
'use strict';

const { Sequelize, DataTypes } = require('sequelize');
const { equal, run, inOrder } = require('../javascript/tap');

run(async () => {
  const sequelize = new Sequelize(process.env.PGDATABASE, process.env.PGUSER, '', {
    dialect: 'postgres', host: process.env.PGHOST, port: process.env.PGPORT, logging: false,
  });
  const Photo = sequelize.define('photo', {
    id: { type: DataTypes.BIGINT, primaryKey: true, defaultValue: sequelize.literal('snowflake.next_id(5)') },
    caption: DataTypes.TEXT,
  }, { timestamps: false });
  await sequelize.sync();
  await sequelize.sync({ alter: true });
  const asText = async () =>
    (await sequelize.query('SELECT id::text AS digits FROM photos ORDER BY id'))[0].map((row) => row.digits);

  const photo = await Photo.create({ caption: 'first light' });
  equal([photo.id], await asText(), 'create(), a string');
  equal((await Photo.findByPk(photo.id)).caption, 'first light', 'findByPk()');
  const many = await Photo.bulkCreate(Array.from({ length: 1000 }, () => ({ caption: 'many' })));
  equal(inOrder([photo.id, ...many.map((one) => one.id)]), await asText(), 'bulkCreate()');
  const [[{ default: columnDefault }]] = await sequelize.query(
    "SELECT column_default AS default FROM information_schema.columns WHERE table_name = 'photos' AND column_name = 'id'");
  equal(columnDefault, 'snowflake.next_id(5)', 'the default, after sync({ alter: true }) as well');

  // Tests adopt() on an application whose key had the type integer. The model of the application stays unchanged.
  const Comment = sequelize.define('comment', {
    id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, body: DataTypes.TEXT,
  }, { timestamps: false });
  await Comment.sync();
  const old = await Comment.create({ body: 'old' });
  await sequelize.query('CREATE EXTENSION snowflake_migrate');
  await sequelize.query("CALL snowflake.adopt('comments', 5, rewrite => true)");
  const comment = await Comment.create({ body: 'new' });
  equal([old.id, (await Comment.findByPk(old.id)).id, typeof comment.id], [1, '1', 'string'], 'an adopted table: ids of old rows are strings, too');
  await Comment.update({ body: 'changed' }, { where: { id: comment.id } });
  equal((await Comment.findByPk(comment.id)).body, 'changed', '... and a model that says INTEGER finds new rows');
  await Comment.sync({ alter: true });
  equal((await sequelize.query('SELECT problem FROM snowflake.adopted_columns()'))[0], [{ problem: null }], '... also after sync({ alter: true })');
  await sequelize.close();
});
