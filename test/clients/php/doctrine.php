<?php
// The strategy IDENTITY of Doctrine fails, because IDENTITY needs a sequence. Doctrine's generator calls next_id(). The
// default of the column is only for other clients.

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Id\AbstractIdGenerator;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;

error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
require 'Doctrine/ORM/autoload.php';
require __DIR__ . '/tap.php';

class SnowflakeGenerator extends AbstractIdGenerator
{
    public function generateId(EntityManagerInterface $em, $entity): int
    {
        return (int) $em->getConnection()->fetchOne('SELECT snowflake.next_id(5)');
    }
}

#[ORM\Entity]
#[ORM\Table(name: 'photos')]
class Photo
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint', options: ['default' => 'snowflake.next_id(5)'])]
    #[ORM\GeneratedValue(strategy: 'CUSTOM')]
    #[ORM\CustomIdGenerator(class: SnowflakeGenerator::class)]
    public $id;

    #[ORM\Column(type: 'text')]
    public string $caption = '';
}

#[ORM\Entity]
#[ORM\Table(name: 'counted')]
class Counted
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint')]
    #[ORM\GeneratedValue(strategy: 'IDENTITY')]
    public $id;
}

#[ORM\Entity]
#[ORM\Table(name: 'comments')]
class Comment
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    #[ORM\GeneratedValue(strategy: 'SEQUENCE')]
    public int $id;

    #[ORM\Column(type: 'text')]
    public string $body = '';
}

$connection = DriverManager::getConnection(['driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
    'dbname' => getenv('PGDATABASE'), 'user' => getenv('PGUSER')]);
$connection->executeStatement('CREATE TABLE counted (id bigint PRIMARY KEY DEFAULT snowflake.next_id(6))');
$manager = fn () => new EntityManager($connection, ORMSetup::createAttributeMetadataConfiguration([__DIR__], true));
$em = $manager();
$tool = new SchemaTool($em);
$photos = [$em->getClassMetadata(Photo::class)];
$tool->createSchema($photos);
ok($tool->getUpdateSchemaSql($photos, true) === [], 'the schema has the default, and a second look finds nothing to change', $tool->getUpdateSchemaSql($photos, true));
$connection->executeStatement("INSERT INTO photos (caption) VALUES ('by another client')");
$connection->executeStatement('DELETE FROM photos');
$asText = fn () => $connection->fetchFirstColumn('SELECT id::text FROM photos ORDER BY photos.id');

$photo = new Photo();
$photo->caption = 'first light';
$em->persist($photo);
$em->flush();
ok([(string) $photo->id] === $asText(), 'the generator gives the id', $photo->id);
$em->clear();
ok($em->find(Photo::class, $photo->id)->caption === 'first light', 'find() by it');
for ($i = 0; $i < 100; $i++) {
    $em->persist(new Photo());
}
$em->flush();
ok(count(array_unique($asText())) === 101, '101 ids');

$em->persist(new Counted());
try {
    $em->flush();
    ok(false, 'trap: IDENTITY asks for a sequence');
} catch (Throwable $error) {
    ok(str_contains($error->getMessage(), 'lastval') || str_contains($error->getMessage(), 'counted_id_seq'), 'trap: IDENTITY asks for a sequence', $error->getMessage());
}
$connection->executeStatement('DROP TABLE counted');

// Tests adopt() on an application whose key had the type integer. The model of the application stays unchanged.
$em = $manager();
$comments = [$em->getClassMetadata(Comment::class)];
(new SchemaTool($em))->createSchema($comments);
$comment = new Comment();
$comment->body = 'old';
$em->persist($comment);
$em->flush();
$connection->executeStatement('ALTER TABLE comments ALTER COLUMN id SET DEFAULT nextval(\'comments_id_seq\')');
$connection->executeStatement('CREATE EXTENSION snowflake_migrate');
$connection->executeStatement("CALL snowflake.adopt('comments', 5, rewrite => true)");
$new = $connection->fetchOne("INSERT INTO comments (body) VALUES ('new') RETURNING id");
$em->clear();
ok([$em->find(Comment::class, 1)->id, $em->find(Comment::class, $new)->id] === [1, (int) $new], 'an adopted table: a model that says integer finds old and new rows');
$next = new Comment();
$em->persist($next);
$em->flush();
ok($next->id === 2, 'trap: SEQUENCE continues to count, and the default is not used', $next->id);
$connection->executeStatement('DROP SEQUENCE comments_id_seq');
try {
    $em->persist(new Comment());
    $em->flush();
    ok(false, '... unless the sequence is dropped');
} catch (Throwable $error) {
    ok(str_contains($error->getMessage(), 'comments_id_seq'), '... unless the sequence is dropped', $error->getMessage());
}
