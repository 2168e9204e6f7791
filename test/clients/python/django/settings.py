import os

SECRET_KEY = "of a test"
INSTALLED_APPS = ["notes"]
DEFAULT_AUTO_FIELD = "notes.fields.SnowflakeField"
USE_TZ = True
# The test makes Django migrations at run time, in this separate directory.
MIGRATION_MODULES = {"notes": "migrations_of_notes"}
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "NAME": os.environ["PGDATABASE"],
        "USER": os.environ["PGUSER"],
        "TEST": {"TEMPLATE": os.environ.get("TEST_TEMPLATE")},
    }
}
