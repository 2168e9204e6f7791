# doc/fleet.md: its ten commands set up three servers, and each statement for getting out of trouble gets out of the
# trouble that it is for. The commands are run as they stand there, but for names of machines, lengths of time and the time
# of the day. And what it says of messages, against the sources.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Snowflake::Node;
use Test::More;

my $page = slurp_file("$FindBin::RealBin/../../../doc/fleet.md");
my %blocks;
foreach my $section (split /^(?=##+ )/m, $page)
{
	my ($title) = $section =~ /^##+ (.*)/ or next;
	push @{ $blocks{$title} }, $1 while $section =~ /^```(?:sh|sql)\n(.*?)^```$/gms;
}

sub next_block { return shift @{ $blocks{ $_[0] } } // BAIL_OUT("the page has no more commands under \"$_[0]\""); }

sub section_ends
{
	my ($title) = @_;
	is_deeply(delete $blocks{$title}, [], "all commands of \"$title\" were run");
	return;
}

# With replacements, each of which must be possible.
sub adapted
{
	my ($text, @replacements) = @_;
	while (my ($pattern, $replacement) = splice @replacements, 0, 2)
	{
		$text =~ s/$pattern/$replacement/g or BAIL_OUT("there is no $pattern in:\n$text");
	}
	return $text;
}

# Files as Debian's packages lay them out, below the node's own directory: configuration apart from data, conf.d, and a list of
# libraries that has something already. `sudo` and `systemctl` do there what they would do for postgresql@15-main.
sub debian
{
	my ($node, $hba) = @_;
	my $base = $node->basedir;
	my $etc = "$base/etc/postgresql/15/main";
	my $data = $node->data_dir;
	system_or_bail('mkdir', '-p', "$etc/conf.d", "$base/bin");
	rename "$data/$_", "$etc/$_" or die "$_: $!" foreach 'postgresql.conf', 'pg_ident.conf';
	unlink "$data/pg_hba.conf";
	append_to_file("$etc/pg_hba.conf", $hba);
	append_to_file("$etc/postgresql.conf", <<~"CONF");
		data_directory = '$data'
		hba_file = '$etc/pg_hba.conf'
		ident_file = '$etc/pg_ident.conf'
		fsync = on
		log_statement = none
		shared_preload_libraries = 'pg_stat_statements'
		include_dir = 'conf.d'
		CONF
	append_to_file("$base/bin/sudo", "#!/bin/sh\nexec \"\$\@\"\n");
	append_to_file("$base/bin/systemctl", "#!/bin/sh\n[ \"\$2\" = postgresql\@15-main ] || exit 2\nexec pg_ctl \"\$1\" -s -w -D '$etc' -l '@{[ $node->logfile ]}'\n");
	chmod 0755, "$base/bin/sudo", "$base/bin/systemctl";
	$node->{etc} = $etc;
	$node->{_host} = $node->host;
	systemctl($node, 'start');
	return;
}

# As on a machine of the server's own: what the shell is given, its home, and its PATH.
sub shell
{
	my ($node, $commands, %environment) = @_;
	my $home = $node->basedir;
	$commands =~ s{/etc/postgresql/15/main}{$node->{etc}}g;
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, HOME => $home, PATH => "$home/bin:$ENV{PATH}",
		PGDATABASE => 'postgres', %environment);
	my ($out, $err) = ('', '');
	my $well = IPC::Run::run([ 'bash', '-euc', "cd '$home'\n$commands" ], '>', \$out, '2>', \$err);
	ok($well, 'runs: ' . ($commands =~ /\A(.*)/)[0]) or diag($err);
	return $out;
}

sub systemctl
{
	my ($node, $what) = @_;
	shell($node, "sudo systemctl $what postgresql\@15-main");
	$node->_update_pid($what eq 'stop' ? 0 : 1);
	return;
}
sub restart { return systemctl($_[0], 'restart'); }
sub configure
{
	my ($node, $file, $text) = @_;
	append_to_file("$node->{etc}/conf.d/$file", $text);
	return;
}

sub mint { return $_[0]->ids('SELECT snowflake.next_id(g % 40) FROM generate_series(1, 1000) g', 'app'); }
sub twice { my %seen; return scalar grep { $seen{$_}++ } @_; }
sub now_of { return $_[0]->safe_psql('postgres', 'SELECT clock_timestamp()'); }

# Three servers, which mint in regions of their own already.

my $title = 'Three servers';
my $already = 'Servers that mint already';
my $control = Snowflake::Control->new('control');
$control->init;
# Whoever comes over the network has to fit the line of the page.
debian($control, "local all all trust\n");
shell($control, adapted(next_block($title), q{'\*'} => q{'127.0.0.1'}));
$control->_update_pid(1);
my $commands = adapted(next_block($title), 'control:5432' => '127.0.0.1:' . $control->port,
	'host=control port=5432' => 'host=127.0.0.1 port=' . $control->port);
my $altered = next_block($title);

my (%server, @ids, %region, @put_back);
foreach my $name ('north', 'west', 'south')
{
	my $node = $server{$name} = Snowflake::Node->new($name);
	$node->init;
	$region{$name} = keys(%server) - 1;
	debian($node, "local all all trust\n");
	configure($node, 'mine.conf', "shared_preload_libraries = 'pg_stat_statements, snowflake'\nsnowflake.region = $region{$name}\nsnowflake.max_wait = 30s\n");
	restart($node);
	$node->safe_psql('postgres', 'CREATE DATABASE app');
	$node->safe_psql('app', 'CREATE EXTENSION snowflake; CREATE EXTENSION pg_stat_statements');
	push @ids, mint($node);
}
# The page's own statements make the extension; here it is there.
$commands = adapted($commands, 'CREATE EXTENSION snowflake"' => 'CREATE EXTENSION IF NOT EXISTS snowflake"');
$server{south}->safe_psql('postgres', $altered);
$control->safe_psql('fleet', next_block($already));
my $put_back = next_block($already);
foreach my $name ('north', 'west', 'south')
{
	my $node = $server{$name};
	my $out = shell($node, $commands, NAME => $name, SECRET => substr($name, 0, 1) . '-secret');
	$node->_update_pid(1);
	like($out, qr/\b\d{18}\b.*leased region [345] of fleet \d+/s, "$name mints, and shows its lease");
	is($node->safe_psql('app', 'SHOW shared_preload_libraries; SELECT count(*) > 0 FROM pg_stat_statements') =~ s/snowflake, (?=snowflake)//r,
		"pg_stat_statements, snowflake\nt", 'and has the libraries that it had');
	push @ids, map { mint($_) } values %server;
	my $before = now_of($control);
	$control->safe_psql('fleet', adapted($put_back, '\[0,0\]' => "[$region{$name},$region{$name}]"));
	push @put_back, "($region{$name}, timestamptz '$before', timestamptz '" . now_of($control) . "')";
}
is($server{south}->safe_psql('app', q{SELECT sourcefile ~ 'auto.conf' FROM pg_settings WHERE name = 'shared_preload_libraries'}), 't', 'one of them by ALTER SYSTEM');
is(twice(@ids), 0, 'no id twice, while they changed over and since');
my $told = shell($control, next_block($title));
like($told, qr/\b[345] \| $_ +\| 127\.0\.0\.1 /, "$_ has a region") foreach sort keys %server;
is($control->safe_psql('fleet', q{SELECT region, static, free, until BETWEEN began + '61 s' AND ended + '72 s'
  FROM snowflake_fleet.regions JOIN (VALUES } . join(', ', @put_back) . q{) AS put_back (region, began, ended) USING (region) ORDER BY 1}),
	"0|f|f|t\n1|f|f|t\n2|f|f|t", 'no region is lost: the old ones are free when nothing of them can be ahead');
my ($code, undef, $refused) = $control->psql('fleet', next_block($title));
like($refused, qr/somebody may have minted with this layout/, 'its layout is settled for good');
section_ends($_) foreach $title, $already;

# Where to look first

$title = 'Getting out of trouble';
like($server{north}->safe_psql('app', next_block($title)), qr/(?:leased|renewed the lease of) region \d.*\nt\|\|$/, 'what a server shows');
like($control->safe_psql('fleet', next_block($title)), qr/^t\|\|\|\n\d\|.*^west\|[^\n]*\|\{\d\}\|\{\d+\}\|\{127\.0\.0\.1\}\|/ms, 'what the control database shows');
section_ends($title);

# A server has no lease: the table is of messages that there are.

$title = 'A server has no lease';
ok(!exists $blocks{$title}, 'a table');
my $source = join '', map { slurp_file($_) } glob("$FindBin::RealBin/../src/*.cpp"), glob("$FindBin::RealBin/../../../src/pg/*/*lease*.cpp");
$source =~ s/"\n\s*"//g;
$source =~ s/"\s*PRId64\s*"/d/g;
my ($table) = $page =~ /^\| `last_message`, and in the log \|.*?\n((?:\|.*\n)+)/m;
my @messages = map { /^\| (.*?) \|/ ? $1 =~ /`(.*?)`/g : () } split /\n/, $table;
cmp_ok(scalar @messages, '>', 14, 'messages');
my %formats = map { $_ => 1 } $source =~ /"((?:[^"\\]|\\.)*)"/g;
foreach my $message (@messages)
{
	my $start = quotemeta(($message =~ /^(.*?)(?:: |\xe2|, ids|$)/)[0]);
	ok((grep { /^(?:snowflake: )?$start/ } keys %formats), "the sources say: $message");
}
delete $blocks{$title};

