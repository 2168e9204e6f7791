from django.test import TestCase

from notes.models import Photo


class PhotoTest(TestCase):
    def test_create(self):
        self.assertTrue(Photo.objects.filter(pk=Photo.objects.create(caption="test").pk).exists())
