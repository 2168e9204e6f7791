"""Tests Django: a field for keys that the database mints, migrations, and test databases of an ordinary role."""
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

from tap import done, equal, ok

# Hides warnings that Django 3.2 causes in newer versions of Python.
warnings.filterwarnings("ignore", category=DeprecationWarning)

project = pathlib.Path(__file__).parent / "django"
made = tempfile.TemporaryDirectory()
migrations = pathlib.Path(made.name) / "migrations_of_notes"
migrations.mkdir()
(migrations / "__init__.py").touch()
sys.path += [str(project), made.name]
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"

import django
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations import AlterField, CreateModel, RunSQL
from django.db.migrations.state import ProjectState

django.setup()
from notes.fields import SnowflakeField
from notes.models import Photo


def query(sql, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def as_text():
    return [id for id, in query("SELECT id::text FROM notes_photo ORDER BY id")]


call_command("makemigrations", "notes", verbosity=0)
call_command("migrate", verbosity=0)
try:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    ok(True, "makemigrations --check finds nothing to change")
except SystemExit:
    ok(False, "makemigrations --check finds nothing to change")

photo = Photo.objects.create(caption="first light")
equal([str(photo.pk)], as_text(), "create()")
equal(Photo.objects.get(pk=photo.pk).caption, "first light", "get() by id")
photos = Photo.objects.bulk_create([Photo(caption="many", parent=photo) for _ in range(1000)])
equal(sorted([str(photo.pk)] + [str(p.pk) for p in photos], key=int), as_text(), "bulk_create()")
equal({str(p.parent_id) for p in Photo.objects.filter(caption="many")}, {str(photo.pk)}, "foreign keys")


class Notes:
    """A table that migrations create and change, one operation after the other."""

    state = ProjectState()

    def migrate(self, operation):
        after = self.state.clone()
        operation.state_forwards("notes", after)
        with connection.schema_editor() as editor:
            operation.database_forwards("notes", editor, self.state, after)
        self.state = after

    def default(self):
        rows = query("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'notes_note'::regclass")
        return rows[0][0] if rows else None


def minting_by(shard):
    return RunSQL(f"ALTER TABLE notes_note ALTER id DROP IDENTITY IF EXISTS, ALTER id SET DEFAULT snowflake.next_id({shard})",
                  state_operations=[AlterField("Note", "id", SnowflakeField(primary_key=True, shard=shard))])


notes = Notes()
notes.migrate(CreateModel("Note", [("id", models.BigAutoField(primary_key=True)), ("text", models.TextField())]))
notes.migrate(AlterField("Note", "id", SnowflakeField(primary_key=True, shard=5)))
ok("next_id" not in str(notes.default()), "trap: AlterField from BigAutoField sets no default", notes.default())
notes.migrate(minting_by(5))
equal(notes.default(), "snowflake.next_id(5)", "RunSQL with state_operations does")
notes.migrate(AlterField("Note", "id", SnowflakeField(primary_key=True, shard=9)))
equal(notes.default(), "snowflake.next_id(5)", "trap: AlterField from one shard to another changes nothing")
notes.migrate(minting_by(9))
equal(notes.default(), "snowflake.next_id(9)", "RunSQL with state_operations does")


def manage_test(**environment):
    """Runs manage.py test as a role that has only CREATEDB."""
    path = os.pathsep.join([str(project), made.name])
    return subprocess.run([sys.executable, "-W", "ignore", "-m", "django", "test", "notes", "--noinput"], cwd=made.name, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": path, "PGUSER": "application", **environment})


run = manage_test()
ok(run.returncode == 0 and "Ran 1 test" in run.stderr, "test databases, the extension is in template1", run.stderr)
run = manage_test(TEST_TEMPLATE="template0")
ok('schema "snowflake" does not exist' in run.stderr, "trap: test databases, the extension is not in template1", run.stderr)
done()
