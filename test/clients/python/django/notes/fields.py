from django.db import models


class SnowflakeField(models.BigAutoField):
    """A primary key that the database mints: its default is snowflake.next_id(shard)."""

    def __init__(self, *args, shard=5, **kwargs):
        self.shard = int(shard)
        super().__init__(*args, **kwargs)

    def db_type(self, connection):
        return "bigint"

    def db_type_suffix(self, connection):
        return f"DEFAULT snowflake.next_id({self.shard})"

    def deconstruct(self):
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "shard": self.shard}
