<?php
// Reports in TAP.

$count = 0;
function ok(bool $passed, string $what, mixed $found = ''): void
{
    global $count;
    $count++;
    echo ($passed ? 'ok' : 'not ok') . " $count - $what\n";
    if (!$passed) {
        echo '# found: ' . substr(json_encode($found), 0, 500) . "\n";
    }
}

register_shutdown_function(function () {
    global $count;
    echo "1..$count\n";
});
