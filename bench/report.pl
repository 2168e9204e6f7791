#!/usr/bin/perl
# perl -I bench report.pl OUT: from OUT/results to OUT/RESULTS.md and OUT/charts. A part that was not measured is
# left out; a value that is missing shows as such.
use strict;
use warnings;
use Samples;
use Chart;

my ($out) = @ARGV;
my $samples = Samples->read_all("$out/results");
$Chart::directory = "$out/charts";
open my $md, '>', "$out/RESULTS.md" or die "$out/RESULTS.md: $!\n";

sub number {
  my ($value) = @_;
  return '–' unless defined $value;
  my $text = sprintf(abs($value) >= 100 ? '%.0f' : abs($value) >= 10 ? '%.1f' : '%.2f', $value);
  1 while $text =~ s/^(-?\d+)(\d{3})/$1,$2/;
  return $text;
}

sub spread {
  my ($median, $least, $greatest) = @_;
  return '–' unless defined $median;
  return number($median) if $least == $greatest;
  return number($median) . ' (' . number($least) . '–' . number($greatest) . ')';
}

sub text { print $md @_, "\n" }
sub table {
  my ($head, @rows) = @_;
  text('| ', join(' | ', @$head), ' |');
  text('|', join('|', '---', ('---:') x (@$head - 1)), '|');
  text('| ', join(' | ', @$_), ' |') for @rows;
  text('');
}
sub picture { my ($name, $what) = @_; text("![$what](charts/$name.svg)\n") if -e "$out/charts/$name.svg" }

my %kind = ('next_id' => 'ours');
sub kind {
  my ($subject) = @_;
  return 'floor' if $subject =~ /^(C:|supplied|no generator)/;
  return $subject =~ /next_id/ ? 'ours' : 'other';
}

# The table of a part: every subject in order, one column per metric.
sub subjects {
  my ($part, $metric, @order) = @_;
  return grep { my %runs = $samples->runs($part, $_, $metric); %runs } @order;
}

