"""Tests that psycopg2 returns each id as an exact int."""
import io

import psycopg2
from psycopg2.extras import execute_values

from tap import done, equal

connection = psycopg2.connect("")
connection.autocommit = True
cursor = connection.cursor()
cursor.execute("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)")


def as_text(where="true"):
    cursor.execute(f"SELECT id::text FROM photos WHERE {where} ORDER BY id")
    return [row[0] for row in cursor.fetchall()]


cursor.execute("INSERT INTO photos (caption) VALUES (%s) RETURNING id", ["first light"])
id = cursor.fetchone()[0]
equal([str(id)], as_text(), "RETURNING id")
cursor.execute("SELECT caption FROM photos WHERE id = %s", [id])
equal(cursor.fetchone(), ("first light",), "the id as a parameter")

rows = [("many",)] * 1000
ids = execute_values(cursor, "INSERT INTO photos (caption) VALUES %s RETURNING id", rows, fetch=True)
equal(sorted((str(id) for id, in ids), key=int), as_text("caption = 'many'"), "execute_values(fetch=True)")

cursor.copy_expert("COPY photos (caption) FROM STDIN", io.StringIO("copied\n" * 1000))
cursor.execute("SELECT id FROM photos ORDER BY id")
equal([str(id) for id, in cursor.fetchall()], as_text(), "2,001 ids")

cursor.execute("SELECT snowflake.shard_of(snowflake.next_id(%s))", [7])
equal(cursor.fetchone()[0], 7, "the shard as a parameter")
done()
