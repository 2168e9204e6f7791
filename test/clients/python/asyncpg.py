"""Tests that asyncpg, which sends values in binary form, returns each id as an exact int."""
import asyncio

import asyncpg

from tap import done, equal


async def main():
    connection = await asyncpg.connect()
    await connection.execute("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)")

    async def as_text():
        return [row[0] for row in await connection.fetch("SELECT id::text FROM photos ORDER BY id")]

    id = await connection.fetchval("INSERT INTO photos (caption) VALUES ($1) RETURNING id", "first light")
    equal([str(id)], await as_text(), "RETURNING id")
    equal(await connection.fetchval("SELECT caption FROM photos WHERE id = $1", id), "first light", "the id as a parameter")

    await connection.copy_records_to_table("photos", records=[("copied",)] * 1000, columns=["caption"])
    await connection.executemany("INSERT INTO photos (caption) VALUES ($1)", [("many",)] * 100)
    ids = [str(row["id"]) for row in await connection.fetch("SELECT id FROM photos ORDER BY id")]
    equal(ids, await as_text(), "1,101 ids")
    equal(await connection.fetchval("SELECT snowflake.shard_of(snowflake.next_id($1))", 7), 7, "the shard as a parameter")
    await connection.close()


asyncio.run(main())
done()
