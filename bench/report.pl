#!/usr/bin/perl
# perl -I bench report.pl [--gate] OUT [README]: reads OUT/results and writes the report OUT/RESULTS.md. If README is
# given, the program replaces the measured values between two marks in README. The text of the report is in the
# templates RESULTS.md.in and performance.md.in. The program computes the numbers and tables that replace the {{names}}
# in the templates of the report. If all values of a paragraph or section are missing, the report leaves the paragraph
# or section out. In tables, a dash stands for a missing value.
use strict;
use warnings;
use FindBin;
use Samples;

my $gate = @ARGV && $ARGV[0] eq '--gate' && shift;
my ($out, $readme) = @ARGV;
my $samples = Samples->read_all("$out/results");
my %text;

sub number {
  my ($value) = @_;
  return '–' unless defined $value;
  return '0' if $value == 0;
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

# sum_of PART, SUBJECT, METRIC...: returns the sum of the medians of several metrics. The result is empty if one of the
# metrics was not measured.
sub sum_of {
  my ($part, $subject, @metrics) = @_;
  my @values = map { $samples->median($part, $subject, $_) // return } @metrics;
  my $sum = 0;
  $sum += $_ for @values;
  return ($sum) x 3;
}

# subjects PART, METRIC, NAME...: returns each NAME for which the part PART of the benchmark has values of METRIC.
sub subjects {
  my ($part, $metric, @order) = @_;
  return grep { my %runs = $samples->runs($part, $_, $metric); %runs } @order;
}

# Returns the lines of a result file that does not contain samples, each line as a list of its fields.
sub lines_of {
  my ($name) = @_;
  open my $in, '<', "$out/results/$name.tsv" or return;
  return map { chomp; [split /\t/, $_, -1] } <$in>;
}

# Returns the lines of a result file without splitting the lines into fields.
sub lines_of_file {
  my ($name) = @_;
  open my $in, '<', "$out/results/$name" or return;
  return map { chomp; $_ } <$in>;
}

sub subjects_of_pair { return grep { my %runs = $samples->runs('against', "new: $_", 'ns'); %runs } @_ }

# Rounds a value to the nearest hundred.
sub hundreds { my ($value) = @_; return defined $value ? whole(100 * sprintf '%.0f', $value / 100) : '' }

# Breaks a paragraph into lines of at most 120 characters.
sub wrapped {
  my ($text) = @_;
  my @lines = ('');
  for my $word (split / /, $text) {
    push @lines, '' if length($lines[-1]) + length($word) >= 120;
    $lines[-1] .= ($lines[-1] eq '' ? '' : ' ') . $word;
  }
  return join "\n", @lines;
}

# ---- machine and time

$text{machine} = table(['', 'measured on'], map { [ucfirst $_->[0], $_->[1] // ''] } lines_of('machine'));
my @when = lines_of('when');
$text{when} = table(['part', 'form', 'commit', 'date', 'CPUs busy', 's'], @when);
$text{quick} = join ', ', map {"`$_->[0]`"} grep { $_->[1] eq 'quick' } @when;
$text{busy} = join ', ', map {"`$_->[0]`"} grep { $_->[4] > 0.2 } @when;
my %machine = map { @$_ } lines_of('machine');

# ---- ratios and their aims

my @ratios;

# aim TEXT, SIGN ('<=' or '>='), TARGET, RATIO...: adds a table row that shows whether RATIO meets its target. RATIO is
# a list of the median, the minimum and the maximum.
sub aim {
  my ($what, $sign, $target, @ratio) = @_;
  return unless @ratio;
  my $met = $sign eq '<=' ? $ratio[0] <= $target : $ratio[0] >= $target;
  push @ratios, [$what, spread(@ratio), ($sign eq '<=' ? 'at most ' : 'at least ') . $target, $met ? 'yes' : '**no**'];
}

my @call = ('call', ['next_id', 'ns']);
aim('CPU time of `next_id`, relative to a C function that only reads the clock and changes a counter in shared memory', '<=', 1.2, $samples->ratio(@call, ['C: clock and swap', 'ns']));
my $off = ', use_tsc off';
for (['CPU time of `nextval` with cache 1, relative to `next_id`', 'nextval cache 1', 'next_id', 8, 2], ['CPU time of `nextval` with cache 100, relative to `next_id`', 'nextval cache 100', 'next_id', 3, 1],
  ['CPU time of `nextval` with cache 1, relative to `next_id` with a different shard in each call', 'nextval cache 1', 'next_id, 8 shards in turn', 6, 2]) {
  my ($what, $theirs, $ours, $used, $unused) = @$_;
  aim($what, '>=', $used, $samples->ratio('call', [$theirs, 'ns'], [$ours, 'ns']));
  aim("$what, if `use_tsc` is off", '>=', $unused, $samples->ratio('call', [$theirs, "ns$off"], [$ours, "ns$off"]));
}
aim('CPU time in a C loop: `nextval` of one sequence with cache 1, relative to `next_id` of 256 shards in turn', '>=', 5,
  $samples->ratio('scale', ['nextval cache 1', 'CPU ns a call, 1 in turn'], ['next_id', 'CPU ns a call, 256 in turn']));
aim('CPU time in a burst: `next_id`, relative to a C function that only reads the clock and changes a counter in shared memory', '<=', 1.2,
  $samples->ratio('call', ['next_id', 'ns, ahead'], ['C: clock and swap', 'ns, ahead']));
aim("CPU time in a burst: `nextval` with cache $$_[0], relative to `next_id`", '>=', $$_[1],
  $samples->ratio('call', ["nextval cache $$_[0]", 'ns, ahead'], ['next_id', 'ns, ahead']))
  for [1, 6], [100, 2.2];
aim('`next_ids(1000)`, ns an id', '<=', 1.5, $samples->of('call', 'next_ids(1000)', 'ns an id'));
aim('`next_ids(1000000)`, ns an id', '<=', 1.5, $samples->of('call', 'next_ids(1000000)', 'ns an id'));
aim('millions of ids per second that one session gets from ten shards', '>=', 10,
  map { $_ / 1e6 } $samples->of('stall', 'next_ids, ten shards', 'ids/s'));
for my $function (qw(shard_of sequence_of time_of min_id max_id)) {
  aim("CPU time of `$function`, relative to a C function that only shifts and masks the bits of an id", '<=', 2,
    $samples->ratio('call', [$function, 'ns'], ['C: shift and mask', 'ns']));
}
aim("CPU time of `$_`, relative to `id::text`", '<=', 1.5, $samples->ratio('outside', [$_, 'ns'], ['id::text', 'ns'])) for qw(to_base62 to_base32);
aim('CPU time of `to_uuid`, relative to `min_id`', '<=', 1.2, $samples->ratio('outside', ['to_uuid', 'ns'], ['min_id', 'ns']));
aim('time of INSERT … SELECT with the default `next_id`, relative to the same INSERT with ready-made ids', '<=', 1.05,
  $samples->ratio('insert', ['INSERT: supplied', 'rows/s'], ['INSERT: next_id', 'rows/s']));
aim('CPU time of INSERT … SELECT with the default `next_id`, relative to the same INSERT with ready-made ids', '<=', 1.05,
  $samples->ratio('insert', ['INSERT: next_id', 'CPU ns a row'], ['INSERT: supplied', 'CPU ns a row']));
aim('WAL of INSERT … SELECT with the default `next_id`, relative to the same INSERT with ready-made ids', '<=', 1.001,
  $samples->ratio('insert', ['INSERT: next_id', 'WAL bytes a row'], ['INSERT: supplied', 'WAL bytes a row']));
aim("$$_[0] of COPY with the default `next_id`, relative to the same COPY with ready-made ids", '<=', $$_[2],
  $samples->ratio('insert', ['COPY: next_id', $$_[1]], ['COPY: supplied', $$_[1]]))
  for ['CPU time', 'CPU ns a row', 1.05], ['WAL', 'WAL bytes a row', 1.01];
aim('memory allocations of the C++ core for each id', '<=', 0, $samples->of('core', 'id_own/threads:1', 'allocations an item'));
aim('calls per second of two sessions on one shard, relative to `nextval` with cache 1 on one sequence', '>=', 8,
  $samples->ratio('crowd', ['next_id, one shard', 'calls/s, 2 sessions'], ['nextval cache 1', 'calls/s, 2 sessions']));
aim('calls per second of two sessions, each on its own shard, relative to one session', '>=', 1.9,
  $samples->ratio('crowd', ['next_id, own shards', 'calls/s, 2 sessions'], ['next_id, one shard', 'calls/s, 1 sessions']));
aim("ids per second of 16 clients on $_, relative to `nextval` with cache 1", '>=', 2.5,
  $samples->ratio('crowd', ["next_id, $_", 'ids/s, 16 clients'], ['nextval cache 1', 'ids/s, 16 clients']))
  for 'one shard', 'own shards';
aim('ms for which writers wait when a shard of 200,000 rows moves', '<=', 50, $samples->of('move', 'move', 'ms, fence'));
aim('CPU time of a query for one id (a constant) in 64 partitions by shard, relative to a table without partitions', '<=', 1.15,
  $samples->ratio('route', ['by_shard_64', 'CPU ns, constant'], ['plain', 'CPU ns, constant']));
my ($by_shard, $by_hash) = map { [$samples->ratio('route', [$_, 'CPU ns by pgbench, force_custom_plan'], ['plain', 'CPU ns by pgbench, force_custom_plan'])] }
  'by_shard_64', 'by_hash_64';
aim("CPU time of a query for one id (`\$1`, custom plans) in 64 partitions by shard, relative to a table without partitions. With 64 hash partitions, the ratio is @{[spread(@$by_hash)]}",
  '<=', 1.15, @$by_shard);
aim("CPU time of a PL/pgSQL loop of queries for one id, in 64 partitions by shard, relative to 64 hash partitions", '<=', 1.05,
  $samples->ratio('route', map { [$_, 'CPU ns, force_custom_plan'] } 'by_shard_64', 'by_hash_64'));
aim('ms of the longest transaction of a writer while `adopt()` changes a million rows', '<=', 50,
  $samples->of('moving', 'bigserial: adopt()', 'ms, longest transaction of a writer'));
aim('ms of the longest transaction of a writer while a UUID key is replaced', '<=', 50,
  $samples->of('moving', 'uuid: swap of the keys', 'ms, longest transaction of a writer'));
my ($minted, $counted) = map { $samples->median('endure', 'all', $_) } 'ids', 'counted by the server';
aim('ids that the server counted, minus ids that sessions received, in part `endure`', '<=', 0, (abs($counted - $minted)) x 3) if defined $counted;
aim('duplicate ids in part `endure`', '<=', 0,
  sum_of('endure', 'all', 'not above the last one', 'of another shard', 'that the other session had'));
aim('CPU time of a call with a leased region, relative to a static region', '<=', 1.05,
  $samples->ratio('lease', ['leased', 'CPU ns a call'], ['static', 'CPU ns a call']));
for my $what ('call', 'statement') {
  my ($ours) = $samples->of('first', 'next_id', "$what, us");
  my ($theirs) = $samples->of('first', 'nextval cache 1', "$what, us");
  aim("time of the first $what of a session: `next_id` relative to `nextval`", '<=', 1, ($ours / $theirs) x 3) if defined $ours && $theirs;
}
aim('millions of ids per second of the C++ core in one thread', '>=', 41,
  map { $_ / 1e6 } $samples->of('core', 'id_own/threads:1', 'items/s'));
my @kernel_id = $samples->of('core', 'kernel_id_own/threads:1', 'CPU ns an item');
my $kernel_clock = $samples->median('core', 'clock_read_kernel', 'CPU ns an item');
aim("ns of the C++ core for an id, without the time to read the kernel's clock", '<=', 10, map { $_ - $kernel_clock } @kernel_id)
  if @kernel_id && defined $kernel_clock;
aim('ns of the C++ core for each id in a batch of 1,000', '<=', 0.5, $samples->of('core', 'batch_own/1000', 'CPU ns an item'));
aim('ids per second of two threads of the C++ core with separate counters, relative to one thread', '>=', 1.9,
  $samples->ratio('core', ['id_own/threads:2', 'items/s'], ['id_own/threads:1', 'items/s']));
$text{aims} = table(['', 'measured', 'aim', 'met'], @ratios);

# Checks a measured value against a wide limit, which a regression exceeds, but other work on the machine does not.
my @broken;
sub gate {
  my ($what, $sign, $limit, @ratio) = @_;
  my $met = @ratio && ($sign eq '<=' ? $ratio[0] <= $limit : $ratio[0] >= $limit);
  push @broken, "$what is " . spread(@ratio) . ", and must be $sign $limit" unless $met;
}
my $counter_used = $samples->{call}{server}{'counter used'}{1};
if ($gate) {
  gate('nextval cache 1 / next_id, use_tsc off', '>=', 1.5, $samples->ratio('call', ['nextval cache 1', "ns$off"], ['next_id', "ns$off"]));
  gate('nextval cache 1 / next_id', '>=', 5, $samples->ratio('call', ['nextval cache 1', 'ns'], ['next_id', 'ns'])) if $counter_used;
  gate('next_id / C function: clock and swap, use_tsc off', '<=', 2.5, $samples->ratio('call', ['next_id', "ns$off"], ['C: clock and swap', "ns$off"]));
  for my $how ('INSERT', 'COPY') {
    gate("$how: $$_[0] of next_id / supplied", '<=', $$_[1], $samples->ratio('insert', ["$how: next_id", $$_[0]], ["$how: supplied", $$_[0]]))
      for ['WAL bytes a row', 1.01], ['CPU ns a row', 1.3];
  }
  gate('core: allocations an id', '<=', 0, $samples->of('core', 'id_own/threads:1', 'allocations an item'));
}
$text{counter_unused} = $machine{'clock source'} if defined $counter_used && !$counter_used;

# ---- calls

my @random = ('UUID v7', 'ULID', 'ULID, text', 'KSUID', 'KSUID, text', 'NanoID');
my @callers = subjects('call', 'ns', 'C: counter', 'C: clock', 'C: clock and swap', 'next_id', 'next_id, default_shard',
  'next_id, 8 shards in turn', 'nextval cache 100', 'nextval cache 1', @random, 'Instagram, one expression', 'UUID v4', 'SQL engine', 'Instagram, as pasted');

# calls METRIC, FLOOR, SUBJECT...: returns a table row with the cost of a call for each measured function SUBJECT.
# METRIC is the name of the cost, such as 'ns'. The row also shows the ratio of the cost of SUBJECT to the cost of the
# function FLOOR (the baseline).
sub calls {
  my ($metric, $floor, @subjects) = @_;
  return map { [$_, spread($samples->of('call', $_, $metric)), spread($samples->ratio('call', [$_, $metric], [$floor, $metric]))] }
    subjects('call', $metric, @subjects);
}
# both_calls METRIC, SUBJECT...: returns a table with the cost of calls, with and without the processor's time stamp
# counter.
sub both_calls {
  my ($metric, @subjects) = @_;
  my %without = map { $_->[0] => $_ } calls("$metric$off", 'next_id', @subjects);
  return table(['', 'ns a call', 'of `next_id`', 'ns, `use_tsc = off`', 'of `next_id`'],
    map { [@$_, @{ $without{ $_->[0] } // [ ('') x 3 ] }[1, 2]] } calls($metric, 'next_id', @subjects));
}
$text{calls} = both_calls('ns', @callers);
$text{burst} = both_calls('ns, ahead', 'next_id', 'C: clock and swap', 'nextval cache 100', 'nextval cache 1');
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

$text{core} = table(['', 'CPU ns an item', 'of `bare_id`', 'items a second, all threads', 'allocations an item'],
  map { my $name = $_; my $floor = $name =~ s/^(kernel_)?id_/bare_id_/r;
    ["`$name`", spread($samples->of('core', $name, 'CPU ns an item')),
     $floor ne $name ? spread($samples->ratio('core', [$name, 'CPU ns an item'], [$floor, 'CPU ns an item'])) : '',
     spread($samples->of('core', $name, 'items/s')), number($samples->median('core', $name, 'allocations an item'))] }
    subjects('core', 'items/s', 'clock_read_kernel', 'clock_read', 'swap_own/threads:1', 'bare_id_own/threads:1', 'kernel_id_own/threads:1',
      'id_own/threads:1', 'batch_own/1000', 'batch_own/1000000', 'batch_own/1000/threads:2', 'batch_shared/1000/threads:2', 'decode'));

# millions PART, METRIC, [NAME, SUBJECT]...: returns a table of rates in millions, with a row for each NAME and a column
# for each number of threads or clients. The benchmark's part PART (such as 'core') measured the rate METRIC (such as
# 'items/s') of SUBJECT. The letter N in METRIC and SUBJECT stands for the number of threads or clients.
sub millions {
  my ($part, $metric, @names) = @_;
  my @counts = grep { my $n = $_; grep { $samples->of($part, $_->[1] =~ s/\bN\b/$n/r, $metric =~ s/\bN\b/$n/r) } @names } map { 2**$_ } 0 .. 6;
  return '' unless @counts;
  my @rows;
  for (@names) {
    my ($name, $subject) = @$_;
    my @values = map { my $n = $_; [map { $_ / 1e6 } $samples->of($part, $subject =~ s/\bN\b/$n/r, $metric =~ s/\bN\b/$n/r)] } @counts;
    next unless grep {@$_} @values;
    push @rows, [$name, map { spread(@$_) } @values];
  }
  return table(['', @counts], @rows);
}
$text{threads} = millions('core', 'items/s',
  ['next_id, own words', 'id_own/threads:N'], ['next_id, one word', 'id_shared/threads:N'],
  ['C: bare, own words', 'bare_id_own/threads:N'], ['C: bare, one word', 'bare_id_shared/threads:N']);

# ---- inserts

my @keys = ('supplied', 'next_id', 'nextval cache 100', 'nextval cache 1', 'identity', @random, 'UUID v4', 'Instagram, one expression',
  'Instagram, as pasted');
sub name_of { my ($subject) = @_; return $subject =~ s/^staged: (.*)/$1, by staging/r =~ s/^fetched: next_id/next_ids first/r =~ s/^\w+: //r }

sub load_table {
  my ($part, $floor, @subjects) = @_;
  return table(['', 'rows/s', 'time, of supplied', 'CPU ns a row', 'WAL bytes a row', 'table bytes a row', 'index bytes a row', 'leaf density'],
    map { my $subject = $_;
      [name_of($subject), spread($samples->of($part, $subject, 'rows/s')),
       spread($samples->ratio($part, [$floor, 'rows/s'], [$subject, 'rows/s'])),
       number($samples->median($part, $subject, 'CPU ns a row')),
       map({ my $value = $samples->median($part, $subject, $_); defined $value ? sprintf('%.1f', $value) : '–' }
         'WAL bytes a row', 'table bytes a row', 'index bytes a row', 'leaf density %')] } subjects($part, 'rows/s', @subjects));
}
if ($samples->has('insert')) {
  my $rows = $text{load_rows} = number($samples->median('insert', 'rows', 'rows'));
  my @inserted = map {"INSERT: $_"} @keys;
  $text{insert} = load_table('insert', 'INSERT: supplied', @inserted, 'INSERT: next_id, default max_lead', "INSERT: next_id$off");
  $text{copy} = load_table('insert', 'COPY: supplied', (map {"COPY: $_"} @keys), "COPY: next_id$off", 'staged: next_id', 'fetched: next_id');
  $text{duplicates} = join '; ', subjects('insert', 'duplicate key', map { ("INSERT: $_", "COPY: $_") } @keys);
}
my @clients = grep { $samples->of('single', 'next_id', "rows/s, $_ clients") } map { 2**$_ } 0 .. 6;
$text{single} = table(['', @clients],
  map { my $key = $_; [$key, map { spread($samples->of('single', $key, "rows/s, $_ clients")) } @clients] }
    subjects('single', 'rows/s, 16 clients', @keys));

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

my @tables = ('plain', (map {"by_shard_$_"} 16, 64, 256), 'by_hash_64', 'by_list_64');
my %table = (plain => 'a plain table', (map { ("by_shard_$_" => "$_ partitions, `by_shard`") } 16, 64, 256),
  by_hash_64 => "64 partitions, PostgreSQL's own hash", by_list_64 => '64 partitions by `shard_of(id) % 64`: without pruning');
my $route_rows = $samples->median('route', 'rows', 'rows');
$text{route_rows} = whole($route_rows) if $route_rows;
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
    'CPU ns a call', (map {"ms, $_"} @standstills), map {"$_, lease server stopped"} 'calls/s', 'ms, longest call', 'ms, first id of a session');

# ---- crowds

$text{sessions} = table(['', '1 session', '2 sessions', 'ratio', 'CPU ns a call, 1', 'and 2'],
  map { my $subject = $_; my $alone = $subject =~ s/own (words|shards)/$1 eq 'words' ? 'one word' : 'one shard'/er;
    [$subject, spread($samples->of('crowd', $alone, 'calls/s, 1 sessions')), spread($samples->of('crowd', $subject, 'calls/s, 2 sessions')),
     spread($samples->ratio('crowd', [$subject, 'calls/s, 2 sessions'], [$alone, 'calls/s, 1 sessions'])),
     spread($samples->of('crowd', $alone, 'CPU ns a call, 1 sessions')), spread($samples->of('crowd', $subject, 'CPU ns a call, 2 sessions'))] }
    subjects('crowd', 'calls/s, 2 sessions', 'C: clock and swap, one word', 'C: clock and swap, own words', 'next_id, one shard',
      'next_id, own shards', 'nextval cache 100', 'nextval cache 1'));
my $crowd_waits = $samples->median('crowd', 'next_id', 'waits');
$text{crowd_waits} = whole($crowd_waits) if $crowd_waits;
$text{clients} = millions('crowd', 'ids/s, N clients',
  map { [$_, $_] } 'no generator', 'next_id, one shard', 'next_id, own shards', 'nextval cache 100', 'nextval cache 1', 'UUID v7', 'UUID v4',
  'Instagram, one expression');

# ---- scale

if ($samples->has('scale')) {
  my @counts = (1, 16, 256, 4096);
  $text{in_turn} = table(['', map { whole($_) } @counts],
    map { my $subject = $_; [$subject, map { spread($samples->of('scale', $subject, "CPU ns a call, $_ in turn")) } @counts] }
      'next_id', 'nextval cache 1');
  $text{databases} = table(['databases that mint', 1, 8, 32],
    ['`next_id`, ns a call', map { spread($samples->of('scale', 'next_id', "CPU ns a call, $_ databases")) } 1, 8, 32]);
}

# ---- stalls

my (%histogram, @stalls);
for (lines_of('stall_histogram')) {
  my ($subject, undef, $ns, $calls) = @$_;
  $histogram{$subject}{$ns} += $calls if $ns =~ /^\d+$/;
}
for my $subject (grep { $histogram{$_} } 'C: clock', 'next_id', 'nextval cache 1') {
  my %of = %{ $histogram{$subject} };
  my @ns = sort { $a <=> $b } keys %of;
  my ($all, $seen, $slow, %quantile) = (0, 0, 0);
  $all += $of{$_} for @ns;
  for my $ns (@ns) {
    $seen += $of{$ns};
    for my $q (0.5, 0.95, 0.99, 0.999, 0.9999) { $quantile{$q} //= $ns if $seen >= $q * $all }
    $slow += $of{$ns} if $ns > 1e6;
  }
  push @stalls, [$subject, number($all), map({ number($_) } @quantile{0.5, 0.95, 0.99, 0.999, 0.9999}), number($ns[-1]), $slow];
}
$text{stalls} = table(['', 'calls', 'p50', 'p95', 'p99', 'p99.9', 'p99.99', 'max', 'over 1 ms'], @stalls);
my @moved = $samples->of('stall', 'next_id', 'seconds that the mark moved');
$text{mark_moved} = spread(@moved) if @moved;
$text{stall_waits} = whole($samples->median('stall', 'next_id', 'waits'));

# ---- first calls

$text{first} = table(['', 'call, CPU µs', 'statement, µs'],
  map { my $subject = $_; [$subject, map { spread($samples->of('first', $subject, $_)) } 'call, us', 'statement, us'] }
    subjects('first', 'call, us', 'next_id', 'nextval cache 1'));

# ---- moving in

my @steps = ('nothing', 'adopt()', 'backfill()', 'rows that refer to them', 'indexes', 'validation', 'other changes of tables', 'swap of the keys');
my $moving_rows = $samples->median('moving', 'uuid', 'rows');
if ($moving_rows) {
  $text{moving_rows} = whole($moving_rows);
  $text{moving_children} = whole($samples->median('moving', 'uuid', 'rows that refer'));
  $text{moving} = table(['', 'times', 's', 'longest transaction of a client, in ms'],
    map { my $step = $_; map {
      my $subject = "$_: $step";
      my %runs = $samples->runs('moving', $subject, 's');
      my @longest = $samples->of('moving', $subject, 'ms, longest transaction of a writer');
      %runs ? [$step eq 'nothing' ? "nothing, before $_" : $step =~ /\(\)/ ? "`$step`" : $step, scalar keys %runs,
        spread($samples->of('moving', $subject, 's')), spread(@longest)] : ()
    } $step eq 'adopt()' ? 'bigserial' : $step eq 'nothing' ? ('bigserial', 'uuid') : 'uuid' } @steps);
  $text{backfill_rate} = whole($moving_rows / $samples->median('moving', 'uuid: backfill()', 's'));
}

# ---- PostgreSQL 18

my ($version, $note) = map { my ($line) = lines_of_file($_); $line } 'pg18.version', 'pg18.note';
$text{pg18_note} = $note =~ s{^error: }{}r if defined $note;
if ($samples->has('pg18') && !defined $note) {
  $text{pg18_version} = $version;
  $text{pg18_calls} = table(['', 'ns a call', 'of `next_id`'],
    map { my $subject = $_; [$subject eq 'UUID v7' ? 'UUID v7, C function of the benchmark' : $subject, spread($samples->of('pg18', $subject, 'ns')),
      spread($samples->ratio('pg18', [$subject, 'ns'], ['next_id', 'ns']))] }
      subjects('pg18', 'ns', 'next_id', 'nextval cache 1', 'uuidv7()', 'UUID v7', 'UUID v4'));
  $text{pg18_rows} = $text{load_rows} // '2,000,000';
  $text{pg18_loads} = load_table('pg18', 'INSERT: supplied', map {"INSERT: $_"} 'supplied', 'next_id', 'nextval cache 1', 'uuidv7()');
}

# ---- against another commit

if ($samples->has('against')) {
  @text{'against_old', 'against_new'} = lines_of_file('against.commits');
  $text{against} = table(['', 'ns a call, before', 'ns a call, after', 'after, of before'],
    map { my $subject = $_; ["`$subject`" =~ s/`(C: .*|.*,.*|nextval.*)`/$1/r, map({ spread($samples->of('against', "$_: $subject", 'ns')) } 'old', 'new'),
      spread($samples->ratio('against', ["new: $subject", 'ns'], ["old: $subject", 'ns']))] }
      subjects_of_pair('C: clock and swap', 'nextval cache 1', 'next_id', 'next_id, 8 shards in turn', 'next_id, in a burst', 'next_ids(1000)', 'shard_of',
        'created_within'));
}

# ---- endurance

if ($samples->has('endure')) {
  my @all = ('endure', 'all');
  $text{endure_s} = whole($samples->median(@all, 's'));
  my %rates = $samples->runs(@all, 'ids/s');
  my @slices = sort { $a <=> $b } keys %rates;
  my $third = int(@slices / 3) || 1;
  my ($early) = Samples::summary(@rates{ @slices[0 .. $third - 1] });
  my ($late) = Samples::summary(@rates{ @slices[-$third .. -1] });
  $text{endure} = table(['', ''],
    ['ids', whole($samples->median(@all, 'ids'))], ['counted by the server itself', whole($samples->median(@all, 'counted by the server'))],
    map({ [$$_[1], whole($samples->median(@all, $$_[0]))] } ['of another shard', 'ids of another shard than the requested one'],
      ['not above the last one', "ids that are not above the session's last id of the shard"], ['that the other session had', 'ids that both sessions received']),
    ['calls that waited for the clock', whole($samples->median(@all, 'calls that waited'))],
    ['ids a second', spread($samples->of(@all, 'ids/s'))], ['rate in the last third of the time, relative to the first third', number($late / $early)]);
  my $mib = sub { my ($subject, $metric) = @_; spread(map { $_ / 1024 } $samples->of('endure', $subject, $metric)) };
  $text{endure_memory} = table(['MiB', 'start', 'end'],
    ['the server, all processes', map { $mib->('server', "KiB, $_") } 'start', 'end'],
    map { my ($name, $metric) = @$_; [$name, map { $mib->('session', "$metric, $_") } 'start', 'end'] }
      ['memory of a session, with its share of shared memory', 'KiB'], ['private memory of a session', 'KiB of its own'], ['resident memory of a session', 'KiB resident']);
}

# ---- for the README

if (($machine{processor} // '') ne '' && $samples->has('call') && $samples->has('insert')) {
  $text{processor} = $machine{processor};
  ($text{version}) = $machine{extension} =~ /^([^,]+)/;
  ($text{postgres}) = $machine{PostgreSQL} =~ /^(\S+)/;
  my %commit = map { $_->[2] => 1 } grep { $_->[0] =~ /^(call|insert|crowd|single|first)$/ } @when;
  $text{commit} = join ' and ', sort keys %commit;
  my @said = (['C: clock and swap', 'the least possible cost: a C function that reads the clock and updates one number in memory'], ['next_id', '`snowflake.next_id(shard)`'],
    ['next_id, 8 shards in turn', '`snowflake.next_id(shard)`, another shard in each call'], ['nextval cache 100', '`nextval()`, cache 100'],
    ['nextval cache 1', '`nextval()`, cache 1'], ['ULID', 'ULID in C, 16 bytes'], ['UUID v7', 'UUID version 7 in C'], ['UUID v4', '`gen_random_uuid()`'],
    ['SQL engine', 'functions in plain SQL, for managed services'], ['Instagram, as pasted', "Instagram's PL/pgSQL function"]);
  $text{readme_calls} = table(['', 'ns per call', 'relative to `next_id`', 'INSERT, rows per second', 'table and index, bytes per row'],
    map { my ($subject, $name) = @$_; my $load = "INSERT: $subject";
      my @bytes = grep {defined} map { $samples->median('insert', $load, "$_ bytes a row") } 'table', 'index';
      [$name, number($samples->median('call', $subject, 'ns')), number(($samples->ratio('call', [$subject, 'ns'], ['next_id', 'ns']))[0]),
       ($subject =~ /turn/ ? '' : hundreds($samples->median('insert', $load, 'rows/s'))), @bytes == 2 ? sprintf('%.0f', $bytes[0] + $bytes[1]) : ''] }
      grep { $samples->of('call', $_->[0], 'ns') } @said);
  my ($load) = $samples->ratio('insert', ['INSERT: supplied', 'rows/s'], ['INSERT: next_id', 'rows/s']);
  my ($wal) = $samples->ratio('insert', ['INSERT: next_id', 'WAL bytes a row'], ['INSERT: supplied', 'WAL bytes a row']);
  my ($crowd) = $samples->ratio('crowd', ['next_id, one shard', 'ids/s, 16 clients'], ['nextval cache 1', 'ids/s, 16 clients']);
  my ($first, $their_first) = map { $samples->median('first', $_, 'statement, us') } 'next_id', 'nextval cache 1';
  my @said_of = (
    "An id of `snowflake.next_ids(shard, 1000)` takes @{[number($samples->median('call', 'next_ids(1000)', 'ns an id'))]} ns.",
    "INSERT … SELECT of @{[$text{load_rows}]} rows with the default takes @{[number($load)]} times as long as an INSERT of rows that contain ids. It writes @{[number($wal)]} times as much WAL.");
  my ($copy) = $samples->ratio('insert', ['COPY: next_id', 'CPU ns a row'], ['COPY: supplied', 'CPU ns a row']);
  push @said_of, "COPY with the default takes @{[number($copy)]} times the CPU time of a COPY of rows that contain ids." if $copy;
  push @said_of, "Sixteen clients get @{[number($crowd)]} times as many ids per second from one shard as from one sequence." if $crowd;
  push @said_of, "The first statement of a session with `next_id()` takes @{[number($first / $their_first)]} times as long as with `nextval()`." if $first && $their_first;
  $text{readme_loads} = join ' ', @said_of;
}

# ---- the pages

# filled PARAGRAPH: replaces the {{names}} in PARAGRAPH by measured values. Returns the changed paragraph and how many
# {{names}} were replaced. Returns an empty list if a value was not measured.
sub filled {
  my ($paragraph) = @_;
  my @names = $paragraph =~ /\{\{(\w+)\}\}/g;
  return if grep { ($text{$_} // '') eq '' } @names;
  $paragraph =~ s/\{\{(\w+)\}\}/$text{$1}/g;
  return ($paragraph =~ s/\s+$//r, scalar @names);
}
sub slurp { my ($file) = @_; open my $in, '<', $file or die "$file: $!\n"; local $/; return <$in> }
sub spew {
  my ($file, $content) = @_;
  open my $page, '>', "$file.new" or die "$file.new: $!\n";
  print $page $content;
  close $page or die "$file.new: $!\n";
  rename "$file.new", $file or die "$file: $!\n";
}

my @page;
for my $section (split /^(?=## )/m, slurp("$FindBin::Bin/RESULTS.md.in")) {
  my $measured = 0;
  my @paragraphs;
  for my $paragraph (split /\n{2,}/, $section) {
    my ($said, $names) = filled($paragraph) or next;
    $measured ||= $names;
    push @paragraphs, $said;
  }
  push @page, @paragraphs if $measured;
}
spew("$out/RESULTS.md", join("\n\n", @page) . "\n");

if (defined $readme) {
  my @said = map { my ($said) = filled($_); !defined $said ? () : $said =~ /^\|/ ? $said : wrapped($said =~ s/\n/ /gr) } split /\n{2,}/, slurp("$FindBin::Bin/performance.md.in");
  if (@said < 3) { warn "$readme: left as it is, for the parts call and insert were not measured\n" }
  else {
    my $content = slurp($readme);
    $content =~ s/(<!-- bench\/run writes this\b[^\n]*-->\n).*?(<!-- until here -->)/"$1\n" . join("\n\n", @said) . "\n\n$2"/se
      or die "$readme has no place for the results\n";
    spew($readme, $content);
  }
}

die map { "$_\n" } @broken if @broken;
