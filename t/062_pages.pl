# Runs the examples of the README and of documentation pages that no other test runs. The test fails if an example is
# neither run nor listed in %elsewhere or %not_run. Compares doc/reference.md with the catalogue, doc/errors.md with the
# sources, and the README's presets with their layouts. Also checks each link.

use strict;
use warnings FATAL => 'all';

use File::Basename qw(basename dirname);
use File::Find qw(find);
use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Node;
use Snowflake::Page;
use Test::More;

my $root = dirname($FindBin::RealBin);

# Maps each page whose examples another test runs to the name of that test.
my %elsewhere = (
	'doc/clients.md' => ['test/clients/page.pl'],
	'doc/cursors.md' => ['t/071_cursors_page.pl'],
	'doc/core.md' => ['t/063_core_library.pl'],
	'doc/fleet.md' => ['extensions/lease/t/010_fleet_page.pl'],
	'doc/http.md' => ['test/clients/python/http.py'],
	'doc/managed.md' => ['t/044_change_engine.pl'],
	'doc/monitoring.md' => ['t/053_runbook.pl'],
	'doc/moving.md' => [ 't/060_moving.pl', 't/061_moving_uuid.pl' ],
	'doc/outside.md' => ['extensions/alias/t/002_page.pl'],
	'doc/readers.md' => ['test/clients/readers.pl'],
	'doc/patroni.md' => ['test/patroni/cluster.py'],
	'doc/routing.md' => ['extensions/routing/t/042_routing_page.pl']);

# Lists the first words of each example that no test runs.
my %not_run = (
	'CONTRIBUTING.md' => { 'make  ' => 'is what runs this test' },
	'doc/monitoring/README.md' => {
		'CREATE ROLE monitor' => 'test/metrics makes the role',
		'sudo apt install prometheus-postgres' => 'test/metrics runs the exporters without systemd',
		'sudo apt install prometheus-sql' => 'the same',
		'sudo install -m 644 doc/monitoring/snowflake_rules' => 'the same, with Prometheus' },
	'extensions/alias/README.md' => { 'make -C' => 'is how scripts/test builds it' },
	'extensions/lease/README.md' => { 'make -C' => 'the same' },
	'extensions/routing/README.md' => { 'sudo make -C' => 'the same' },
	'extensions/shards/README.md' => { 'CREATE EXTENSION' => 'the pages that it links have it' },
	'extensions/migrate/README.md' => { 'CREATE EXTENSION' => 'the same' },
	'doc/reference.md' => { 'ALTER DATABASE x SET' => 't/025 runs it' },
	'bench/README.md' => { 'bench/run' => 'measures for 28 minutes' },
	'doc/design.md' => { '      id   |' => 'a drawing' });

my %page = map { $_ => slurp_file("$root/$_") } pages();
my %blocks = map { $_ => [ blocks_of($page{$_}) ] } keys %page;

sub pages
{
	my @pages;
	find({ no_chdir => 1, wanted => sub {
		$File::Find::prune = 1 if -d && m{/(?:\.git|tmp_check|node_modules|build|results)$};
		push @pages, substr $_, length($root) + 1 if /\.md$/ && !-d;
	} }, $root);
	return sort @pages;
}