# Places, static servers, and where an id was made

$title = 'Pools';
$control->safe_psql('fleet', next_block($title));
section_ends($title);
is($control->safe_psql('fleet', q{SELECT pool FROM snowflake_fleet.servers WHERE server = 'frankfurt'}), '[16,24)', 'a pool');
$title = 'Static servers beside';
$control->safe_psql('fleet', next_block($title));
is($control->safe_psql('fleet', 'SELECT region, holder, free, static FROM snowflake_fleet.regions WHERE region >= 29 ORDER BY 1'), "29||t|f\n30||f|t\n31||f|t",
	'static regions are out of the pool');
$control->safe_psql('fleet', next_block($title));
is($control->safe_psql('fleet', 'SELECT region, static FROM snowflake_fleet.regions WHERE region >= 30 ORDER BY 1'), "30|f\n31|f", 'and put back');
section_ends($title);
$title = 'Where an id was made';
my $minted_by = next_block($title);
$control->safe_psql('fleet', $minted_by);
my ($of_north) = mint($server{north});
push @ids, $of_north;
my $lease = $server{north}->safe_psql('app', 'SELECT region, incarnation FROM snowflake.lease');
is($control->safe_psql('fleet', adapted($minted_by, '\*' => 'server, region, incarnation, client_addr, note', '\d{18}' => $of_north)), "north|$lease|127.0.0.1|",
	'an id of north is of north');
