# Runs the statements of "From UUIDs" in doc/moving.md, with two referring tables, while four clients write. After the
# move from UUIDs each row must have a unique id, and no client may have got an error. A second test uses a table with a
# foreign key to itself.

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
my @steps = map { for_tags($_) } map { Snowflake::Page::statements($_) } @{ $page{'From UUIDs'} };

# Each statement of doc/moving.md for the table "comments" is repeated for the table "tags".
sub statements_in
{
	my ($session, $name) = @_;
	$session->set_query_timer_restart;
	return sub {
		my ($statement) = @_;
		my ($out, $error) = Snowflake::Page::say_in($session, $statement);
		is($error, '', "$name: " . ($statement =~ /^(?:BEGIN;\s*)?([^\n]*)/)[0]);
		return $out;
	};
}

sub for_tags
{
	my ($statement) = @_;
	return $statement if $statement !~ /comments/;
	return ($statement, $statement =~ s/comments/tags/gr) if $statement !~ /^BEGIN;/;
	return join '', map { /^LOCK/ ? s/comments/comments, tags/r : /comments/ ? ($_, s/comments/tags/gr) : $_ } split /^/m, $statement;
}

# The clients record their changes in the table journal.
my @writes = (<<'NEW', <<'TOUCH', <<'COMMENT', <<'ELSEWHERE', <<'GONE');
\set n random(1, 1000000000000)
WITH p AS (INSERT INTO photos (caption) VALUES ('new-' || :client_id || '-' || :n) RETURNING id, caption),
     c AS (INSERT INTO comments (photo_id, about) SELECT id, caption FROM p, generate_series(1, 2)),
     t AS (INSERT INTO tags (photo_id, about) SELECT id, caption FROM p),
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

