"""The columns of the schema that have ids, which the target has to mint above."""

GREATEST_IDS = "SELECT col, id FROM snowflake_fleet.greatest_ids(%s::pg_catalog.regclass[], %s::pg_catalog.name[])"


def id_columns(move):
    return move.source.rows("SELECT relation::text, attribute::text, col, is_indexed, holds_ids FROM snowflake_fleet.id_columns(%s)", (move.schema,))


def observed_columns(columns, not_ids):
    """Tables and columns, for GREATEST_IDS."""
    observed = [column for column in columns if column[4] and column[2] not in not_ids]
    return [column[0] for column in observed], [column[1] for column in observed]