like($control->safe_psql('fleet', adapted($minted_by, '\*' => 'region, server, note', '\d{18}' => $ids[0])), qr/^0\|static, until changed over\|The region was static from /,
	'and one of its time before, static');
like($control->safe_psql('fleet', next_block($title)), qr/^0$/, 'nothing to prune yet');
# Started again when what it gave back is over by the clock, a server has its region again. What it minted there before is
# another life's, and only the record knows whose.
my ($before) = mint($server{west});
my $of_west = $server{west}->safe_psql('app', 'SELECT region FROM snowflake.lease');
systemctl($server{west}, 'stop');
$control->poll_query_until('fleet', "SELECT holder IS NULL AND until < clock_timestamp() FROM snowflake_fleet.regions WHERE region = $of_west") or die 'not given back';
systemctl($server{west}, 'start');
my ($after) = mint($server{west});
push @ids, $before, $after;
is($server{west}->safe_psql('app', "SELECT snowflake.region_of($_), (snowflake.explain_id($_)).minted_by"), "$of_west|" . ($_ == $after ? 'this server'
	  : "who had region $of_west leased then: snowflake_fleet.minted_by() of the control database knows"), 'explain_id(), of its own and of what was there before')
  foreach $before, $after;
is($server{west}->safe_psql('app', "CREATE TEMP TABLE two AS SELECT unnest(ARRAY[$before, $after]) AS id; SELECT region, ids, minted_by, finding FROM snowflake.audit('two', 'id')"),
	"$of_west|2|in part who had region $of_west leased then: snowflake_fleet.minted_by() of the control database knows; in part this server|", 'audit() says no more than that');
