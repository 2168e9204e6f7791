"""Runs the tests in the packages of Tryton or HyperKitty, and prints the result of each test.

    own_tests.py NAME [SHARD]

With SHARD, the tables of the tests' database are adopted after the application has created them."""
import os
import subprocess
import sys
import unittest

name, *shard = sys.argv[1:]
database = f"test_{name}_{'adopted' if shard else 'plain'}"


class Results(unittest.TextTestResult):
    def stopTest(self, test):
        ends = {"failed": self.failures, "error": self.errors, "skipped": self.skipped}
        last = {end: getattr(tests[-1][0], "test_case", tests[-1][0]) for end, tests in ends.items() if tests}
        print("=", test.id(), next((end for end in last if last[end] is test), "passed"), flush=True)
        super().stopTest(test)


def adopt():
    for statement in "CREATE EXTENSION snowflake_migrate CASCADE", f"CALL snowflake.adopt_schemas('{{public}}', {shard[0]}, rewrite => true)":
        subprocess.run(["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement], check=True)


def run_tryton():
    from trytond.config import config
    config.set("database", "uri", "postgresql://")
    os.environ["DB_NAME"] = database
    from trytond.tests import test_tryton

    activate_module = test_tryton.activate_module

    def activate_and_adopt(*arguments, **keywords):
        new = not test_tryton.db_exist(database)
        activate_module(*arguments, **keywords)
        if new and shard:
            adopt()

    test_tryton.activate_module = activate_and_adopt
    # Only these modules are tested. The tests of trytond take many minutes, and the tests of the module currency need
    # the network.
    modules = ["country", "party", "company", "product"]
    unittest.TextTestRunner(resultclass=Results).run(test_tryton.modules_suite(modules, doc=False))


def run_hyperkitty():
    os.environ["DJANGO_SETTINGS_MODULE"] = "hyperkitty.tests.settings_test"
    import django
    from django.conf import settings
    settings.DATABASES["default"] = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres",
                                     "HOST": os.environ["PGHOST"], "TEST": {"NAME": database}}
    django.setup()
    from django.test.runner import DiscoverRunner

    class Runner(DiscoverRunner):
        def setup_databases(self, **keywords):
            databases = super().setup_databases(**keywords)
            if shard:
                adopt()
            return databases

        def get_resultclass(self):
            return Results

    Runner(interactive=False).run_tests(["hyperkitty"])


{"tryton": run_tryton, "hyperkitty": run_hyperkitty}[name]()