sub blocks_of
{
	my ($text) = @_;
	my @blocks;
	while ($text =~ /^( *)```(\w*)\n(.*?)^\1```$/gms)
	{
		my ($indent, $language, $block) = ($1, $2, $3);
		push @blocks, [ $language, $block =~ s/^$indent//gmr ];
	}
	return @blocks;
}

my $node = Snowflake::Node->create('main', conf => "shared_preload_libraries = ''\n");
$node->start;
$ENV{PGTZ} = 'UTC';

sub next_block
{
	my ($page, $language) = @_;
	my ($at) = grep { $blocks{$page}[$_][0] eq $language } 0 .. $#{ $blocks{$page} };
	BAIL_OUT("$page has no more examples in $language") if !defined $at;
	return splice(@{ $blocks{$page} }, $at, 1)->[1];
}

# Runs the next code block of a page, and returns each statement with its comment and its result.
sub say_block
{
	my ($page) = @_;
	my $block = next_block($page, 'sql');
	my @said;
	while ($block =~ /\G\s*(?:--[^\n]*\n)*(.*?;)[ \t]*(?:--[ \t]*([^\n]*))?\n/gs)
	{
		my ($statement, $comment) = ($1, $2 // '');
		my ($status, $out, $err) = $node->psql('postgres', $statement);
		is($status, 0, "$page: " . ($statement =~ /^([^\n]*)/)[0]) or diag($err);
		push @said, { statement => $statement, comment => $comment, answer => $out =~ s/\|/ | /gr };
	}
	ok(scalar @said, "$page: the block has statements");
	return @said;
}

# Runs the installation commands of the README with a shell function instead of make.
my $install = next_block('README.md', 'sh');
my $bin = $node->config_data('--bindir');
my $stand_ins = <<~"SH";
	make() { test "\$*" = -j4 -o "\$*" = install; }
	sudo() { "\$@"; }
	SH
{
	local %ENV = (%ENV, PATH => "$bin:$ENV{PATH}", PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres');
	my ($out, $err) = ('', '');
	ok(IPC::Run::run([ 'bash', '-euc', "$stand_ins$install" ], '>', \$out, '2>', \$err), 'README: the installation succeeds') or diag("$out$err");
	like($out, qr/^ *\d{18}$/m, 'README: the installation shows a first id');
}
# Settings for leases, such as "snowflake.lease_conninfo", exist only if the library is preloaded.
$node->start_with("shared_preload_libraries = 'snowflake'");

my ($table, $insert, $decode, $range) = say_block('README.md');
like($insert->{answer}, qr/^\d{18}\b/, 'README: the INSERT returns an id');
is($decode->{answer}, $decode->{comment}, 'README: the id decodes as the comment shows');
like($range->{answer}, qr/^\d{18} \| first light$/, 'README: the query by time finds the row');
like($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN $range->{statement}"), qr/Index Scan using photos_pkey.*Index Cond: /s,
	'README: the query by time uses the primary key');

my @said = say_block('doc/using.md');
is($said[-1]{answer}, '7', 'using: an id near another row has the shard of that row');
my ($batch) = say_block('doc/using.md');
is(() = $batch->{answer} =~ /^\d+$/mg, 1000, 'using: the batch has 1000 ids');
@said = say_block('doc/using.md');
is($said[-1]{answer}, '5', 'using: a row that is inserted with NULL gets an id');
@said = say_block('doc/using.md');
is($said[0]{answer}, "5 | 2\n7 | 1", 'using: the query counts rows by shard') or diag($said[0]{answer});
my ($status, $out, $err) = $node->psql('postgres', next_block('doc/using.md', 'sql'));
is($err, '', 'using: the INSERT with a logging trigger has no error');
like($node->log_content, qr/LOG:  table=users id=(\d+) at=20\S+ \S+ region=0 shard=7 sequence=\d+\n/, 'using: the log contains the fields of the id');
@said = say_block('doc/using.md');
is($said[-1]{answer}, 'member', 'using: the query shows the kind of an id');
isnt(($node->psql('postgres', 'INSERT INTO members VALUES (snowflake.next_id(16))'))[0], 0, 'using: the check refuses an id of another kind');
@said = say_block('doc/using.md');
is(() = $said[0]{answer} =~ /^\d+ \|/mg, 3, 'using: the query returns the rows of a day');
@said = say_block('doc/using.md');
like($said[1]{answer}, qr/^0 \| 5 \| \d+ \| .* \| this server \| $/m, 'using: audit() shows ids of this server, without a finding');
@said = say_block('doc/using.md');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass}), '4', 'using: there are partitions of this month and of the next three');
is($said[-1]{answer}, $node->safe_psql('postgres', q{SELECT min(inhrelid)::regclass FROM pg_inherits WHERE inhparent = 'events'::regclass}),
	'using: a row is inserted into the first partition');
@said = say_block('doc/using.md');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass}), '4', 'using: no partition is older than a year');
@said = say_block('doc/using.md');
is($node->safe_psql('postgres', q{SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'events_before_2026'}),
	$node->safe_psql('postgres', q{SELECT format('FOR VALUES FROM (MINVALUE) TO (%L)', snowflake.min_id('2026-01-01+00')::text)}),
	'using: the bound is a number');