is($control->safe_psql('fleet', "SELECT count(DISTINCT incarnation), min(server), max(server) FROM unnest(ARRAY[$before, $after]) AS id, snowflake_fleet.minted_by(id)"),
	'2|west|west', 'two lives of one server');
section_ends($title);

# A region is needed, or a server is gone

$title = 'A region is needed, or a server is gone';
my $held = $server{north}->safe_psql('app', 'SELECT region FROM snowflake.lease');
$control->safe_psql('fleet', adapted(next_block($title), '\(0\)' => "($held)"));
$control->safe_psql('fleet', next_block($title));
like($control->safe_psql('fleet', "SELECT holder FROM snowflake_fleet.regions WHERE region = $held"), qr/^$/, 'evicted');
restart($server{$_}) foreach 'north', 'south';
push @ids, mint($server{north});
isnt($server{north}->safe_psql('app', 'SELECT region FROM snowflake.lease'), $held, 'an evicted server takes another region');
$server{south}->poll_query_until('app', q{SELECT last_message LIKE '%42501%' FROM snowflake.lease}) or die 'not refused';
like($server{south}->safe_psql('app', 'SELECT last_message FROM snowflake.lease'),
	qr/^the control database refused: permission denied for function acquire \(42501\)/, 'a retired one has none');
section_ends($title);
$control->safe_psql('fleet', q{SELECT snowflake_fleet.enroll('south')});
push @ids, mint($server{south});

# A password is forgotten

$title = 'A password is forgotten';
$control->safe_psql('fleet', adapted(next_block($title), 'another' => 'new'));
section_ends($title);
restart($server{north});
$server{north}->poll_query_until('app', q{SELECT last_message LIKE '%password authentication failed%' FROM snowflake.lease}) or die 'no error';
my $pass = $server{north}->basedir . '/.pgpass';
my $line = slurp_file($pass);
open my $file, '>', $pass or die "$pass: $!";
print $file adapted($line, 'n-secret' => 'new');
close $file;
push @ids, mint($server{north});
like($server{north}->log_content, qr/WARNING:  snowflake: could not connect.*password.*LOG:  snowflake: leased region/s,
	'a new password, without a restart');
is(twice(@ids), 0, 'no id twice until here');

# A fleet of short leases, to wait for their end.

$title = 'Choosing the lease';
$control->safe_psql('postgres', 'CREATE DATABASE short');
$control->install('short');
$control->safe_psql('short', adapted(next_block($title), '10 min' => '1 min', '10 s' => '2 s') . q{;SELECT snowflake_fleet.enroll('west')});
$control->safe_psql('postgres', 'CREATE DATABASE alone');
$control->install('alone');
$control->safe_psql('alone', next_block($title) . q{;SELECT snowflake_fleet.enroll('only')});
section_ends($title);
my $west = $server{west};
append_to_file("$control->{etc}/pg_hba.conf", "host short west samenet scram-sha-256\n");
systemctl($control, 'reload');
configure($west, 'with_short_leases.conf', sprintf <<~'CONF', $control->port);
	snowflake.fleet = 'host=127.0.0.1 port=%s dbname=short user=west'
	snowflake.lease = 1min
	snowflake.max_skew = 2s
	snowflake.max_wait = 30s
	CONF
my $pgpass = $west->basedir . '/.pgpass';
append_to_file($pgpass, slurp_file($pgpass) =~ s/:fleet:/:short:/r);
restart($west);
$west->refuses('SELECT snowflake.next_id(5)', { sqlstate => '55000', message => 'this database belongs to another fleet' },
	'another fleet is refused', 'app');
is($west->safe_psql('app', q{SELECT minting, reason FROM snowflake.health; SELECT refusals, since IS NOT NULL FROM snowflake.refusals WHERE cause = 'lease'}),
	"f|of another fleet\n1|t", 'health says so, and it is counted');
$west->safe_psql('app', q{SELECT setval('snowflake.fleet', 0, false)});
@ids = mint($west);
is($west->safe_psql('app', q{SELECT minting, reason FROM snowflake.health; SELECT since FROM snowflake.refusals WHERE cause = 'lease'}), "t|\n", 'until it has left it');

# The control database was promoted, or restored: as another database it is another place.

