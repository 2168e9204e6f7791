# Compares the objects of an extension in two databases of a server. Each object becomes one line with its definition,
# owner, privileges and comment, and whether dumps include its data. Values of sequences are not compared.

package Snowflake::Catalogue;

use strict;
use warnings FATAL => 'all';

my $SNAPSHOT = <<'SQL';
SET search_path = pg_catalog;
WITH extension AS (
  SELECT * FROM pg_extension WHERE extname = 'snowflake'
), member AS (
  SELECT d.classid, d.objid, o.type, o.identity,
         obj_description(d.objid, d.classid::regclass::name) AS comment
    FROM extension e
    JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
   CROSS JOIN pg_identify_object(d.classid, d.objid, 0) o
), line (what) AS (
  SELECT format('extension %s, schema %s, relocatable %s', extversion, extnamespace::regnamespace,
                extrelocatable)
    FROM extension
  UNION ALL
  SELECT format('dumped %s where "%s"', config::regclass, condition)
    FROM extension, unnest(extconfig, extcondition) AS c (config, condition)
  UNION ALL
  SELECT format('%s %s: %s', type, identity, comment) FROM member
  UNION ALL
  SELECT format('%s %s installed with privileges %s', type, identity, i.initprivs)
    FROM member JOIN pg_init_privs i
      ON i.classoid = classid AND i.objoid = objid AND i.objsubid = 0
  UNION ALL
  SELECT format('schema %s of %s, privileges %s', nspname, nspowner::regrole, nspacl)
    FROM member JOIN pg_namespace n ON classid = 'pg_namespace'::regclass AND objid = n.oid
  UNION ALL
  SELECT format('%s of %s, privileges %s, %s, rows %s, cost %s: %s', identity, proowner::regrole, proacl,
                proparallel, prorows, procost, replace(pg_get_functiondef(p.oid), E'\n', ' '))
    FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
  UNION ALL
  SELECT format('relation %s of %s, kind %s, %s, privileges %s, options %s: %s', identity,
                relowner::regrole, relkind, relpersistence, relacl, reloptions,
                CASE relkind WHEN 'v' THEN replace(pg_get_viewdef(c.oid), E'\n', ' ') END)
    FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
  UNION ALL
  SELECT format('column %s of %s: %s, %s', attnum, identity, attname, format_type(atttypid, atttypmod))
    FROM member JOIN pg_attribute ON classid = 'pg_class'::regclass AND objid = attrelid
   WHERE attnum > 0
  UNION ALL
  SELECT format('sequence %s: %s from %s by %s, %s to %s, cache %s, cycle %s', identity,
                seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
    FROM member JOIN pg_sequence ON classid = 'pg_class'::regclass AND objid = seqrelid
)
SELECT what FROM line ORDER BY what COLLATE "C";
SQL

sub snapshot
{
	my ($node, $database, $extension) = @_;
	return $node->safe_psql($database, $extension ? $SNAPSHOT =~ s/(extname = )'snowflake'/$1'$extension'/r : $SNAPSHOT);
}

sub differences
{
	my ($is, $should_be) = @_;
	my (%is, %should_be);
	@is{ split /\n/, $is } = ();
	@should_be{ split /\n/, $should_be } = ();
	return join "\n",
	  (map { "missing: $_" } grep { !exists $is{$_} } sort keys %should_be),
	  (map { "unexpected: $_" } grep { !exists $should_be{$_} } sort keys %is);
}

1;
