"""The columns of the schema that have ids, which the target has to mint above."""
from typing import NamedTuple

GREATEST_IDS = "SELECT col, id FROM snowflake_fleet.greatest_ids(%s::pg_catalog.regclass[], %s::pg_catalog.name[])"


class Column(NamedTuple):
    relation: str
    attribute: str
    name: str
    is_indexed: bool


def id_columns(move):
    found = move.source.rows("SELECT relation::text, attribute::text, col, is_indexed FROM snowflake_fleet.id_columns(%s)", (move.schema,))
    return [Column(*row) for row in found]


def observed_columns(move, columns):
    """Those that --not-ids does not name."""
    return [column for column in columns if column.name not in move.options.not_ids]


def arguments(columns):
    """For GREATEST_IDS."""
    return [column.relation for column in columns], [column.attribute for column in columns]
