"""Does ordinary work in HyperKitty, prints the rows that it finds, and opens its pages."""
import os
import sys
from email.message import EmailMessage

import django
from django.conf import settings

APPS = ["admin", "auth", "contenttypes", "sessions", "sites", "messages", "staticfiles"]
settings.configure(
    SECRET_KEY="of a test", USE_TZ=True, SITE_ID=1, ALLOWED_HOSTS=["*"], ROOT_URLCONF="urls", STATIC_URL="/static/",
    STATIC_ROOT=os.environ["PGHOST"],
    INSTALLED_APPS=["hyperkitty", "rest_framework", "django_gravatar", "compressor", "haystack", "django_extensions",
                    "django_q", "allauth", "allauth.account", "allauth.socialaccount",
                    "django_mailman3", *("django.contrib." + a for a in APPS)],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "hyperkitty", "USER": "postgres",
                           "HOST": os.environ["PGHOST"]}},
    HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
    Q_CLUSTER={"orm": "default", "sync": True, "name": "test"}, MAILMAN_ARCHIVER_KEY="key", MAILMAN_ARCHIVER_FROM=["127.0.0.1"],
    MAILMAN_REST_API_URL="http://localhost:1", MAILMAN_REST_API_USER="u", MAILMAN_REST_API_PASS="p",
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"], DEFAULT_AUTO_FIELD="django.db.models.AutoField")
django.setup()
from django.core.management import call_command  # noqa: E402

if sys.argv[1] == "migrate":
    call_command("migrate", verbosity=0)
    sys.exit()

from django.contrib.auth.models import User  # noqa: E402
from hyperkitty.lib.incoming import add_to_list  # noqa: E402
from hyperkitty.models import Email, Favorite, MailingList, Tag, Tagging, Thread, Vote  # noqa: E402

name = sys.argv[1]
for n in range(12):
    message = EmailMessage()
    message["From"], message["Subject"] = f"{name}{n % 4}@example.com", f"topic {n % 3}"
    message["Message-ID"], message["Date"] = f"<{name}-{n}@example.com>", "Wed, 25 Nov 2026 10:00:00 +0000"
    if n >= 3:
        message["In-Reply-To"] = f"<{name}-{n - 3}@example.com>"
    message.set_content("body")
    if n == 0:
        message.add_attachment(b"bytes", maintype="application", subtype="octet-stream", filename="a.bin")
    add_to_list(f"{name}@example.com", message)
user = User.objects.create_user(name, f"{name}@example.com", "secret")
threads = list(Thread.objects.filter(mailinglist__name=f"{name}@example.com").order_by("id"))
Favorite.objects.create(user=user, thread=threads[0])
Tagging.objects.create(thread=threads[0], user=user, tag=Tag.objects.create(name=name))
threads[0].emails.first().vote(1, user)
threads[2].emails.order_by("-id").first().delete()

mailinglist = MailingList.objects.get(name=f"{name}@example.com")
print("= threads", [(t.subject, t.emails.count(), t.participants_count) for t in mailinglist.threads.order_by("id")])
print("= attachments", sum(e.attachments.count() for e in mailinglist.emails.all()), "children",
      [e.children.count() for e in mailinglist.emails.order_by("id")])
print("= user", User.objects.filter(pk=user.pk).count(), Vote.objects.filter(user=user).count(),
      Favorite.objects.filter(user_id=user.pk, thread__in=threads).count(), [t.name == name for t in threads[0].tags.all()])
print("= all of before", Email.objects.filter(mailinglist__name="before@example.com").count(),
      [t.emails.count() for t in Thread.objects.filter(mailinglist__name="before@example.com").order_by("id")])
