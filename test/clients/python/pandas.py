"""Tests pandas, which turns a column of ids that contains a NULL into float64, and rounds the ids."""
import pandas
import psycopg2
import warnings
from io import StringIO

from tap import done, equal, ok

warnings.filterwarnings("ignore", "pandas only supports SQLAlchemy")
connection = psycopg2.connect("")
connection.autocommit = True
cursor = connection.cursor()
cursor.execute("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text, parent bigint)")
cursor.execute("INSERT INTO photos (caption) SELECT 'original' FROM generate_series(1, 100)")
cursor.execute("INSERT INTO photos (caption, parent) SELECT 'copy', id FROM photos")
cursor.execute("SELECT id::text, parent::text FROM photos ORDER BY id")
as_text = cursor.fetchall()
parents = {parent for _, parent in as_text if parent}

photos = pandas.read_sql("SELECT id, parent FROM photos ORDER BY id", connection)
equal([str(id) for id in photos.id], [id for id, _ in as_text], "ids of a column without NULL")

equal(str(photos.parent.dtype), "float64", "trap: a column of references with NULLs is float64")
rounded = {str(int(parent)) for parent in photos.parent.dropna()}
ok(len(rounded) < len(parents), f"trap: of 100 parents {len(rounded)} are left", rounded)
found = photos.merge(photos, left_on="parent", right_on="id")
found = {(str(copy), str(original)) for copy, original in zip(found.id_x, found.id_y)}
wrong = found - set(as_text)
ok(wrong, f"trap: a merge on them finds {len(wrong)} photos that are not the copy's parent", found)

photos = pandas.read_sql("SELECT id::text, parent::text FROM photos ORDER BY id", connection)
equal(list(photos.itertuples(index=False, name=None)), as_text, "as text: exact")
found = photos.merge(photos, left_on="parent", right_on="id")
equal(set(zip(found.id_x, found.id_y)), {row for row in as_text if row[1]}, "as text: a merge finds each photo's parent")

photos = pandas.DataFrame({"id": [id for id, _ in as_text],
                           "parent": pandas.array([parent and int(parent) for _, parent in as_text], dtype="Int64")})
equal({str(parent) for parent in photos.parent.dropna()}, parents, "as Int64, of Python's integers: exact")
cursor.execute("SELECT json_agg(json_build_object('id', id::text) ORDER BY id)::text FROM photos")
as_json = cursor.fetchone()[0]
rounded = {str(id) for id in pandas.read_json(StringIO(as_json)).id}
ok(len(rounded) < len(as_text), f"trap: read_json makes {len(rounded)} numbers of {len(as_text)} strings", rounded)
photos = pandas.read_json(StringIO(as_json), dtype={"id": "string"})
equal(list(photos.id), [id for id, _ in as_text], "read_json with a dtype: exact")
if int(pandas.__version__.split(".")[0]) >= 2:
    photos = pandas.read_sql("SELECT id, parent FROM photos ORDER BY id", connection, dtype_backend="numpy_nullable")
    equal({str(parent) for parent in photos.parent.dropna()}, parents, "nullable types, since pandas 2: exact")
done()
