"""Tests that psycopg 3 returns each id as an exact int, and which type a parameter for the shard has."""
import psycopg
from psycopg.types.numeric import Int8

from tap import done, equal, ok

connection = psycopg.connect(autocommit=True)
connection.execute("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)")


def as_text(where="true"):
    return [row[0] for row in connection.execute(f"SELECT id::text FROM photos WHERE {where} ORDER BY id")]


id = connection.execute("INSERT INTO photos (caption) VALUES (%s) RETURNING id", ["first light"]).fetchone()[0]
equal([str(id)], as_text(), "RETURNING id")
equal(connection.execute("SELECT caption FROM photos WHERE id = %s", [id]).fetchone(), ("first light",), "the id as a parameter")

cursor = connection.cursor()
cursor.executemany("INSERT INTO photos (caption) VALUES (%s) RETURNING id", [("many",)] * 100, returning=True)
ids = []
while True:
    ids.append(str(cursor.fetchone()[0]))
    if not cursor.nextset():
        break
equal(sorted(ids, key=int), as_text("caption = 'many'"), "executemany(returning=True)")

with cursor.copy("COPY photos (caption) FROM STDIN") as copy:
    for _ in range(1000):
        copy.write_row(["copied"])
for binary in (False, True):
    rows = connection.cursor(binary=binary).execute("SELECT id FROM photos ORDER BY id").fetchall()
    equal([str(row[0]) for row in rows], as_text(), f"1,101 ids, binary={binary}")

shard = 7
id = connection.execute("SELECT snowflake.next_id(%s)", [shard]).fetchone()[0]
equal(connection.execute("SELECT snowflake.shard_of(%s)", [id]).fetchone()[0], shard, "the shard as a parameter")
try:
    connection.execute("SELECT snowflake.next_id(%s)", [Int8(shard)])
    ok(False, "a shard that is sent as a bigint is refused", "no error")
except psycopg.errors.UndefinedFunction as error:
    ok("next_id(bigint)" in str(error), "a shard that is sent as a bigint is refused", error)
id = connection.execute("SELECT snowflake.next_id(%s::int)", [Int8(shard)]).fetchone()[0]
equal(connection.execute("SELECT snowflake.shard_of(%s)", [id]).fetchone()[0], shard, "and accepted with ::int")
done()
