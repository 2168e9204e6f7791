from django.db import models

from notes.fields import SnowflakeField


class Photo(models.Model):
    id = SnowflakeField(primary_key=True, shard=5)
    caption = models.TextField()
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE)
