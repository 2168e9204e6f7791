# "From UUIDs" of doc/moving.md, statement by statement as it stands there, under four writers: no row is
# lost, none is without an id, no id is twice in the database, no writer sees an error. With rows that were made
# in the very moments in which other tables were given ids, many rows of one moment, and rows that can
# have no id of their time.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use Snowflake::Node;
use Snowflake::Page;
use Snowflake::Writers;
use Test::More;

my %page = Snowflake::Page::blocks("$FindBin::RealBin/../doc/moving.md");
my ($lock_timeout) = @{ $page{''} };
my @steps = map { Snowflake::Page::statements($_) } @{ $page{'From UUIDs'} };

# Each writes down what it did, in the same transaction.
my @writes = (<<'NEW', <<'TOUCH', <<'COMMENT', <<'ELSEWHERE', <<'GONE');
\set n random(1, 1000000000000)
WITH p AS (INSERT INTO photos (caption) VALUES ('new-' || :client_id || '-' || :n) RETURNING id, caption),
     c AS (INSERT INTO comments (photo_id, about) SELECT id, caption FROM p, generate_series(1, 2)),
     l AS (INSERT INTO likes DEFAULT VALUES)
INSERT INTO journal SELECT 'new', caption FROM p
NEW
\set n random(1, 2000)
WITH u AS (UPDATE photos SET touched = touched + 1 WHERE caption = 'old-' || :n RETURNING caption)
INSERT INTO journal SELECT 'touch', caption FROM u
TOUCH
\set n random(1, 2000)
WITH c AS (INSERT INTO comments (photo_id, about) SELECT id, caption FROM photos WHERE caption = 'old-' || :n RETURNING about)
INSERT INTO journal SELECT 'comment', about FROM c
COMMENT
\set m random(1, 2000)
\set n random(1, 2000)
UPDATE comments SET photo_id = photos.id, about = caption
  FROM photos
 WHERE caption = 'old-' || :m AND comments.id = (SELECT id FROM comments WHERE about = 'old-' || :n LIMIT 1)
ELSEWHERE
\set n random(1, 500)
WITH d AS (DELETE FROM photos WHERE caption = 'gone-' || :n RETURNING caption)
INSERT INTO journal SELECT 'gone', caption FROM d
GONE