# The database is dumped and gone, while its server may not ask; then there is another in its place.
sub moves
{
	my $known = $control->safe_psql('short', 'SELECT id FROM snowflake_fleet.fleet');
	$control->safe_psql('postgres', 'ALTER ROLE west NOLOGIN');
	$control->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'west'});
	shell($control, 'pg_dump -Fc -f short.dump short');
	$control->safe_psql('postgres', 'DROP DATABASE short WITH (FORCE)');
	return $known;
}
sub comes_back
{
	shell($control, "createdb short\npg_restore -d short short.dump");
	$control->safe_psql('postgres', 'ALTER ROLE west LOGIN');
	$west->poll_query_until('app', q{SELECT last_message LIKE '%waits for an operator%' FROM snowflake.lease}) or die 'not halted';
	return;
}
$title = 'The control database was promoted, or restored';
my $promoted = next_block($title);
my $restored = next_block($title);
section_ends($title);

moves();
comes_back();
$control->safe_psql('short', $promoted);
$west->poll_query_until('app', q{SELECT last_message LIKE 'renewed%' OR last_message LIKE 'leased%' FROM snowflake.lease}) or die 'not renewed';
push @ids, mint($west);
like($west->log_content, qr/WARNING:  snowflake: (?:could not connect|lost the connection|the control database at \S+, port \d+ waits).*LOG:  snowflake: (?:renewed the lease of|leased) region/s,
	'nothing_lost(): leases go on, and the log says so');

moves();
comes_back();
my $resumes = $control->safe_psql('short', adapted($restored, '2026-11-22 12:00:00\+00' => now_of($control)));
my $renewed = q{SELECT count(*) = 1 FROM snowflake_fleet.region AS r, snowflake_fleet.fleet AS f WHERE r.incarnation <> 0 AND r.grant_number > f.lost_number};
$control->poll_query_until('short', $renewed) or die 'it loses its lease';
push @ids, mint($west);
is($west->safe_psql('app', "SELECT snowflake.time_of($ids[-1]) < '$resumes'"), 't', 'recovered(): who holds a lease goes on');

# The control database is lost, its roles as well.

$title = 'The control database is lost';
my $lost = next_block($title);
my $fleet = moves();
$control->safe_psql('postgres', 'DROP ROLE west') if $control->psql('fleet', 'DROP OWNED BY west') == 0;
my $again = adapted($lost, '\bfleet\b(?!\.dump)' => 'short', 'fleet\.dump' => 'short.dump', '2026-11-22 12:00:00\+00' => q{$(date -u '+%F %T.%N+00')});
# Privileges for a role that is not there.
shell($control, adapted($again, '(pg_restore.*)' => 'pg_restore -d short short.dump 2>restore.log || true'));
is($control->safe_psql('short', 'SELECT id FROM snowflake_fleet.fleet'), $fleet, 'restored: the same fleet');
$control->safe_psql('postgres', q{ALTER ROLE west PASSWORD 'w-secret'});
push @ids, mint($west);
is(twice(@ids), 0, 'a restored control database: no id twice');
section_ends($title);
$title = 'No time to wait?';
is($west->safe_psql('app', next_block($title)), '0', 'a database leaves its fleet');
section_ends($title);

is(join(', ', sort keys %blocks), '', 'no command of the page was left out');

# Functions: one is on a page for its users, or says itself that it is not for them; and the table has none that there is not.
my %comment = map { split /\|/, $_, 2 } split /\n/, $control->safe_psql('fleet', <<~'SQL');
	SELECT proname, left(obj_description(oid, 'pg_proc'), 20) FROM pg_proc WHERE pronamespace = 'snowflake_fleet'::regnamespace
	SQL
cmp_ok(scalar keys %comment, '>', 50, 'functions');
is(join(', ', grep { $comment{$_} !~ /^(?:Internal: |Behind |For a server's )/ && $page !~ /\b$_\(|`$_`/ } sort keys %comment), '',
	'what is not on the page says that it is internal');
my ($functions) = $page =~ /^\| function \|.*?\n((?:\|.*\n)+)/m;
is(join(', ', grep { !$comment{$_} || $comment{$_} =~ /^(?:Internal|Behind)/ } $functions =~ /`(\w+)\(/g), '', 'and what the page lists is there for its users');

done_testing();
