#!/usr/bin/perl
# moving.pl BIN HOST ROWS ADOPTED FILES: measures what the statements of doc/moving.md cost while clients write. The
# first measurement calls adopt() for ADOPTED tables of ROWS rows, one table after the other. The second measurement
# runs the statements of the section "From UUIDs" on a table of ROWS rows, to which two other tables refer. During the
# measurements four clients write 2,000 transactions per second together. The output shows the duration of each step,
# and the longest wait of a client during the step.
use strict;
use warnings;
use FindBin;
use Time::HiRes qw(sleep time);

my ($bin, $host, $rows, $adopted, $files) = @ARGV;
my @connection = ('-h', $host, '-U', 'bench');
my $children = int $rows / 40;
my $lock_timeout = '200ms';
$ENV{PGOPTIONS} = '-c search_path=public';

sub sample { print join("\t", @_), "\n" }

# Runs a statement. Runs a statement, and repeats it after a lock timeout, as doc/moving.md describes.
sub say_sql {
  my ($statement) = @_;
  $lock_timeout = $1, return if $statement =~ /^SET lock_timeout = '?(\w+)'?;/;
  local $ENV{PGOPTIONS} = "$ENV{PGOPTIONS} -c lock_timeout=$lock_timeout -c statement_timeout=15min -c client_min_messages=warning";
  for my $attempt (1 .. 60) {
    my $pid = open my $err, '-|' // die;
    if (!$pid) {
      open STDERR, '>&', \*STDOUT;
      open STDOUT, '>', '/dev/null';
      exec "$bin/psql", qw(-Xq -v ON_ERROR_STOP=1), @connection, '-d', 'postgres', '-c', $statement or die;
    }
    my $said = do { local $/; <$err> } // '';
    close $err;
    return if $? == 0;
    die "$statement\n$said" if $said !~ /canceling statement due to lock timeout/;
    # Waits before the statement is repeated, so that delayed writers can catch up.
    sleep($attempt < 40 ? 0.05 * $attempt : 2);
  }
  die "no lock for:\n$statement";
}

my (@phases, $writers, $number);
END { kill 'TERM', $writers if $writers }

# phase NAME, CODE: runs CODE, and stores the start and end times under NAME.
sub phase {
  my ($name, $code) = @_;
  my $began = time;
  $code->();
  push @phases, [$name, $began, time];
}

sub start_writers {
  my @scripts = @_;
  $number++;
  my @options;
  for my $i (0 .. $#scripts) {
    open my $file, '>', "$files/writer_$number.$i.sql" or die;
    print $file $scripts[$i];
    close $file;
    push @options, '-f', "$files/writer_$number.$i.sql";
  }
  @phases = ();
  $writers = fork // die;
  if (!$writers) {
    open STDOUT, '>', "$files/writers_$number.out";
    open STDERR, '>', "$files/writers_$number.err";
    exec "$bin/pgbench", qw(-n -c 4 -T 3600 -R 2000 -l), "--log-prefix=$files/writers_$number.log", @connection, @options, 'postgres' or die;
  }
  sleep 1;
  phase('nothing', sub { sleep 3 });
}

