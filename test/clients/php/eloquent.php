<?php
// Eloquent reads an incrementing key by the clause RETURNING. Rows with a null key, which insert() sends, need the
// trigger set_id().

use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;

// Hides deprecation warnings, which a Laravel causes that is older than the PHP version.
error_reporting(E_ALL & ~E_DEPRECATED);
require 'Illuminate/Database/autoload.php';
require __DIR__ . '/tap.php';

$manager = new Manager();
$manager->addConnection(['driver' => 'pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'), 'database' => getenv('PGDATABASE'),
    'username' => getenv('PGUSER'), 'password' => '', 'charset' => 'utf8']);
$manager->setAsGlobal();
$manager->bootEloquent();

Manager::schema()->create('photos', function ($table) {
    $table->bigInteger('id')->primary()->default(Manager::raw('snowflake.next_id(5)'));
    $table->text('caption');
});

class Photo extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

$asText = fn () => array_column(Manager::select('SELECT id::text FROM photos ORDER BY photos.id'), 'id');
$photo = Photo::create(['caption' => 'first light']);
ok([(string) $photo->id] === $asText(), 'create() has the id', $photo->id);
ok(Photo::find($photo->id)->caption === 'first light', 'find() by it');
Photo::insert(array_fill(0, 1000, ['caption' => 'many']));
ok(Photo::orderBy('id')->pluck('id')->map(fn ($id) => (string) $id)->all() === $asText(), '1,001 ids');

try {
    Photo::insert([['id' => null, 'caption' => 'null']]);
    ok(false, 'a null key is refused');
} catch (Illuminate\Database\QueryException $error) {
    ok(str_contains($error->getMessage(), 'null value in column "id"'), 'a null key is refused', $error->getMessage());
}
Manager::statement('CREATE TRIGGER set_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION snowflake.set_id()');
Photo::insert(array_fill(0, 100, ['id' => null, 'caption' => 'null']));
ok(count(array_unique($asText())) === 1101, 'but with set_id()');

// Tests adopt() on an application whose migration made the key by increments().
class Comment extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

Manager::schema()->create('comments', function ($table) {
    $table->increments('id');
    $table->text('body');
});
$old = Comment::create(['body' => 'old']);
Manager::statement('CREATE EXTENSION snowflake_migrate');
Manager::statement("CALL snowflake.adopt('comments', 5, rewrite => true)");
$comment = Comment::create(['body' => 'new']);
ok([Comment::find($old->id)->body, Comment::find($comment->id)->body, Comment::find(1)->id] === ['old', 'new', 1], 'an adopted table: old and new rows are found, and ids are integers', $comment->id);
