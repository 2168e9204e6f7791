<?php
// Tests that PDO returns exact ids with RETURNING. lastInsertId() reads only sequences, and may return a number of
// another table.

require __DIR__ . '/tap.php';

$db = new PDO('pgsql:');
$db->exec('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)');
$asText = fn () => $db->query('SELECT id::text FROM photos ORDER BY photos.id')->fetchAll(PDO::FETCH_COLUMN);

$insert = $db->prepare('INSERT INTO photos (caption) VALUES (?) RETURNING id');
$insert->execute(['first light']);
$id = $insert->fetchColumn();
ok([(string) $id] === $asText(), 'RETURNING id', $id);
$select = $db->prepare('SELECT caption FROM photos WHERE id = ?');
$select->execute([$id]);
ok($select->fetchColumn() === 'first light', 'the id as a parameter');

try {
    $db->lastInsertId();
    ok(false, 'lastInsertId() fails in a session without sequences');
} catch (PDOException $error) {
    ok(str_contains($error->getMessage(), 'lastval is not yet defined'), 'lastInsertId() fails in a session without sequences', $error->getMessage());
}
$db->exec('CREATE TABLE logins (id serial, who text)');
$db->exec("INSERT INTO logins (who) VALUES ('me')");
$db->exec("INSERT INTO photos (caption) VALUES ('second')");
ok($db->lastInsertId() === '1', "trap: and tells the other table's after an insert there", $db->lastInsertId());

$db->pgsqlCopyFromArray('photos', array_fill(0, 1000, 'copied'), "\t", '\\\\N', 'caption');
$ids = $db->query('SELECT id FROM photos ORDER BY id')->fetchAll(PDO::FETCH_COLUMN);
ok(array_map('strval', $ids) === $asText(), '1,002 ids');
$json = $db->query('SELECT json_agg(id ORDER BY id)::text FROM photos')->fetchColumn();
ok(array_map('strval', json_decode($json)) === $asText(), 'json_decode() is exact, integers have 64 bits');