# Prints two values for each phase: the longest transaction that overlapped the phase, and the rate of transactions that
# ended in the phase. The program fails if a client that writes has reported an error.
sub stop_writers {
  my ($prefix) = @_;
  sleep 3;    # waits until pgbench has written the log lines of the last phase, because TERM discards its buffer
  # Sends TERM instead of INT, because background jobs of a shell ignore INT.
  kill 'TERM', $writers;
  waitpid $writers, 0;
  undef $writers;
  open my $errors, '<', "$files/writers_$number.err" or die;
  my @errors = grep { /error|aborted|terminat/i } <$errors>;
  die "a writer saw an error:\n@errors" if @errors;
  my (%longest, %ended);
  for my $file (glob "$files/writers_$number.log.*") {
    open my $log, '<', $file or die;
    while (<$log>) {
      my (undef, undef, $us, undef, $s, $fraction) = split;
      next if ($fraction // '') !~ /^\d+$/;    # skips a log line whose end pgbench has not written yet
      my $end = $s + $fraction / 1e6;
      for my $i (0 .. $#phases) {
        my (undef, $from, $to) = @{ $phases[$i] };
        next if $end < $from || $end - $us / 1e6 > $to;
        $longest{$i} = $us if $us > ($longest{$i} // 0);
        $ended{$i}++;
      }
    }
  }
  my %run;
  for my $i (0 .. $#phases) {
    my ($name, $from, $to) = @{ $phases[$i] };
    my $run = ++$run{$name};
    sample("$prefix: $name", 's', $run, $to - $from);
    sample("$prefix: $name", 'ms, longest transaction of a writer', $run, ($longest{$i} // 0) / 1000);
    sample("$prefix: $name", 'transactions a second', $run, ($ended{$i} // 0) / ($to - $from));
  }
}

# ---- adopt()

for my $table (map {"adopted_$_"} 1 .. $adopted) {
  say_sql("CREATE TABLE $table (id bigserial PRIMARY KEY, caption text, touched integer NOT NULL DEFAULT 0)");
  say_sql("INSERT INTO $table (caption) SELECT 'old-' || n FROM generate_series(1, $rows) AS n");
}
say_sql('VACUUM ANALYZE');
start_writers(map { ("INSERT INTO $_ (caption) VALUES ('new');\n", "\\set n random(1, $rows)\nUPDATE $_ SET touched = touched + 1 WHERE id = :n;\n") }
    map {"adopted_$_"} 1 .. $adopted);
for my $table (map {"adopted_$_"} 1 .. $adopted) {
  phase('adopt()', sub { say_sql("CALL snowflake.adopt('$table', shard => 5)") });
  sleep 0.5;
}
stop_writers('bigserial');

# ---- from UUIDs

my $page = do { local $/; open my $in, '<', "$FindBin::Bin/../doc/moving.md" or die; <$in> };
my ($section) = $page =~ /^## From UUIDs\n(.*?)^##/ms or die "doc/moving.md has no section \"From UUIDs\"\n";
my @statements = map { /\G\s*(BEGIN;.*?^COMMIT;|DO \$\$.*?^\$\$;|.*?;)[^\n]*\n/gms } $section =~ /^```sql\n(.*?)^```$/gms;

# Repeats a statement for the table "tags" if doc/moving.md shows the statement for the table "comments". In a
# transaction of doc/moving.md, each line for the table "comments" is followed by the same line for the table "tags".
sub for_tags {
  my ($statement) = @_;
  return $statement if $statement !~ /comments/;
  return ($statement, $statement =~ s/comments/tags/gr) if $statement !~ /^BEGIN;/;
  return join '', map { /^LOCK/ ? s/comments/comments, tags/r : /comments/ ? ($_, s/comments/tags/gr) : $_ } split /^/m, $statement;
}

say_sql($_) for
  'CREATE TABLE photos (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz DEFAULT now(), caption text UNIQUE, touched integer NOT NULL DEFAULT 0)',
  map({ ("CREATE TABLE $_ (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), photo_id uuid NOT NULL REFERENCES photos, about text)",
         "CREATE INDEX ON $_ (photo_id)") } 'comments', 'tags'),
  "INSERT INTO photos (caption, created_at) SELECT 'old-' || n, timestamptz '2025-01-01 00:00Z' + n * interval '40 s' FROM generate_series(1, $rows) AS n",
  map({"INSERT INTO $_ (photo_id, about) SELECT id, caption FROM photos LIMIT $children"} 'comments', 'tags'),
  'VACUUM ANALYZE';
start_writers(<<'NEW', <<"TOUCH");
\set n random(1, 1000000000000000)
WITH p AS (INSERT INTO photos (caption) VALUES ('new-' || :client_id || '-' || :n) RETURNING id, caption),
     c AS (INSERT INTO comments (photo_id, about) SELECT id, caption FROM p)
INSERT INTO tags (photo_id, about) SELECT id, caption FROM p;
NEW
\\set n random(1, $rows)
UPDATE photos SET touched = touched + 1 WHERE caption = 'old-' || :n;
TOUCH
for my $statement (map { for_tags($_) } @statements) {
  next if $statement =~ /DROP COLUMN/;
  my $name = $statement =~ /CALL snowflake.backfill/ ? 'backfill()' : $statement =~ /^DO / ? 'rows that refer to them' : $statement =~ /CONCURRENTLY/ ? 'indexes'
    : $statement =~ /VALIDATE/ ? 'validation' : $statement =~ /RENAME COLUMN/ ? 'swap of the keys' : $statement =~ /^BEGIN|^ALTER/ ? 'other changes of tables' : next;
  phase($name, sub { say_sql($statement) });
}
stop_writers('uuid');
sample('uuid', 'rows', 1, $rows);
sample('uuid', 'rows that refer', 1, $children);