# Cancels two calls of backfill(): the first while it waits for a locked row, and the second while it reads rows with
# the same time.
sub interrupt
{
	my ($node, $name, $call) = @_;
	my $done = 'SELECT rows FROM snowflake.backfills';
	my $before = q{SELECT count(*) FROM photos WHERE new_id IS NULL AND created_at < (SELECT created_at FROM photos WHERE caption = 'old-1000') AND caption LIKE 'old-%'};
	foreach ([ 'old-1000', "SELECT ($before) = 0", 999 ], [ 'crowd-15000', "SELECT ($done) > 3000" ])
	{
		my ($held, $far, $rows) = @$_;
		my ($holder, $session) = map { $node->session } 1 .. 2;
		$holder->query_safe("BEGIN; SELECT FROM photos WHERE caption = '$held' FOR UPDATE");
		my $pid = $session->query_safe('SELECT pg_backend_pid()');
		$session->query_until(qr/called/, "\\echo called\n$call\n");
		$node->poll_query_until('postgres', $far) or die "$name: backfill() does not get as far as: $far";
		is($node->safe_psql('postgres', $done), $rows, "$name: backfill() waits at a locked row") if $rows;
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
		$session->query('SELECT 1');
		like($session->{stderr}, qr/canceling statement due to user request/, "$name: backfill() can be cancelled");
		$_->quit foreach $session, $holder;
	}
	is($node->safe_psql('postgres', "SELECT rows - given BETWEEN 0 AND (SELECT count(*) FROM journal WHERE what = 'gone')
	                                   FROM snowflake.backfills b, LATERAL (SELECT count(*) AS given FROM photos
	                                     WHERE snowflake.region_of(new_id) = b.region AND snowflake.shard_of(new_id) = b.shard) AS p"),
		't', "$name: the rows that a cancelled backfill() has done are committed and counted");
	return;
}

# The argument $crowd is the number of rows with the same time. The argument $room is the number of ids per time unit.
# The argument $tick is the length of a time unit of ids in ms. The argument $place is the shard of ids for old rows.
sub moves
{
	my ($name, $conf, $crowd, $room, $tick, $place) = @_;
	my $node = Snowflake::Node->create_running($name, conf => "autovacuum = on\n$conf");
	$node->add_tools;
	my $sql = sub { $node->safe_psql('postgres', $_[0]) };
	# Some rows of the table photos have the same time as an id in the table likes.
	$sql->(<<~"SQL");
		CREATE TABLE photos (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz DEFAULT now(),
		                     caption text UNIQUE, touched integer NOT NULL DEFAULT 0);
		CREATE TABLE comments (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), photo_id uuid NOT NULL REFERENCES photos, about text);
		CREATE TABLE tags (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), photo_id uuid NOT NULL REFERENCES photos, about text);
		CREATE INDEX ON tags (photo_id);
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
		INSERT INTO tags (photo_id, about) SELECT id, caption FROM photos WHERE caption LIKE 'old-%';
		CREATE TABLE before AS SELECT id, caption, created_at FROM photos;
		SQL
	my $writers = Snowflake::Writers->start($node, 'postgres', @writes);
	$writers->write_until(q{SELECT count(DISTINCT what) = 4 FROM journal});

	my $session = $node->session;
	my $say = statements_in($session, $name);
	$say->($lock_timeout);

	my @todo = @steps;
	my $next = sub {
		my ($like) = @_;
		my $statement = shift @todo;
		$statement =~ $like or die "$name: this is not $like:\n$statement";
		return $say->($statement);
	};
	like($next->(qr/IS NOT TRUE/), qr/^33\|/, "$name: the first statement counts the rows whose time no id can have");
	$next->(qr/ADD COLUMN new_id/);
	$next->(qr/lock_timeout = 0/);
	$next->(qr/CREATE INDEX CONCURRENTLY photos_without_id/);
	$next->(qr/lock_timeout/);
	$todo[0] =~ s/shard => 5/shard => $place/;
	# Many rows with the same time get ids of slightly later times, which must not be in the future.
	$node->poll_query_until('postgres', "SELECT clock_timestamp() > max(created_at) + ($crowd / $room + 2) * $tick * interval '1 ms' FROM photos WHERE caption LIKE 'crowd-%'")
		or die "$name: the clock does not pass the ids of the crowd";
	interrupt($node, $name, $todo[0] =~ s/\);/, batch => 100);/r);
	$next->(qr/CALL snowflake.backfill/);
	is($sql->(q{SELECT rows BETWEEN count(*) FILTER (WHERE caption !~ 'gone') AND count(*) + (SELECT count(*) FROM journal WHERE what = 'new'),
	                   finished IS NOT NULL
	              FROM snowflake.backfills, before WHERE caption !~ 'ancient|future|timeless' GROUP BY rows, finished}),
		't|t', "$name: backfill() has given each row one id");
	is($sql->(q{SELECT string_agg(DISTINCT split_part(caption, '-', 1), ' '), count(*) FROM photos WHERE new_id IS NULL}),
		'ancient future timeless|33', "$name: only rows whose time no id can have are without an id");
	my $of_now = shift @todo;
	my @refused = splice @todo, 0, 6;
	$say->($_) foreach @refused;
	my (undef, $error) = Snowflake::Page::say_in($session, $todo[0]);
	like($error, qr/check constraint "new_id_is_there" .*is violated/, "$name: step 4 fails while rows without an id exist");
	$say->($of_now);
	$next->(qr/VALIDATE CONSTRAINT new_id_is_there/);
	like($sql->(q{SELECT id FROM photos LIMIT 1}), qr/-.*-/, "$name: before the swap the key is still the UUID");
	$next->(qr/./) while $todo[0] !~ /DROP COLUMN/;
	my $new = $sql->(q{SELECT count(*) FROM journal WHERE what = 'new'});
	$writers->write_until(qq{SELECT count(*) > $new + 500 FROM journal WHERE what = 'new'});
	is($writers->stop, '', "$name: no writer saw an error");
	note "$name: the longest transaction of a writer took ", $writers->longest, ' ms';

	is($sql->(q{SELECT format_type(atttypid, NULL), attnotnull FROM pg_attribute WHERE attrelid = 'photos'::regclass AND attname = 'id'}),
		'bigint|t', "$name: the key is a bigint");
	is($sql->(<<~'SQL'), '', "$name: the table has exactly the rows that were inserted and not deleted");
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
	is($sql->(<<~'SQL'), 't|t|0', "$name: each comment exists and refers to its photo");
		SELECT count(*) = 2000 + (SELECT sum(CASE what WHEN 'new' THEN 2 ELSE 1 END) FROM journal WHERE what IN ('new', 'comment')),
		       bool_and(about = caption), count(*) FILTER (WHERE photo_id IS NULL)
		  FROM comments LEFT JOIN photos ON photos.id = photo_id
		SQL
	is($sql->(<<~'SQL'), 't|t|0', "$name: each tag exists and refers to its photo");
		SELECT count(*) = 2000 + (SELECT count(*) FROM journal WHERE what = 'new'), bool_and(about = caption), count(*) FILTER (WHERE photo_id IS NULL)
		  FROM tags LEFT JOIN photos ON photos.id = photo_id
		SQL
	is($sql->(<<~'SQL'), '0|0', "$name: every row has an id, and ids are unique in the database");
		SELECT count(*) FILTER (WHERE id IS NULL), count(*) - count(DISTINCT id)
		  FROM (SELECT id FROM photos UNION ALL SELECT id FROM likes) s
		SQL
	is($sql->(q{SELECT count(*) FROM photos JOIN before USING (caption) WHERE old_id <> before.id}), '0', "$name: each row has kept its UUID");

	# An id has the time in created_at of the row, or a later time if all ids of that time are used.
	is($sql->(<<~"SQL"), 't|t|t|t', "$name: the ids of old rows have the time at which the rows were made");
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
		't', "$name: rows whose time no id can have got ids of the present");
	is($sql->(<<~'SQL'), '0', "$name: every comment refers to an existing photo");
		SELECT count(*) FROM comments WHERE NOT EXISTS (SELECT FROM photos WHERE photos.id = photo_id)
		SQL
	like($node->error_of('INSERT INTO comments (photo_id) VALUES (1)'), qr/23503/, "$name: the foreign key refuses a comment without a photo");

	$next->(qr/DROP COLUMN/) while @todo;
	$node->refuses('INSERT INTO photos (id) SELECT min(id) FROM photos', { sqlstate => '23505', message => 'photos_pkey' }, "$name: the new primary key refuses a duplicate");
	$session->quit;
	keeps_place($node, $name, $place) if $name eq 'fleet';
	$node->stop;
	return;
}

