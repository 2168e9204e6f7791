"""Tests adopt_schemas() on a Django 5 application with AutoField keys, whose models must change at the same time."""
import os
import pathlib
import sys
import tempfile

# Uses packages of Debian unstable, which test/clients/install.sh unpacks.
sys.path.insert(0, str(pathlib.Path(__file__).parent / "django5/usr/lib/python3/dist-packages"))
from tap import done, equal, ok

made = tempfile.TemporaryDirectory()
pathlib.Path(made.name, "widened.py").write_text('''
from django.contrib.auth.apps import AuthConfig


class WideAuthConfig(AuthConfig):
    default_auto_field = "django.db.models.BigAutoField"
''')
sys.path.insert(0, made.name)
AS_BEFORE, CHANGED = "django.contrib.auth", "widened.WideAuthConfig"


def application(auth, work):
    """Runs work() in a separate process, with the models of the Django application auth."""
    child = os.fork()
    if child == 0:
        import django
        from django.conf import settings

        settings.configure(
            SECRET_KEY="of a test", USE_TZ=True, INSTALLED_APPS=["django.contrib.contenttypes", auth],
            PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
            DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"],
                                   "PORT": os.environ["PGPORT"], "NAME": os.environ["PGDATABASE"],
                                   "USER": os.environ["PGUSER"]}})
        django.setup()
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def query(sql):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else None


def create():
    """Creates the tables, a user, and the extension, before the keys are adopted."""
    from django.contrib.auth.models import User
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    User.objects.create_user("old", password="secret")
    query("CREATE EXTENSION snowflake_migrate CASCADE")
    query("ALTER DATABASE %s SET client_min_messages = error" % os.environ["PGDATABASE"])
    return 0


def use(name):
    """Does an application's work with a new user. Returns 0, or the number of the first step that fails."""

    def work():
        from django.contrib.auth import authenticate
        from django.contrib.auth.models import Group, User

        user = User.objects.create_user(name, password="secret")
        group = Group.objects.create(name=name)
        user.groups.add(group)
        if authenticate(username=name, password="secret").pk != user.pk:
            return 1
        if not User.objects.filter(pk=user.pk).exists():
            return 2
        if list(User.objects.get(pk=user.pk).groups.all()) != [group]:
            return 3
        return 0 if user.delete()[0] == 2 and not User.objects.filter(username=name).exists() else 4

    return work


def refer():
    """Runs a later migration that adds a reference to the user. Returns 0 if the new column is bigint."""
    from django.contrib.auth.models import User
    from django.db import connection, models

    class Photo(models.Model):
        owner = models.ForeignKey(User, on_delete=models.CASCADE)

        class Meta:
            app_label = "photos"

    with connection.schema_editor() as editor:
        editor.create_model(Photo)
    found = query("SELECT format_type(atttypid, NULL) FROM pg_attribute"
                  " WHERE attrelid = 'photos_photo'::regclass AND attname = 'owner_id'")
    query("DROP TABLE photos_photo")
    return 0 if found == [("bigint",)] else 1


def adopt():
    from django.db import connection

    query("CALL snowflake.adopt_schemas('{public}', shard => 5, rewrite => true, drop_sequence => true)")
    narrow = query("SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
                   " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attname ~ '(^|_)id$'"
                   "   AND atttypid = 'integer'::regtype")
    # Each schema has a table of Django, in which Django records the applied migrations.
    return narrow[0][0]


def check():
    """Returns 0 if the application finds its old rows."""
    from django.contrib.auth.models import User

    return 0 if User.objects.get(username="old") == User.objects.get(pk=1) else 1


equal(application(AS_BEFORE, create), 0, "the tables of contenttypes and auth, with a user")
equal(application(AS_BEFORE, use("first")), 0, "before: an application uses them")
equal(application(AS_BEFORE, adopt), 0, "adopt_schemas(): no column that holds ids is integer")
equal(application(AS_BEFORE, use("second")), 2, "models as before: a new user is not found by its key, without an error")
equal(application(AS_BEFORE, refer), 1, "models as before: a new reference is an integer column")
equal(application(CHANGED, check), 0, "models with BigAutoField: the old user is there")
equal(application(CHANGED, use("third")), 0, "models with BigAutoField: a new user logs in, is found, and is deleted")
equal(application(CHANGED, refer), 0, "models with BigAutoField: a new reference is a bigint column")
done()