# Runs the statements of each example of doc/orders.md in one session. The test simulates a kernel that reports a
# synchronized clock.
($status, $out, $err) = $node->psql('postgres', next_block('doc/orders.md', 'sql'));
is($out, "second\nfirst", 'orders: the example of the approximate order has the expected result') or diag($err);
($status, $out, $err) = $node->psql('postgres', next_block('doc/orders.md', 'sql'));
is($out, 't', 'orders: the example of the causal order has the expected result') or diag($err);
$node->safe_psql('postgres', "ALTER DATABASE postgres SET snowflake.clock_error = '5ms'");
($status, $out, $err) = $node->psql('postgres', next_block('doc/orders.md', 'sql'));
is($out, 't', 'orders: the example of the external order has the expected result') or diag($err);
is($node->safe_psql('postgres', 'SELECT commit_waits FROM snowflake.database_stats'), '1', 'orders: one commit waited');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET snowflake.clock_error');

@said = say_block('doc/questions.md');
is($node->safe_psql('postgres', "SELECT mark > (SELECT snowflake.time_of(max(id)) FROM photos) FROM snowflake.health"), 't',
	'questions: the mark is after every id');
is($node->safe_psql('postgres', 'SELECT snowflake.next_id(5) > (SELECT max(id) FROM photos)'), 't', 'questions: new ids are greater than those of all rows');
$node->safe_psql('postgres', 'CREATE ROLE somebody; GRANT INSERT ON photos TO somebody');
say_block('doc/questions.md');
like($node->error_of("SET ROLE somebody; INSERT INTO photos DEFAULT VALUES"), qr/42501/, 'questions: after the REVOKE an ordinary role cannot mint');

my $worked = 0;
while (grep { $_->[0] eq 'sql' } @{ $blocks{'doc/layout.md'} })
{
	@said = say_block('doc/layout.md');
	is($_->{answer}, $_->{comment}, "layout: the result is $_->{comment}") foreach grep { $_->{comment} ne '' } @said;
	$worked += grep { $_->{comment} ne '' } @said;
}
is($worked, 4, 'layout: the page shows four layouts');