# moves NAME, SETTINGS, ROWS OF ONE MOMENT, ROWS THAT A TICK HAS ROOM FOR, TICK IN MS
sub moves
{
	my ($name, $conf, $crowd, $room, $tick) = @_;
	my $node = Snowflake::Node->create_running($name, conf => "autovacuum = on\n$conf");
	my $sql = sub { $node->safe_psql('postgres', $_[0]) };
	# 'same' are photos of the moment in which a like was given the first id of its tick.
	$sql->(<<~"SQL");
		CREATE TABLE photos (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz DEFAULT now(),
		                     caption text UNIQUE, touched integer NOT NULL DEFAULT 0);
		CREATE TABLE comments (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), photo_id uuid NOT NULL REFERENCES photos, about text);
		CREATE INDEX ON comments (about);
		CREATE INDEX ON comments (photo_id);
		CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5));
		CREATE TABLE journal (what text, caption text);
		INSERT INTO likes SELECT FROM generate_series(1, 3000);
		INSERT INTO photos (caption, created_at) SELECT 'old-' || n, '2025-01-01 00:00Z'::timestamptz + n * interval '2 h' FROM generate_series(1, 2000) n;
		INSERT INTO photos (caption, created_at) SELECT 'same-' || id, snowflake.time_of(id) FROM likes;
		INSERT INTO photos (caption) SELECT 'crowd-' || n FROM generate_series(1, $crowd) n;
		INSERT INTO photos (caption, created_at) SELECT 'gone-' || n, '2026-01-01' FROM generate_series(1, 500) n;
		INSERT INTO photos (caption, created_at) SELECT 'ancient-' || n, '2024-12-31 23:59:59.999Z'::timestamptz - n * interval '1 day' FROM generate_series(0, 30) n;
		INSERT INTO photos (caption, created_at) VALUES ('future', now() + interval '1 day'), ('timeless', NULL);
		INSERT INTO comments (photo_id, about) SELECT id, caption FROM photos WHERE caption LIKE 'old-%';
		CREATE TABLE before AS SELECT id, caption, created_at FROM photos;
		SQL
	my $writers = Snowflake::Writers->start($node, 'postgres', @writes);
	$writers->write_until(q{SELECT count(DISTINCT what) = 4 FROM journal});

	my $session = $node->session;
	$session->set_query_timer_restart;
	my $say = sub {
		my ($statement) = @_;
		my ($out, $error) = Snowflake::Page::say_in($session, $statement);
		is($error, '', "$name: " . ($statement =~ /^(?:BEGIN;\s*)?([^\n]*)/)[0]);
		return $out;
	};
	$say->($lock_timeout);

	my @todo = @steps;
	my $next = sub {
		my ($like) = @_;
		my $statement = shift @todo;
		$statement =~ $like or die "$name: this is not $like:\n$statement";
		return $say->($statement);
	};
	like($next->(qr/not_minted_here/), qr/\|t$/, "$name: nobody mints there");
	like($next->(qr/IS NOT TRUE/), qr/^33\|/, "$name: rows that can have no id of their time are named");
	$next->(qr/ADD COLUMN new_id/);
	$next->(qr/CREATE TABLE/);
	$next->(qr/INSERT INTO old_rows/);
	$next->(qr/^DO/);
	is($sql->(q{SELECT string_agg(DISTINCT split_part(caption, '-', 1), ' '), count(*) FROM photos WHERE new_id IS NULL}),
		'ancient future timeless|33', "$name: they alone are left");
	my $of_now = shift @todo;
	my @refused = splice @todo, 0, 5;
	$say->($_) foreach @refused;
	my (undef, $error) = Snowflake::Page::say_in($session, $todo[0]);
	like($error, qr/check constraint "new_id_is_there" .*is violated/, "$name: as long as they are, step 5 refuses");
	$say->($of_now);
	$next->(qr/VALIDATE CONSTRAINT new_id_is_there/);
	like($sql->(q{SELECT id FROM photos LIMIT 1}), qr/-.*-/, "$name: so far the key is the old one");
	$next->(qr/./) while $todo[0] !~ /DROP COLUMN/;
	my $new = $sql->(q{SELECT count(*) FROM journal WHERE what = 'new'});
	$writers->write_until(qq{SELECT count(*) > $new + 50 FROM journal WHERE what = 'new'});
	is($writers->stop, '', "$name: no writer saw an error");

	is($sql->(q{SELECT format_type(atttypid, NULL), attnotnull FROM pg_attribute WHERE attrelid = 'photos'::regclass AND attname = 'id'}),
		'bigint|t', "$name: the key is a bigint");
	is($sql->(<<~'SQL'), '', "$name: no row is lost, and none came from nowhere");
		(SELECT caption FROM before UNION ALL SELECT caption FROM journal WHERE what = 'new'
		 EXCEPT ALL SELECT caption FROM journal WHERE what = 'gone')
		EXCEPT ALL SELECT caption FROM photos
		UNION ALL
		(SELECT caption FROM photos
		 EXCEPT ALL (SELECT caption FROM before UNION ALL SELECT caption FROM journal WHERE what = 'new'
		             EXCEPT ALL SELECT caption FROM journal WHERE what = 'gone'))
		SQL
	is($sql->(<<~'SQL'), 't', "$name: no change of a row is lost");
		SELECT bool_and(touched = coalesce(n, 0)) AND sum(n) > 0
		  FROM photos LEFT JOIN (SELECT caption, count(*) AS n FROM journal WHERE what = 'touch' GROUP BY 1) j USING (caption)
		SQL
	is($sql->(<<~'SQL'), 't|t|0', "$name: each comment is there and is of the photo that it is about");
		SELECT count(*) = 2000 + (SELECT sum(CASE what WHEN 'new' THEN 2 ELSE 1 END) FROM journal WHERE what IN ('new', 'comment')),
		       bool_and(about = caption), count(*) FILTER (WHERE photo_id IS NULL)
		  FROM comments LEFT JOIN photos ON photos.id = photo_id
		SQL
	is($sql->(<<~'SQL'), '0|0', "$name: no id is without a row's, or twice in the database");
		SELECT count(*) FILTER (WHERE id IS NULL), count(*) - count(DISTINCT id)
		  FROM (SELECT id FROM photos UNION ALL SELECT id FROM likes) s
		SQL
	is($sql->(q{SELECT count(*) FROM photos JOIN before USING (caption) WHERE old_id <> before.id}), '0', "$name: each row has kept its UUID");

	# By time: never earlier than it was made; later only where the tick was full.
	is($sql->(<<~"SQL"), 't|t|t|t', "$name: old rows have the time at which they were made");
		SELECT bool_and(snowflake.time_of(id) + $tick * interval '1 ms' > before.created_at),
		       bool_and(snowflake.time_of(id) <= before.created_at) FILTER (WHERE caption LIKE 'old-%'),
		       max(snowflake.time_of(id) - before.created_at) BETWEEN ($crowd / $room - 1) * $tick * interval '1 ms'
		           AND (($crowd + 3000) / $room + 1) * $tick * interval '1 ms',
		       bool_and(id > previous OR created_at = before_that)
		  FROM (SELECT photos.id, before.caption, before.created_at, lag(photos.id) OVER by_time AS previous, lag(before.created_at) OVER by_time AS before_that
		          FROM photos JOIN before USING (caption) WHERE caption !~ 'ancient|future|timeless'
		        WINDOW by_time AS (ORDER BY before.created_at)) before
		SQL
	is($sql->(q{SELECT bool_and(snowflake.time_of(id) > now() - interval '1 h') FROM photos WHERE caption ~ 'ancient|future|timeless'}),
		't', "$name: those that can have none, of now");
	is($sql->(<<~'SQL'), '0', "$name: the constraint holds");
		SELECT count(*) FROM comments WHERE NOT EXISTS (SELECT FROM photos WHERE photos.id = photo_id)
		SQL
	like($node->error_of('INSERT INTO comments (photo_id) VALUES (1)'), qr/23503/, "$name: and is enforced");

	$next->(qr/DROP COLUMN/) while @todo;
	$node->refuses('INSERT INTO photos (id) SELECT min(id) FROM photos', { sqlstate => '23505', message => 'photos_pkey' }, "$name: the key is one");
	$session->quit;
	$node->stop;
	return;
}

moves('fleet', '', 20_000, 1024, 1);
moves('js53', "snowflake.layout = 'js53'\n", 100_000, 256, 10);

done_testing();