my @facts;
if (open my $in, '<', "$out/results/machine.tsv") {
  while (<$in>) { chomp; my ($name, $value) = split /\t/, $_, 2; push @facts, [$name, $value // ''] }
}
my @when;
if (open my $in, '<', "$out/results/when.tsv") {
  while (<$in>) { chomp; push @when, [split /\t/] }
}
my $quick = grep { $_->[1] eq 'quick' } @when;

text("# Results\n");
text("Written by `bench/run`; how it measures and where the nanoseconds go is in [README.md](README.md). Values are");
text("medians, with the least and the greatest run in parentheses. Ratios are taken run by run, so that what disturbed a");
text("whole run cancels out. \"C:\" are functions of the benchmark's own that promise nothing: the physical floor.\n");
text("**Some or all of this is from the quick form: few and short runs.**\n") if $quick;
text("**The machine was busy with other work** (see [When](#when)): costs in CPU time stand; rates, wall times, stalls and what");
text("several sessions achieve together are disturbed, and an aim missed there is not known to be missed.\n")
  if grep { $_->[3] > 0.2 } @when;
table(['', 'measured on'], map { [ucfirst $_->[0], $_->[1]] } @facts);

# ---- ratios first

my @ratios;

# aim TEXT, TARGET, WORSE ('<=' or '>='), RATIO...: the ratio is median, least, greatest.
sub aim {
  my ($what, $sign, $target, @ratio) = @_;
  return unless @ratio;
  my $met = $sign eq '<=' ? $ratio[0] <= $target : $ratio[0] >= $target;
  push @ratios, [$what, spread(@ratio), ($sign eq '<=' ? 'at most ' : 'at least ') . $target, $met ? 'yes' : '**no**'];
}

my @call = ('call', ['next_id', 'ns']);
aim('`next_id` / C function: clock and swap', '<=', 1.2, $samples->ratio(@call, ['C: clock and swap', 'ns']));
aim('`nextval` cache 1 / `next_id`', '>=', 4, $samples->ratio('call', ['nextval cache 1', 'ns'], ['next_id', 'ns']));
aim('`nextval` cache 100 / `next_id`', '>=', 1.8,
  $samples->ratio('call', ['nextval cache 100', 'ns'], ['next_id', 'ns']));
aim('in a burst: `next_id` / C function: clock and swap', '<=', 1.2,
  $samples->ratio('call', ['next_id', 'ns, ahead'], ['C: clock and swap', 'ns, ahead']));
aim("in a burst: `nextval` cache $$_[0] / `next_id`", '>=', $$_[1],
  $samples->ratio('call', ["nextval cache $$_[0]", 'ns, ahead'], ['next_id', 'ns, ahead']))
  for [1, 4], [100, 1.8];
aim('`next_ids(1000)`, ns an id', '<=', 1.5, $samples->of('call', 'next_ids(1000)', 'ns an id'));
aim('`next_ids(1000000)`, ns an id', '<=', 1.5, $samples->of('call', 'next_ids(1000000)', 'ns an id'));
aim('ids a second into one session over ten shards, millions', '>=', 10,
  map { $_ / 1e6 } $samples->of('stall', 'next_ids, ten shards', 'ids/s'));
for my $function (qw(shard_of sequence_of time_of min_id max_id)) {
  aim("`$function` / C function: shift and mask", '<=', 2,
    $samples->ratio('call', [$function, 'ns'], ['C: shift and mask', 'ns']));
}
aim('INSERT … SELECT: time of `next_id` / ids supplied', '<=', 1.05,
  $samples->ratio('insert', ['INSERT: supplied', 'rows/s'], ['INSERT: next_id', 'rows/s']));
aim('INSERT … SELECT: CPU time of `next_id` / ids supplied', '<=', 1.05,
  $samples->ratio('insert', ['INSERT: next_id', 'CPU ns a row'], ['INSERT: supplied', 'CPU ns a row']));
aim('WAL bytes a row, `next_id` / ids supplied', '<=', 1.001,
  $samples->ratio('insert', ['INSERT: next_id', 'WAL bytes a row'], ['INSERT: supplied', 'WAL bytes a row']));
aim('two sessions, one shard: calls of `next_id` / `nextval` cache 1', '>=', 8,
  $samples->ratio('crowd', ['next_id, one shard', 'calls/s, 2 sessions'], ['nextval cache 1', 'calls/s, 2 sessions']));
aim('two sessions, own shards: calls / one session', '>=', 1.9,
  $samples->ratio('crowd', ['next_id, own shards', 'calls/s, 2 sessions'], ['next_id, one shard', 'calls/s, 1 sessions']));
aim("16 clients, $_: ids / `nextval` cache 1", '>=', 2.5,
  $samples->ratio('crowd', ["next_id, $_", 'ids/s, 16 clients'], ['nextval cache 1', 'ids/s, 16 clients']))
  for 'one shard', 'own shards';
aim('first call of a session: `next_id` / `nextval`', '<=', 1, do {
  my ($ours) = $samples->of('first', 'next_id', 'call, us');
  my ($theirs) = $samples->of('first', 'nextval cache 1', 'call, us');
  defined $ours && $theirs ? ($ours / $theirs) x 3 : ();
});
aim('first statement of a session: `next_id` / `nextval`', '<=', 1, do {
  my ($ours) = $samples->of('first', 'next_id', 'statement, us');
  my ($theirs) = $samples->of('first', 'nextval cache 1', 'statement, us');
  defined $ours && $theirs ? ($ours / $theirs) x 3 : ();
});
my @core_id = $samples->of('core', 'id_own/threads:1', 'CPU ns an item');
my $core_clock = $samples->median('core', 'clock_read', 'CPU ns an item');
aim('core: an id less a clock read, ns', '<=', 10, map { $_ - $core_clock } @core_id) if @core_id && defined $core_clock;
aim('core: ns an id in a batch of 1,000', '<=', 0.5, $samples->of('core', 'batch_own/1000', 'CPU ns an item'));
aim('core: two threads on own words / one thread', '>=', 1.9,
  $samples->ratio('core', ['id_own/threads:2', 'items/s'], ['id_own/threads:1', 'items/s']));
my $bytes = $samples->median('scale', 'shared memory', 'bytes');
aim('shared memory for 8,192 shards, MiB', '<=', 1, ($bytes / 1048576) x 3) if defined $bytes;

text("## The short of it\n");
table(['', 'measured', 'aim', 'met'], @ratios);

# ---- calls

my @callers = subjects('call', 'ns', 'C: counter', 'C: clock', 'C: clock and swap', 'next_id', 'next_id, default_shard',
  'nextval cache 100', 'nextval cache 1', 'Instagram, one expression', 'UUID v4', 'UUID v7', 'Instagram, as pasted');
if (@callers) {
  Chart::bars('call', 'One call from SQL, net of the query (log scale)', 'CPU ns a call', 1,
    grep { defined $_->[2] }
      map { ($_ eq 'next_id' ? ['next_id, in a burst', 'ours', $samples->of('call', $_, 'ns, ahead')] : (),
             [$_, kind($_), $samples->of('call', $_, 'ns')]) } @callers);
  text("## One call from SQL\n");
  text("CPU time of the backend, net of the query's own cost, ten calls a row, in step with the clock, as ids are minted by");
  text("anybody who needs fewer than the 1,024,000 that a shard has a second (in this loop nobody does: a layout of 20 bits of");
  text("sequence takes care of it).\n");
  picture('call', 'Cost of one call, by kind of key');
  table(['', 'ns a call', 'of `next_id`'],
    map { [$_, spread($samples->of('call', $_, 'ns')), spread($samples->ratio('call', [$_, 'ns'], ['next_id', 'ns']))] }
      @callers);
  text("In a burst, which is ahead of the clock and reads the coarse one; under the default layout, with a `max_lead` of 60 s so");
  text("that pacing does not bind:\n");
  table(['', 'ns a call', 'of `next_id`'],
    map { [$_, spread($samples->of('call', $_, 'ns, ahead')),
           spread($samples->ratio('call', [$_, 'ns, ahead'], ['next_id', 'ns, ahead']))] }
      subjects('call', 'ns, ahead', 'next_id', 'C: clock and swap', 'nextval cache 100', 'nextval cache 1'));
  text("Decoding and bounds:\n");
  table(['', 'ns a call', 'of the floor'],
    map { [$_ eq 'C: shift and mask' ? $_ : "`$_`", spread($samples->of('call', $_, 'ns')),
           spread($samples->ratio('call', [$_, 'ns'], ['C: shift and mask', 'ns']))] }
      subjects('call', 'ns', 'C: shift and mask', qw(shard_of sequence_of region_of time_of min_id max_id make_id
                                                     created_within id_range decode)));
  text("`created_within` is shown with bounds that are not constants; with constants the planner works them out once.\n");
  text("Batches, the query's own cost included:\n");
  table(['', 'ns an id'],
    map { ["`$_`", spread($samples->of('call', $_, 'ns an id'))] }
      subjects('call', 'ns an id', 'array_agg(nextval)', 'unnest(next_ids(1000))', 'next_ids(10)', 'next_ids(100)',
        'next_ids(1000)', 'next_ids(10000)', 'next_ids(1000000)'));
  my @node = $samples->of('stall', 'next_ids, ten shards', 'ids/s');
  text("One session over ten shards under default settings, `next_ids(shard, 50000)` in turn: ", spread(@node),
    " ids/s; ten shards have 10,240,000.\n") if @node;
}

# ---- the core

if ($samples->has('core')) {
  text("## The core alone\n");
  text("Google Benchmark, without PostgreSQL; `bare_id` is clock and swap and nothing else.\n");
  my @order = ('clock_read', 'swap_own/threads:1', 'swap_own/threads:2', 'swap_shared/threads:2', 'bare_id_own/threads:1',
    'bare_id_own/threads:2', 'bare_id_shared/threads:2', 'id_own/threads:1', 'id_own/threads:2', 'id_shared/threads:2',
    'batch_own/1000', 'batch_own/1000000', 'batch_own/1000/threads:2', 'batch_shared/1000/threads:2', 'decode');
  table(['', 'CPU ns an item', 'of `bare_id`', 'items a second, all threads'],
    map { my $name = $_; my $floor = $name =~ s/^id_/bare_id_/r;
      ["`$name`", spread($samples->of('core', $name, 'CPU ns an item')),
       $name =~ /^id_/ ? spread($samples->ratio('core', [$name, 'CPU ns an item'], [$floor, 'CPU ns an item'])) : '',
       spread($samples->of('core', $name, 'items/s'))] }
      subjects('core', 'items/s', @order));
}

# ---- inserts

my @keys = ('supplied', 'next_id', 'nextval cache 100', 'nextval cache 1', 'identity', 'Instagram, one expression',
  'Instagram, as pasted', 'UUID v7', 'UUID v4');
if ($samples->has('insert')) {
  my $rows = number($samples->median('insert', 'rows', 'rows'));
  my @loads = subjects('insert', 'rows/s', (map {"INSERT: $_"} @keys), 'INSERT: next_id, default max_lead');
  my @copies = subjects('insert', 'rows/s', (map {"COPY: $_"} @keys), 'staged: next_id', 'fetched: next_id');
  sub name_of { my ($subject) = @_; return $subject =~ s/^staged: (.*)/$1, by staging/r =~ s/^fetched: next_id/next_ids first/r =~ s/^\w+: //r }
  Chart::bars('insert', "INSERT ... SELECT of $rows rows", 'CPU ns a row', 0,
    map { [name_of($_), kind(name_of($_)), $samples->of('insert', $_, 'CPU ns a row')] } @loads);
  Chart::bars('copy', "COPY of $rows rows", 'CPU ns a row', 0,
    map { [name_of($_), kind(name_of($_)), $samples->of('insert', $_, 'CPU ns a row')] } @copies);
  text("## Loads of $rows rows\n");
  text("Into a fresh table (`id PRIMARY KEY, v integer`), a checkpoint before each.\n");
  picture('insert', 'INSERT ... SELECT, by kind of key');
  my $columns = sub {
    my ($floor, @subjects) = @_;
    table(['', 'rows/s', 'time, of supplied', 'CPU ns a row', 'WAL bytes a row', 'index bytes a row', 'leaf density'],
      map { my $subject = $_;
        [name_of($subject), spread($samples->of('insert', $subject, 'rows/s')),
         spread($samples->ratio('insert', [$floor, 'rows/s'], [$subject, 'rows/s'])),
         number($samples->median('insert', $subject, 'CPU ns a row')),
         map({ my $value = $samples->median('insert', $subject, $_); defined $value ? sprintf('%.1f', $value) : '–' }
           'WAL bytes a row', 'index bytes a row', 'leaf density %')] } @subjects);
  };
  text("INSERT … SELECT:\n");
  $columns->('INSERT: supplied', @loads);
  picture('copy', 'COPY, by kind of key');
  text("COPY. PostgreSQL inserts row by row where a default is volatile and not core `nextval`. \"By staging\" copies into an");
  text("unlogged table without an id and inserts from there, all statements included; \"next_ids first\" fetches the ids in two");
  text("batches and copies rows that bring them along, what the client does with them not included:\n");
  $columns->('COPY: supplied', @copies);
  my @duplicates = grep { my %runs = $samples->runs('insert', $_, 'duplicate key'); %runs } map { ("INSERT: $_", "COPY: $_") } @keys;
  text("Ended in a duplicate key in at least one run: ", join('; ', @duplicates), ".\n") if @duplicates;
}
if ($samples->has('single')) {
  text("## Single rows\n");
  text("pgbench, a row per statement and transaction, `synchronous_commit = off`, default settings, one shard for all clients.");
  text("The protocol dominates; differences smaller than the spread are none.\n");
  my @metrics = map {"rows/s, $_ clients"} 1, 2, 16;
  table(['', '1 client', '2 clients', '16 clients'],
    map { my $key = $_;
      [$key, map { my %duplicate = $samples->runs('single', $key, s/rows.s/duplicate key/r);
                   %duplicate ? 'duplicate key' : spread($samples->of('single', $key, $_)) } @metrics] }
      subjects('single', $metrics[0], @keys));
}

# ---- reads

if ($samples->has('read')) {
  my $rows = $samples->median('read', 'rows', 'rows');
  my $saved = $samples->median('read', "created_at's index", 'index bytes');
  my $tables = $samples->median('read', 'key and created_at', 'table bytes') - $samples->median('read', 'key alone', 'table bytes');
  text("## A day out of thirty\n");
  text("The rows of a day out of ", number($rows), ", found through the primary key, and through a `created_at` column with an");
  text("index of its own.\n");
  table(['', 'ms', 'CPU ms, with planning'],
    map { my $way = $_; [$way, map { spread($samples->of('read', $way, $_)) } 'ms', 'CPU ms'] } 'a day by created_within(id)', 'a day by created_at');
  text("By the key, of `created_at`: ", spread($samples->ratio('read', ['a day by created_within(id)', 'CPU ms'], ['a day by created_at', 'CPU ms'])),
    " in CPU time. The key alone saves the index, ", sprintf('%.1f', $saved / $rows), " bytes a row (", sprintf('%.1f', $saved / 1048576),
    " MiB), and the column, ", sprintf('%.1f', $tables / $rows), " bytes a row.\n");
}

# ---- crowds

if ($samples->has('crowd')) {
  text("## Side by side\n");
  text("Sessions that call in a C loop, no protocol in between; calls a second of all sessions, and what a call costs each.\n");
  table(['', '1 session', '2 sessions', 'ratio', 'CPU ns a call, 1', 'and 2'],
    map { my $subject = $_; my $alone = $subject =~ s/own (words|shards)/$1 eq 'words' ? 'one word' : 'one shard'/er;
      [$subject, spread($samples->of('crowd', $alone, 'calls/s, 1 sessions')), spread($samples->of('crowd', $subject, 'calls/s, 2 sessions')),
       spread($samples->ratio('crowd', [$subject, 'calls/s, 2 sessions'], [$alone, 'calls/s, 1 sessions'])),
       spread($samples->of('crowd', $alone, 'CPU ns a call, 1 sessions')), spread($samples->of('crowd', $subject, 'CPU ns a call, 2 sessions'))] }
      subjects('crowd', 'calls/s, 2 sessions', 'C: clock and swap, one word', 'C: clock and swap, own words', 'next_id, one shard',
        'next_id, own shards', 'nextval cache 100', 'nextval cache 1'));
  my @order = subjects('crowd', 'ids/s, 16 clients', 'no generator', 'C: clock and swap, one word', 'next_id, one shard',
    'next_id, own shards', 'nextval cache 100', 'nextval cache 1', 'UUID v4', 'UUID v7', 'Instagram, one expression');
  Chart::bars('crowd', '16 clients, 1,000 ids a statement', 'millions of ids a second', 0,
    map { [$_, kind($_), map { $_ / 1e6 } $samples->of('crowd', $_, 'ids/s, 16 clients')] } @order);
  text("Clients of pgbench, each statement minting 1,000 ids, ten a row; ids a second of all clients:\n");
  my $waited = $samples->median('crowd', 'next_id', 'waits');
  text("Pacing was in the way: ", number($waited), " calls waited for the clock.\n") if $waited;
  picture('crowd', 'Ids a second of 16 clients, by generator');
  my @counts = grep { my $n = $_; subjects('crowd', "ids/s, $n clients", @order) } 1, 2, 16;
  table(['', (map {"$_ client" . ($_ > 1 ? 's' : '')} @counts), 'of `nextval` cache 1 at 16'],
    map { my $subject = $_; [$subject, map({ spread($samples->of('crowd', $subject, "ids/s, $_ clients")) } @counts),
      spread($samples->ratio('crowd', [$subject, 'ids/s, 16 clients'], ['nextval cache 1', 'ids/s, 16 clients']))] } @order);
}

# ---- scale

if ($samples->has('scale')) {
  text("## As it grows\n");
  text("Shards, or sequences, in turn, ns a call. A session that changes the shard with every call adds up the counters of");
  text("each; a sequence is looked up in the session's hash table.\n");
  my @counts = (1, 16, 256, 4096);
  table(['', map { number($_) =~ s/\..*//r } @counts],
    map { my $subject = $_; [$subject, map { spread($samples->of('scale', $subject, "CPU ns a call, $_ in turn")) } @counts] }
      'next_id', 'nextval cache 1');
  table(['databases that mint', 1, 8, 32],
    ['`next_id`, ns a call', map { spread($samples->of('scale', 'next_id', "CPU ns a call, $_ databases")) } 1, 8, 32]);
  text("Shared memory for ", number($samples->median('scale', 'shared memory', 'shards')) , " shards and 128 databases: ",
    number($bytes), " bytes.\n");
  my $chunk = $samples->median('scale', 'grow', 'rows a chunk');
  my @lines;
  for my $key ('next_id', 'UUID v4', 'UUID v7', 'nextval cache 1') {
    my %runs = $samples->runs('scale', "grow: $key", 'CPU ns a row');
    push @lines, [$key, map { [$_ * $chunk / 1e6, $runs{$_}] } sort { $a <=> $b } keys %runs] if %runs;
  }
  Chart::lines('grow', 'Inserting into a table that grows', 'millions of rows in the table', 'CPU ns a row',
    'set yrange [0:*]', @lines);
  picture('grow', 'Cost of a row as the table grows');
}

# ---- stalls

if (open my $in, '<', "$out/results/stall_histogram.tsv") {
  my (%histogram, $header);
  $header = <$in>;
  while (<$in>) { chomp; my ($subject, undef, $ns, $calls) = split /\t/; $histogram{$subject}{$ns} += $calls }
  my (@rows, @lines);
  for my $subject ('C: clock', 'next_id', 'nextval cache 1') {
    my %of = %{ $histogram{$subject} // {} } or next;
    my @ns = sort { $a <=> $b } keys %of;
    my $all = 0;
    $all += $of{$_} for @ns;
    my ($seen, $slow, @points) = (0, 0);
    my %quantile;
    for my $ns (@ns) {
      $seen += $of{$ns};
      for my $q (0.5, 0.99, 0.999, 0.9999) { $quantile{$q} //= $ns if $seen >= $q * $all }
      $slow += $of{$ns} if $ns > 1e6;
      push @points, [$ns / 1000, ($all - $seen) / $all] if $seen < $all;
    }
    push @rows, [$subject, number($all), map({ number($_) } @quantile{0.5, 0.99, 0.999, 0.9999}), number($ns[-1]), $slow];
    push @lines, [$subject, @points];
  }
  my ($waits) = $samples->of('stall', 'next_id', 'waits');
  my @moved = $samples->of('stall', 'next_id', 'seconds that the mark moved');
  Chart::lines('stall', 'Share of calls that took longer (log scales)', 'microseconds', 'share of all calls',
    "set logscale xy\nset format y '10^{%T}'\nset format x '%g'", @lines);
  text("## Stalls at full rate\n");
  text("Every call timed, clock to clock, three slices each, in turn; default settings, 64 shards. \"C: clock\" shows what the");
  text("machine itself does to a loop. In nanoseconds; the clock reading is part of them.\n");
  picture('stall', 'Share of calls that took longer than a time');
  table(['', 'calls', 'p50', 'p99', 'p99.9', 'p99.99', 'max', 'over 1 ms'], @rows);
  text("The durable mark moved by ", spread(@moved), " s in each slice; calls that waited for the clock: ", number($waits) =~ s/\..*//r, ".\n")
    if @moved;
}

# ---- first calls

if ($samples->has('first')) {
  text("## First call of a session\n");
  text("A new connection each time. \"Call\" is the function with its look-up, \"statement\" what the client waits for.\n");
  table(['', 'call, CPU µs', 'statement, µs'],
    map { my $subject = $_; [$subject, map { spread($samples->of('first', $subject, $_)) } 'call, us', 'statement, us'] }
      'next_id', 'nextval cache 1');
}
if (@when) {
  text("## When\n");
  text("And how many CPUs were busy with something else just before.\n");
  table(['part', 'form', 'date', 'CPUs busy'], @when);
}
close $md;