# A dump must contain which region and shard backfill() has used. In the restored database, backfill() of another table
# must use a different region or shard.
sub keeps_place
{
	my ($node, $name, $place) = @_;
	my $dump = $node->basedir . '/dump.sql';
	$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], "$name: pg_dump");
	$node->safe_psql('postgres', 'CREATE DATABASE copy');
	$node->command_ok([ qw(psql -Xq -v ON_ERROR_STOP=1 -f), $dump, '-d', $node->connstr('copy') ], "$name: the dump is restored");
	is($node->safe_psql('copy', 'SELECT region, shard FROM snowflake.backfills'), "31|$place", "$name: the copy has the reserved origin");
	$node->safe_psql('copy', <<~"SQL");
		CREATE TABLE other AS SELECT created_at, NULL::bigint AS id FROM photos WHERE snowflake.region_of(id) = 31;
		ALTER TABLE other ALTER COLUMN id SET DEFAULT snowflake.next_id(5);
		CREATE INDEX ON other (created_at);
		CALL snowflake.backfill('other', 'id', 'created_at', $place);
		SQL
	is($node->safe_psql('copy', 'SELECT count(*) > 20000, count(*) - count(other.id), count(photos.id), min(snowflake.region_of(other.id)) FROM other LEFT JOIN photos USING (id)'),
		't|0|0|30', "$name: another table of the copy gets ids of another origin");
	return;
}

# Tests a table with a foreign key to itself. The first call of backfill() gets a wrong column for the time, and its ids
# are discarded.
sub refers_to_itself
{
	my $name = 'itself';
	my $node = Snowflake::Node->create_running($name, conf => "autovacuum = on\n");
	$node->add_tools;
	my $sql = sub { $node->safe_psql('postgres', $_[0]) };
	$sql->(<<~'SQL');
		CREATE TABLE photos (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz DEFAULT now(), updated_at timestamptz DEFAULT now(),
		                     parent_id uuid REFERENCES photos ON DELETE SET NULL, caption text UNIQUE, of_caption text);
		CREATE TABLE comments (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), photo_id uuid NOT NULL REFERENCES photos, about text);
		CREATE INDEX ON photos (parent_id);
		CREATE TABLE journal (what text);
		INSERT INTO photos (caption, created_at, updated_at)
		  SELECT 'old-' || n, '2025-02-01Z'::timestamptz + n * interval '1 min', '2026-02-01Z'::timestamptz - n * interval '1 min' FROM generate_series(1, 3000) n;
		UPDATE photos SET of_caption = p.caption, parent_id = p.id FROM photos AS p
		 WHERE split_part(photos.caption, '-', 2)::integer % 7 <> 0 AND p.caption = 'old-' || split_part(photos.caption, '-', 2)::integer / 2 * 2 + 1;
		INSERT INTO comments (photo_id, about) SELECT id, caption FROM photos;
		SQL
	my $writers = Snowflake::Writers->start($node, 'postgres', <<'NEW', <<'ELSEWHERE', <<'NOWHERE');
