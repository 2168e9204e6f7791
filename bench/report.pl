#!/usr/bin/perl
# perl -I bench report.pl OUT: from OUT/results to OUT/RESULTS.md and OUT/charts. The words are in report.md beside
# this file; here are the numbers and tables that take the place of its {{names}}. A paragraph with a name that was not
# measured is left out, and so is a section of which nothing was; a value that is missing shows as such.
use strict;
use warnings;
use FindBin;
use Samples;
use Chart;

my ($out) = @ARGV;
my $samples = Samples->read_all("$out/results");
$Chart::directory = "$out/charts";
my %text;

sub number {
  my ($value) = @_;
  return '–' unless defined $value;
  my $text = sprintf(abs($value) >= 100 ? '%.0f' : abs($value) >= 10 ? '%.1f' : '%.2f', $value);
  1 while $text =~ s/^(-?\d+)(\d{3})/$1,$2/;
  return $text;
}
sub whole { return number(@_) =~ s/\..*//r }

sub spread {
  my ($median, $least, $greatest) = @_;
  return '–' unless defined $median;
  return number($median) if $least == $greatest;
  return number($median) . ' (' . number($least) . '–' . number($greatest) . ')';
}

sub table {
  my ($head, @rows) = @_;
  return '' unless @rows;
  return join "\n", '| ' . join(' | ', @$head) . ' |', '|' . join('|', '---', ('---:') x (@$head - 1)) . '|',
    map { '| ' . join(' | ', @$_) . ' |' } @rows;
}

sub kind {
  my ($subject) = @_;
  return 'floor' if $subject =~ /^(C:|supplied|no generator)/;
  return $subject =~ /next_id/ ? 'ours' : 'other';
}

# Those subjects of a part that were measured, in the order given.
sub subjects {
  my ($part, $metric, @order) = @_;
  return grep { my %runs = $samples->runs($part, $_, $metric); %runs } @order;
}

# Lines of fields, of a file that is not of samples.
sub lines_of {
  my ($name) = @_;
  open my $in, '<', "$out/results/$name.tsv" or return;
  return map { chomp; [split /\t/, $_, -1] } <$in>;
}

# ---- where and when

$text{machine} = table(['', 'measured on'], map { [ucfirst $_->[0], $_->[1] // ''] } lines_of('machine'));
my @when = lines_of('when');
$text{when} = table(['part', 'form', 'date', 'CPUs busy'], @when);
$text{quick} = join ', ', map {"`$_->[0]`"} grep { $_->[1] eq 'quick' } @when;
$text{busy} = join ', ', map {"`$_->[0]`"} grep { $_->[3] > 0.2 } @when;

# ---- ratios first

my @ratios;

# aim TEXT, SIGN ('<=' or '>='), TARGET, RATIO...: the ratio is median, least, greatest.
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
aim("`$_` / `id::text`", '<=', 1.5, $samples->ratio('outside', [$_, 'ns'], ['id::text', 'ns'])) for qw(to_base62 to_base32);
aim('`to_uuid` / `min_id`', '<=', 1.2, $samples->ratio('outside', ['to_uuid', 'ns'], ['min_id', 'ns']));
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
aim('fence of a shard of 200,000 rows that moves under load, ms', '<=', 50, $samples->of('move', 'move', 'ms, fence'));
aim('a row by its id, written into the statement, 64 partitions `by_shard` / plain table, CPU', '<=', 1.15,
  $samples->ratio('route', ['by_shard', 'CPU ns, constant'], ['plain', 'CPU ns, constant']));
aim('a row by its id, 64 partitions `by_shard` / plain table, CPU by pgbench, custom plans', '<=', 1.15,
  $samples->ratio('route', ['by_shard', 'CPU ns by pgbench, force_custom_plan'], ['plain', 'CPU ns by pgbench, force_custom_plan']));
aim('a call with a leased region / with one of its own, CPU', '<=', 1.05,
  $samples->ratio('lease', ['leased', 'CPU ns a call'], ['static', 'CPU ns a call']));
for my $what ('call', 'statement') {
  my ($ours) = $samples->of('first', 'next_id', "$what, us");
  my ($theirs) = $samples->of('first', 'nextval cache 1', "$what, us");
  aim("first $what of a session: `next_id` / `nextval`", '<=', 1, ($ours / $theirs) x 3) if defined $ours && $theirs;
}
my @core_id = $samples->of('core', 'id_own/threads:1', 'CPU ns an item');
my $core_clock = $samples->median('core', 'clock_read', 'CPU ns an item');
aim('core: an id less a clock read, ns', '<=', 10, map { $_ - $core_clock } @core_id) if @core_id && defined $core_clock;
aim('core: ns an id in a batch of 1,000', '<=', 0.5, $samples->of('core', 'batch_own/1000', 'CPU ns an item'));
aim('core: two threads on own words / one thread', '>=', 1.9,
  $samples->ratio('core', ['id_own/threads:2', 'items/s'], ['id_own/threads:1', 'items/s']));
my $bytes = $samples->median('scale', 'shared memory', 'bytes');
aim('shared memory for 8,192 shards, MiB', '<=', 1, ($bytes / 1048576) x 3) if defined $bytes;
$text{aims} = table(['', 'measured', 'aim', 'met'], @ratios);

# ---- calls

my @callers = subjects('call', 'ns', 'C: counter', 'C: clock', 'C: clock and swap', 'next_id', 'next_id, default_shard',
  'nextval cache 100', 'nextval cache 1', 'Instagram, one expression', 'UUID v4', 'UUID v7', 'Instagram, as pasted');
Chart::bars('call', 'One call from SQL, net of the query (log scale)', 'CPU ns a call', 1,
  grep { defined $_->[2] }
    map { ($_ eq 'next_id' ? ['next_id, in a burst', 'ours', $samples->of('call', $_, 'ns, ahead')] : (),
           [$_, kind($_), $samples->of('call', $_, 'ns')]) } @callers);

# calls METRIC, FLOOR, SUBJECT...: what each costs, and by how much more than the floor.
sub calls {
  my ($metric, $floor, @subjects) = @_;
  return map { [$_, spread($samples->of('call', $_, $metric)), spread($samples->ratio('call', [$_, $metric], [$floor, $metric]))] }
    subjects('call', $metric, @subjects);
}
$text{calls} = table(['', 'ns a call', 'of `next_id`'], calls('ns', 'next_id', @callers));
$text{burst} = table(['', 'ns a call', 'of `next_id`'],
  calls('ns, ahead', 'next_id', 'next_id', 'C: clock and swap', 'nextval cache 100', 'nextval cache 1'));
$text{decoding} = table(['', 'ns a call', 'of the floor'],
  map { $_->[0] =~ s/^(\w+)$/`$1`/; $_ } calls('ns', 'C: shift and mask', 'C: shift and mask',
    qw(shard_of sequence_of region_of time_of min_id max_id make_id created_within id_range decode)));
$text{batches} = table(['', 'ns an id'],
  map { ["`$_`", spread($samples->of('call', $_, 'ns an id'))] }
    subjects('call', 'ns an id', 'array_agg(nextval)', 'unnest(next_ids(1000))', 'next_ids(10)', 'next_ids(100)',
      'next_ids(1000)', 'next_ids(10000)', 'next_ids(1000000)'));
$text{outside} = table(['', 'ns a call', 'of `id::text`', 'of `gen_random_uuid()`'],
  map { my $subject = $_;
    ["`$subject`", spread($samples->of('outside', $subject, 'ns')),
     map { spread($samples->ratio('outside', [$subject, 'ns'], [$_, 'ns'])) } 'id::text', 'gen_random_uuid'] }
    subjects('outside', 'ns', 'C: 16 bytes', 'min_id', 'id::text', 'text::bigint', 'gen_random_uuid', 'to_base62', 'from_base62',
      'to_base32', 'to_base32, checked', 'from_base32', 'to_uuid', 'from_uuid', 'to_ulid', 'from_ulid', 'alias', 'from_alias',
      'token', 'from_token'));
my @ten_shards = $samples->of('stall', 'next_ids, ten shards', 'ids/s');
$text{ten_shards} = spread(@ten_shards) if @ten_shards;

# ---- the core

$text{core} = table(['', 'CPU ns an item', 'of `bare_id`', 'items a second, all threads'],
  map { my $name = $_; my $floor = $name =~ s/^id_/bare_id_/r;
    ["`$name`", spread($samples->of('core', $name, 'CPU ns an item')),
     $name =~ /^id_/ ? spread($samples->ratio('core', [$name, 'CPU ns an item'], [$floor, 'CPU ns an item'])) : '',
     spread($samples->of('core', $name, 'items/s'))] }
    subjects('core', 'items/s', 'clock_read', 'swap_own/threads:1', 'swap_own/threads:2', 'swap_shared/threads:2',
      'bare_id_own/threads:1', 'bare_id_own/threads:2', 'bare_id_shared/threads:2', 'id_own/threads:1', 'id_own/threads:2',
      'id_shared/threads:2', 'batch_own/1000', 'batch_own/1000000', 'batch_own/1000/threads:2',
      'batch_shared/1000/threads:2', 'decode'));

# ---- inserts

my @keys = ('supplied', 'next_id', 'nextval cache 100', 'nextval cache 1', 'identity', 'Instagram, one expression',
  'Instagram, as pasted', 'UUID v7', 'UUID v4');
sub name_of { my ($subject) = @_; return $subject =~ s/^staged: (.*)/$1, by staging/r =~ s/^fetched: next_id/next_ids first/r =~ s/^\w+: //r }

# loads CHART, TITLE, FLOOR, SUBJECT...: the chart and the table.
sub loads {
  my ($chart, $title, $floor, @subjects) = @_;
  @subjects = subjects('insert', 'rows/s', @subjects);
  Chart::bars($chart, $title, 'CPU ns a row', 0,
    map { [name_of($_), kind(name_of($_)), $samples->of('insert', $_, 'CPU ns a row')] } @subjects);
  return table(['', 'rows/s', 'time, of supplied', 'CPU ns a row', 'WAL bytes a row', 'index bytes a row', 'leaf density'],
    map { my $subject = $_;
      [name_of($subject), spread($samples->of('insert', $subject, 'rows/s')),
       spread($samples->ratio('insert', [$floor, 'rows/s'], [$subject, 'rows/s'])),
       number($samples->median('insert', $subject, 'CPU ns a row')),
       map({ my $value = $samples->median('insert', $subject, $_); defined $value ? sprintf('%.1f', $value) : '–' }
         'WAL bytes a row', 'index bytes a row', 'leaf density %')] } @subjects);
}
if ($samples->has('insert')) {
  my $rows = $text{load_rows} = number($samples->median('insert', 'rows', 'rows'));
  $text{insert} = loads('insert', "INSERT ... SELECT of $rows rows", 'INSERT: supplied', (map {"INSERT: $_"} @keys),
    'INSERT: next_id, default max_lead');
  $text{copy} = loads('copy', "COPY of $rows rows", 'COPY: supplied', (map {"COPY: $_"} @keys), 'staged: next_id',
    'fetched: next_id');
  $text{duplicates} = join '; ', subjects('insert', 'duplicate key', map { ("INSERT: $_", "COPY: $_") } @keys);
}
my @rates = map {"rows/s, $_ clients"} 1, 2, 16;
$text{single} = table(['', '1 client', '2 clients', '16 clients'],
  map { my $key = $_;
    [$key, map { my %duplicate = $samples->runs('single', $key, s/rows.s/duplicate key/r);
                 %duplicate ? 'duplicate key' : spread($samples->of('single', $key, $_)) } @rates] }
    subjects('single', $rates[0], @keys));

# ---- reads

if ($samples->has('read')) {
  my $rows = $samples->median('read', 'rows', 'rows');
  my $index = $samples->median('read', "created_at's index", 'index bytes');
  my $column = $samples->median('read', 'key and created_at', 'table bytes') - $samples->median('read', 'key alone', 'table bytes');
  my @ways = ('a day by created_within(id)', 'a day by created_at');
  $text{read_rows} = number($rows);
  $text{read} = table(['', 'ms', 'CPU ms, with planning'],
    map { my $way = $_; [$way, map { spread($samples->of('read', $way, $_)) } 'ms', 'CPU ms'] } @ways);
  $text{read_ratio} = spread($samples->ratio('read', map { [$_, 'CPU ms'] } @ways));
  $text{index_saved} = sprintf '%.1f bytes a row (%.1f MiB)', $index / $rows, $index / 1048576;
  $text{column_saved} = sprintf '%.1f bytes a row', $column / $rows;
}

# ---- routing

my @tables = ('plain', 'by_shard', 'by_hash', 'by_list');
my %table = (plain => 'a plain table', by_shard => '64 partitions, `by_shard`', by_hash => "64 partitions, PostgreSQL's hash",
  by_list => '64 partitions by `shard_of(id) % 64`: not pruned');
for my $way (['', 'loop'], [' by pgbench', 'pgbench']) {
  my @metrics = map {"CPU ns$way->[0], force_${_}_plan"} 'custom', 'generic';
  $text{"route_$way->[1]"} = table(['', 'custom plans', 'of the plain table', 'generic plan', 'of the plain table'],
    map { my $what = $_; [$table{$what}, map { (spread($samples->of('route', $what, $_)), spread($samples->ratio('route', [$what, $_], ['plain', $_]))) } @metrics] }
      subjects('route', $metrics[0], @tables));
}

$text{move} = table(['', 'median, least and greatest'],
  map { [$_, spread($samples->of('move', 'move', $_))] }
    grep { my %runs = $samples->runs('move', 'move', $_); %runs } 'ms, fence', 'ms, writers waited', 'ms, writers were refused', 's, the whole move', 'rows inserted meanwhile');

$text{route_constant} = table(['', 'id in the statement', 'of the plain table'],
  map { [$table{$_}, spread($samples->of('route', $_, 'CPU ns, constant')), spread($samples->ratio('route', [$_, 'CPU ns, constant'], ['plain', 'CPU ns, constant']))] }
    subjects('route', 'CPU ns, constant', @tables));

my @engines = ('direct, SELECT', 'postgres_fdw, SELECT', 'postgres_fdw, not pruned', 'direct, function', 'PL/Proxy, function', 'direct, INSERT', 'postgres_fdw, INSERT');
$text{engines} = table(['', 'statements a second', 'of direct'],
  map { my $direct = 'direct, ' . (/(function|INSERT)/ ? $1 : 'SELECT');
    [$_, spread($samples->of('engines', $_, 'statements/s')), spread($samples->ratio('engines', [$_, 'statements/s'], [$direct, 'statements/s']))] }
    subjects('engines', 'statements/s', @engines));

# ---- leases

my @standstills = ('restart', 'start after a crash', 'failover');
$text{lease} = table(['', 'region of its own', 'leased', 'ratio'],
  map { my $metric = $_; [$metric, (map { spread($samples->of('lease', $_, $metric)) } 'static', 'leased'),
    spread($samples->ratio('lease', ['leased', $metric], ['static', $metric]))] }
    grep { my %runs = $samples->runs('lease', 'leased', $_); %runs }
    'CPU ns a call', (map {"ms, $_"} @standstills), map {"$_, control database away"} 'calls/s', 'ms, longest call', 'ms, first id of a session');

# ---- crowds

$text{sessions} = table(['', '1 session', '2 sessions', 'ratio', 'CPU ns a call, 1', 'and 2'],
  map { my $subject = $_; my $alone = $subject =~ s/own (words|shards)/$1 eq 'words' ? 'one word' : 'one shard'/er;
    [$subject, spread($samples->of('crowd', $alone, 'calls/s, 1 sessions')), spread($samples->of('crowd', $subject, 'calls/s, 2 sessions')),
     spread($samples->ratio('crowd', [$subject, 'calls/s, 2 sessions'], [$alone, 'calls/s, 1 sessions'])),
     spread($samples->of('crowd', $alone, 'CPU ns a call, 1 sessions')), spread($samples->of('crowd', $subject, 'CPU ns a call, 2 sessions'))] }
    subjects('crowd', 'calls/s, 2 sessions', 'C: clock and swap, one word', 'C: clock and swap, own words', 'next_id, one shard',
      'next_id, own shards', 'nextval cache 100', 'nextval cache 1'));
my @crowd = subjects('crowd', 'ids/s, 16 clients', 'no generator', 'C: clock and swap, one word', 'next_id, one shard',
  'next_id, own shards', 'nextval cache 100', 'nextval cache 1', 'UUID v4', 'UUID v7', 'Instagram, one expression');
Chart::bars('crowd', '16 clients, 1,000 ids a statement', 'millions of ids a second', 0,
  map { [$_, kind($_), map { $_ / 1e6 } $samples->of('crowd', $_, 'ids/s, 16 clients')] } @crowd);
my $crowd_waits = $samples->median('crowd', 'next_id', 'waits');
$text{crowd_waits} = number($crowd_waits) if $crowd_waits;
my @clients = grep { my $n = $_; subjects('crowd', "ids/s, $n clients", @crowd) } 1, 2, 16;
$text{clients} = table(['', (map {"$_ client" . ($_ > 1 ? 's' : '')} @clients), 'of `nextval` cache 1 at 16'],
  map { my $subject = $_; [$subject, map({ spread($samples->of('crowd', $subject, "ids/s, $_ clients")) } @clients),
    spread($samples->ratio('crowd', [$subject, 'ids/s, 16 clients'], ['nextval cache 1', 'ids/s, 16 clients']))] } @crowd);

# ---- scale

if ($samples->has('scale')) {
  my @counts = (1, 16, 256, 4096);
  $text{in_turn} = table(['', map { whole($_) } @counts],
    map { my $subject = $_; [$subject, map { spread($samples->of('scale', $subject, "CPU ns a call, $_ in turn")) } @counts] }
      'next_id', 'nextval cache 1');
  $text{databases} = table(['databases that mint', 1, 8, 32],
    ['`next_id`, ns a call', map { spread($samples->of('scale', 'next_id', "CPU ns a call, $_ databases")) } 1, 8, 32]);
  $text{shards} = number($samples->median('scale', 'shared memory', 'shards'));
  $text{shared_memory} = number($bytes);
  my $chunk = $samples->median('scale', 'grow', 'rows a chunk');
  my @lines;
  for my $key ('next_id', 'UUID v4', 'UUID v7', 'nextval cache 1') {
    my %runs = $samples->runs('scale', "grow: $key", 'CPU ns a row');
    push @lines, [$key, map { [$_ * $chunk / 1e6, $runs{$_}] } sort { $a <=> $b } keys %runs] if %runs;
  }
  Chart::lines('grow', 'Inserting into a table that grows', 'millions of rows in the table', 'CPU ns a row',
    'set yrange [0:*]', @lines);
}

# ---- stalls

my (%histogram, @stalls, @lines);
for (lines_of('stall_histogram')) {
  my ($subject, undef, $ns, $calls) = @$_;
  $histogram{$subject}{$ns} += $calls if $ns =~ /^\d+$/;
}
for my $subject (grep { $histogram{$_} } 'C: clock', 'next_id', 'nextval cache 1') {
  my %of = %{ $histogram{$subject} };
  my @ns = sort { $a <=> $b } keys %of;
  my ($all, $seen, $slow, @points, %quantile) = (0, 0, 0);
  $all += $of{$_} for @ns;
  for my $ns (@ns) {
    $seen += $of{$ns};
    for my $q (0.5, 0.99, 0.999, 0.9999) { $quantile{$q} //= $ns if $seen >= $q * $all }
    $slow += $of{$ns} if $ns > 1e6;
    push @points, [$ns / 1000, ($all - $seen) / $all] if $seen < $all;
  }
  push @stalls, [$subject, number($all), map({ number($_) } @quantile{0.5, 0.99, 0.999, 0.9999}), number($ns[-1]), $slow];
  push @lines, [$subject, Chart::thinned(@points)];
}
Chart::lines('stall', 'Share of calls that took longer (log scales)', 'microseconds', 'share of all calls',
  "set logscale xy\nset format y '10^{%T}'\nset format x '%g'", @lines);
$text{stalls} = table(['', 'calls', 'p50', 'p99', 'p99.9', 'p99.99', 'max', 'over 1 ms'], @stalls);
my @moved = $samples->of('stall', 'next_id', 'seconds that the mark moved');
$text{mark_moved} = spread(@moved) if @moved;
$text{stall_waits} = whole($samples->median('stall', 'next_id', 'waits'));

# ---- first calls

$text{first} = table(['', 'call, CPU µs', 'statement, µs'],
  map { my $subject = $_; [$subject, map { spread($samples->of('first', $subject, $_)) } 'call, us', 'statement, us'] }
    subjects('first', 'call, us', 'next_id', 'nextval cache 1'));

# ---- the page

open my $words, '<', "$FindBin::Bin/report.md" or die "$FindBin::Bin/report.md: $!\n";
my @sections = split /^(?=## )/m, do { local $/; <$words> };
my @page;
for my $section (@sections) {
  my $measured = 0;
  my @paragraphs;
  for my $paragraph (split /\n{2,}/, $section) {
    next if $paragraph =~ m{\]\((charts/[^)]+)\)} && !-e "$out/$1";
    my @names = $paragraph =~ /\{\{(\w+)\}\}/g;
    next if grep { ($text{$_} // '') eq '' } @names;
    $measured ||= @names;
    $paragraph =~ s/\{\{(\w+)\}\}/$text{$1}/g;
    push @paragraphs, $paragraph =~ s/\s+$//r;
  }
  push @page, @paragraphs if $measured;
}
open my $md, '>', "$out/RESULTS.md" or die "$out/RESULTS.md: $!\n";
print $md join("\n\n", @page), "\n";
close $md or die "$out/RESULTS.md: $!\n";