foreach my $page (sort keys %page)
{
	if (my $tests = $elsewhere{$page})
	{
		like(slurp_file("$root/$_"), qr/\Q${\basename($page)}\E/, "$_ reads $page") foreach @$tests;
		next;
	}
	my %left = %{ delete $not_run{$page} // {} };
	my @unknown;
	foreach my $block (@{ $blocks{$page} })
	{
		my ($known) = grep { index($block->[1], $_) == 0 } keys %left;
		if (defined $known) { delete $left{$known}; }
		else { push @unknown, $block->[1]; }
	}
	is(join("\n", @unknown), '', "$page: every example is run or listed as not run");
	is(join(', ', keys %left), '', "$page: the page has each example that is listed as not run") if %left;
}
is(join(', ', keys %not_run), '', 'every listed page exists');

my %program = map { $_ => slurp_file("$root/$_") } map { "scripts/$_" } map { basename($_) } grep { -f } glob("$root/scripts/*");
foreach my $page (sort keys %page)
{
	my @wrong;
	while ($page{$page} =~ m{(?<![\w./-])(scripts/[\w.-]*\w)((?: +--?[a-z][\w-]*| +[^\s`|#)-][^\s`|#)]*)*)}g)
	{
		my ($name, $rest) = ($1, $2);
		next if -d "$root/$name";
		push @wrong, $name and next if !-f "$root/$name";
		push @wrong, map { "$name $_" } grep { index($program{$name} // slurp_file("$root/$name"), $_) < 0 } $rest =~ /(?<= )(--[a-z][\w-]*)/g;
	}
	is(join(', ', @wrong), '', "$page: the programs and options on the page exist");
}

# Checks that each file that a documentation page names exists. A page can name a file by the end of its path
# (`pg/checks/seal_check.cpp`), and a test by the beginning of its path (`t/005`).
my @files;
find({ no_chdir => 1, wanted => sub {
	$File::Find::prune = 1 if -d && m{/(?:\.git|tmp_check|node_modules|build|results)$};
	push @files, '/' . substr $_, length($root) + 1 if !-d;
} }, $root);
foreach my $page (grep { $_ ne 'CHANGELOG.md' } sort keys %page)
{
	my @wrong;
	foreach my $name ($page{$page} =~ m{`((?:[\w*{},-]+/)*[\w*{},-]+\.(?:[ch]pp|pl|patch)|(?:\w+/)?t/\d{3}\w*)`}g)
	{
		my $pattern = $name =~ s/\./\\./gr =~ s/\*/[^\/]*/gr =~ s/\{([\w,]+)\}/'(?:' . ($1 =~ tr{,}{|}r) . ')'/er;
		push @wrong, $name if !grep { $name =~ /\.\w+$/ ? m{/$pattern$} : m{/$pattern} } @files;
	}
	is(join(', ', @wrong), '', "$page: the files on the page exist");
}

# Checks that doc/errors.md has exactly the SQLSTATEs that the sources raise, except XX... (faults), 01... (warnings)
# and SF... (internal, never shown to users).
my (%sqlstate, %raised);
foreach (split /\n/, slurp_file($node->config_data('--sharedir') . '/errcodes.txt'))
{
	my ($code, $macro, $name) = /^(\w{5}) +[EWS] +(ERRCODE_\w+)(?: +(\w+))?/ or next;
	$sqlstate{$_} //= $code foreach $macro, $name // ();
}
foreach my $file (grep { m{^/(?:src|extensions/\w+/src)/.*\.(?:[ch]pp|sql)$} } @files)
{
	my $text = slurp_file("$root$file");
	$raised{ $sqlstate{$_} // $_ } //= $file foreach $text =~ /\b(ERRCODE_[A-Z_]+)\b/g, $text =~ /\bERRCODE = '+(\w+)'/g;
}
delete @raised{ grep { /^(?:XX|01|SF)/ } keys %raised };
my %on_page = map { $_ => 1 } map { split /, / } $page{'doc/errors.md'} =~ /^\| ((?:[0-9A-Z]{5}(?:, )?)+) \|/mg;
is(join(', ', map { "$_ ($raised{$_})" } grep { !$on_page{$_} } sort keys %raised), '', 'errors: every SQLSTATE of the sources is on the page');
is(join(', ', grep { !$raised{$_} } sort keys %on_page), '', 'errors: the sources raise every SQLSTATE of the page');

# Checks that each link of a page leads to an existing page and section.
sub anchors
{
	my ($text) = @_;
	$text =~ s/^( *)```.*?^\1```$//gms;
	my (%anchor, %count);
	foreach my $title ($text =~ /^#+ (.*)/mg)
	{
		utf8::decode($title);
		$title =~ s/\[([^]]*)\]\([^)]*\)/$1/g;
		my $anchor = lc $title;
		$anchor =~ s/[^\w\- ]//g;
		$anchor =~ tr/ /-/;
		$anchor .= "-$count{$anchor}" if $count{$anchor}++;
		$anchor{$anchor} = 1;
	}
	return \%anchor;
}
foreach my $page (sort keys %page)
{
	my @broken;
	my $text = $page{$page} =~ s/^( *)```.*?^\1```$//gmsr =~ s/`[^`\n]*`//gr;
	foreach my $link ($text =~ /\]\(([^)\s]+)\)/g)
	{
		next if $link =~ /^\w+:/;
		my ($path, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
		my $file = $path eq '' ? $page : dirname($page) . "/$path";
		$file =~ s{^\./}{};
		1 while $file =~ s{(?:^|(?<=/))(?!\.\./)[^/]+/\.\./}{};
		push @broken, $link and next if !-e "$root/$file";
		push @broken, $link if defined $anchor && !anchors($page{$file} // slurp_file("$root/$file"))->{$anchor};
	}
	is(join(', ', @broken), '', "$page: the target of every link exists");
}

# Compares doc/reference.md with the catalogue.
sub differ
{
	my ($what, $documented, $there) = @_;
	is(join(', ', grep { !$there->{$_} } sort keys %$documented), '', "reference: the catalogue has all $what of the page");
	is(join(', ', grep { !$documented->{$_} } sort keys %$there), '', "reference: the page has all $what of the catalogue");
	return;
}
sub rows_of
{
	my ($title) = @_;
	my ($section) = $page{'doc/reference.md'} =~ /^## $title\n(.*?)(?=^## |\z)/ms or BAIL_OUT("the reference has no section $title");
	return map { [ map { s/^\s+|\s+$//gr } split /(?<!\\)\|/, s/^\||\|$//gr ] } $section =~ /^(\|.*)/mg;
}
sub set_of { return { map { $_ => 1 } grep { length } split /\n/, $node->safe_psql('postgres', $_[0]) }; }

# The objects of snowflake_alias are not compared here, but in extensions/alias/t/002_page.pl.
my %functions = map { $_ => 1 } map { $_->[1] =~ /of the extension `snowflake_alias`/ ? () : $_->[0] =~ /`(\w+)\(/g } rows_of('Functions');
differ('functions', \%functions, set_of(<<~'SQL'));
	SELECT DISTINCT proname FROM pg_proc AS p
	 WHERE pronamespace = 'snowflake'::regnamespace AND coalesce(obj_description(oid, 'pg_proc'), '') !~ '^(Internal: |Returns the rows? of the view )'
	SQL
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'snowflake'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL}), '0',
	'every function has a comment');
differ('views', { map { $_ => 1 } map { $_->[0] =~ /`(\w+)`/g } rows_of('Views') },
	set_of(q{SELECT relname FROM pg_class WHERE relnamespace = 'snowflake'::regnamespace AND relkind = 'v'}));
differ('operator classes', { map { $_ => 1 } map { $_->[0] =~ /`OPERATOR CLASS (\w+)`/g } rows_of('Functions') },
	set_of(q{SELECT opcname FROM pg_opclass WHERE opcnamespace = 'snowflake'::regnamespace}));

# Converts the default of a setting from the form of doc/reference.md to the form of pg_settings.
sub plain
{
	my ($value) = @_;
	my %ms = (us => 0.001, ms => 1, s => 1000, min => 60_000, h => 3_600_000, d => 86_400_000);
	return $value =~ /^(-?[\d.]+) ?(us|ms|s|min|h|d)$/ ? $1 * $ms{$2} : $value;
}
my %settings = map { ($_->[0] =~ /^`(snowflake\.\w+)`$/)[0] // '' => $_ } rows_of('Settings');
delete $settings{''};
my %there = map { my @row = split /\|/, $_, -1; $row[0] => \@row } split /\n/, $node->safe_psql('postgres', <<~'SQL');
	SELECT name, context, boot_val, CASE WHEN boot_val ~ '^-?[0-9.]+$' THEN unit END FROM pg_settings WHERE name LIKE 'snowflake.%'
	SQL
differ('settings', \%settings, \%there);
my %changed_by = (postmaster => 'restart', sighup => 'reload', superuser => 'superuser', user => 'session');
foreach my $name (sort grep { $there{$_} } keys %settings)
{
	my (undef, $default, $by) = @{ $settings{$name} };
	my (undef, $context, $boot, $unit) = @{ $there{$name} };
	is($by, $changed_by{$context}, "reference: the page shows correctly how $name can be changed");
	$default = plain($default =~ s/`//gr =~ s/:.*//r);
	$boot = $default eq 'unset' && $boot =~ /^(?:|-1)$/ ? 'unset' : plain($boot =~ s/ 00:00:00\+00$//r . ($unit && $boot > 0 ? " $unit" : ''));
	is($default, $boot, "reference: the default of $name is that of the server");
}

# If another page shows the default of a setting, the default must be the same as in doc/reference.md.
foreach my $page (grep { $_ ne 'doc/reference.md' } sort keys %page)
{
	foreach my $table ($page{$page} =~ /^\| setting \| default \|[^\n]*\n((?:\|[^\n]*\n)+)/mg)
	{
		my %default = $table =~ /^\| `(snowflake\.\w+)` \| ([^|]*?) \|/mg;
		is($default{$_}, $settings{$_}[1], "$page: the default of $_ is that of the server") foreach sort keys %default;
	}
}

# Compares the presets of the README with the layouts of databases that use these presets.
my @presets = $page{'README.md'} =~ /^(\| `\w+` \| \d+\/.*)/mg;
is(scalar @presets, 5, 'README: there are five presets');
foreach my $preset (@presets)
{
	my ($name, @row) = map { s/^\s+|\s+$|`//gr } (split /\|/, $preset)[ 1 .. 6 ];
	$node->append_conf('postgresql.conf', "snowflake.layout = '$name'\n");
	$node->restart;
	$node->create_database($name);
	is(join(' | ', @row), $node->safe_psql($name, <<~'SQL') =~ s/\|/ | /gr, "README: the row of preset $name matches the view layout");
		SELECT bits, tick_ms || ' ms', regions || ', ' || ltrim(to_char(shards, '9,999')), ltrim(to_char(ids_per_second, '9,999,999')) || ' ids/s', to_char(ends_at, 'YYYY-MM')
		  FROM snowflake.layout
		SQL
}

done_testing();