\set m random(1, 3000)
\set n random(1, 1000000000000)
WITH p AS (INSERT INTO photos (caption, of_caption, parent_id) SELECT 'new-' || :client_id || '-' || :n, caption, id FROM photos WHERE caption = 'old-' || :m)
INSERT INTO journal VALUES ('new')
NEW
\set m random(1, 3000)
\set n random(1, 3000)
UPDATE photos SET parent_id = p.id, of_caption = p.caption FROM photos AS p WHERE p.caption = 'old-' || :m AND photos.caption = 'old-' || :n
ELSEWHERE
\set n random(1, 3000)
UPDATE photos SET parent_id = NULL, of_caption = NULL WHERE caption = 'old-' || :n
NOWHERE
	$writers->write_until('SELECT count(*) > 20 FROM journal');
	my $session = $node->session;
	my $say = statements_in($session, $name);
	my @page = map { Snowflake::Page::statements($_) } @{ $page{'From UUIDs'} };
	my ($backfilled) = grep { $page[$_] =~ /CALL snowflake.backfill/ } 0 .. $#page;
	my ($swap) = grep { $page[$_] =~ /^BEGIN;\s*LOCK TABLE/ } 0 .. $#page;
	my @itself = map { [ Snowflake::Page::statements($_) ] } @{ $page{'A table that refers to itself'} };
	$say->($lock_timeout);
	$say->(/INDEX CONC|CALL/ ? s/created_at'|\(created_at/$& =~ s{created}{updated}r/ger : $_) foreach @page[ 1 .. $backfilled ];
	is($sql->(q{SELECT bool_and(snowflake.time_of(new_id) = updated_at) FROM photos WHERE caption LIKE 'old-%'}), 't', "$name: after the first backfill the ids of old rows have the wrong time");
	like($say->($_), qr/^(?:$|31\|5\|public\.photos\|)/, "$name: the statements of the page discard these ids") foreach map { Snowflake::Page::statements($_) } @{ $page{'A wrong time'} };
	$say->(s/shard => 5/shard => 5, region => 30/r) foreach @page[ 1 .. $backfilled ];
	is($sql->(q{SELECT bool_and(snowflake.time_of(new_id) = created_at), count(*) FROM photos WHERE caption LIKE 'old-%'}), 't|3000', "$name: after the second backfill the ids of old rows have the right time");
	$say->($_) foreach @page[ $backfilled + 1 .. $swap - 1 ], map { @$_ } @itself[ 0 .. 2 ];
	$sql->(q{INSERT INTO photos (id, parent_id, caption, of_caption) SELECT u, u, 'own', 'own' FROM gen_random_uuid() AS u});
	like($node->error_of(q{INSERT INTO photos (id, parent_id, caption) VALUES (gen_random_uuid(), '00000000-0000-0000-0000-00000000000a', 'child'), ('00000000-0000-0000-0000-00000000000a', NULL, 'parent')}),
		qr/new_parent_is_there/, "$name: a row is refused if its parent does not exist yet");
	my $added = join '', map { "$_\n" } @{ $itself[3] };
	$say->($page[$swap] =~ s/(LOCK TABLE[^;]*;\n)/$1$added/r);
	my $new = $sql->('SELECT count(*) FROM journal');
	$writers->write_until("SELECT count(*) > $new + 100 FROM journal");
	is($writers->stop, '', "$name: no writer saw an error");
	is($sql->(q{SELECT count(*) - (SELECT count(*) FROM journal), count(*) - count(DISTINCT p.id), bool_and(p.of_caption IS NOT DISTINCT FROM parent.caption), count(parent.id) > 1000,
	                   string_agg(DISTINCT pg_typeof(p.parent_id)::text, ' ') FROM photos AS p LEFT JOIN photos AS parent ON parent.id = p.parent_id}),
		'3001|0|t|t|bigint', "$name: each photo has the same parent as before");
	$sql->(q{UPDATE photos SET parent_id = NULL WHERE caption = 'old-1'; DELETE FROM comments; UPDATE photos SET parent_id = (SELECT id FROM photos WHERE caption = 'old-1') WHERE caption = 'own'});
	like($node->error_of(q{DELETE FROM photos WHERE caption = 'old-1'}), qr/photos_parent_fkey/, "$name: the foreign key refuses to delete a photo that another one refers to");
	$say->($_) foreach @page[ $swap + 1 .. $#page ], @{ $itself[4] };
	$session->quit;
	$node->stop;
	return;
}

refers_to_itself();
moves('fleet', '', 20_000, 1024, 1, 5);
moves('js53', "snowflake.layout = 'js53'\nsnowflake.owned_shards = '0-126'\n", 100_000, 256, 10, 127);

done_testing();
