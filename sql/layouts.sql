-- preview_layout() shows the properties of any layout before the layout is sealed.
SET timezone = 'UTC';
SET datestyle = ISO;

-- The presets
SELECT p.bits, p.tick_ms, p.epoch, p.regions, p.shards, p.ids_per_second, p.ends_at
  FROM unnest(ARRAY['fleet', 'wide', 'instagram', 'twitter', 'js53']) AS preset, snowflake.preview_layout(preset) AS p;

-- For the layout of this database preview_layout() shows the same as the view snowflake.layout
SELECT p = l AS same
  FROM snowflake.layout AS l, snowflake.preview_layout(l.bits, l.tick_ms || 'ms', to_char(l.epoch AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')) AS p;

-- preview_layout() reads tick and epoch as in postgresql.conf, for any time zone and date style of the session
SET timezone = 'Asia/Tokyo';
SET datestyle = 'German, DMY';
SELECT bits, tick_ms, extract(epoch FROM epoch) AS epoch, ids_per_second, extract(epoch FROM ends_at)::bigint AS ends_at
  FROM snowflake.preview_layout('36/10/10', '100', '2024-02-29T05:30+05:30');
RESET timezone;
SET timezone = 'UTC';
SET datestyle = ISO;
SELECT tick_ms, epoch, ids_per_second, ends_at FROM snowflake.preview_layout('28/4+12/13', epoch => '1704067200000', tick => '1s');
-- If the bits of a layout add up to 64, half of the time units (ticks) are available, because ids are not negative.
-- Otherwise all ticks are available.
SELECT bits, ends_at - epoch AS lasts
  FROM unnest(ARRAY['41/5+13/5', '41/5+13/4', '41/0/0', '53/0/0']) AS bits, LATERAL (SELECT epoch, ends_at FROM snowflake.preview_layout(bits)) AS p;
-- The used share of a layout's time is 0 before the layout begins, and 1 after the layout has ended
SELECT used_percent FROM snowflake.preview_layout('fleet', epoch => '2039-01-01');
SELECT used_percent > 100 AS over, ends_at FROM snowflake.preview_layout('20/5+8/10', epoch => '2026-01-01');

-- Invalid layouts are refused
SELECT snowflake.preview_layout('41/5+13/6');
SELECT snowflake.preview_layout('Wide');
SELECT snowflake.preview_layout('wide', '10ms');
SELECT snowflake.preview_layout('41/13/9', '7');
SELECT snowflake.preview_layout('41/13/9', '100us');
SELECT snowflake.preview_layout('41/13/9', '1h');
SELECT snowflake.preview_layout('41/13/9', '-1');
SELECT snowflake.preview_layout('41/13/9', 'NaN');
SELECT snowflake.preview_layout('41/13/9', 'often');
SELECT snowflake.preview_layout('fleet', epoch => 'tomorrow');
SELECT snowflake.preview_layout('fleet', epoch => '2040-01-01');
SELECT snowflake.preview_layout('53/0/0', '1s', '2025-01-01');
\echo SQLSTATE :SQLSTATE
SELECT snowflake.preview_layout(NULL) IS NULL AS null, snowflake.preview_layout('fleet', NULL) IS NULL AS null;
