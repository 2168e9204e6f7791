# Runs the commands of doc/fleet.md, which set up three servers, and solve each problem of "Getting out of trouble". The
# test replaces only names of machines, lengths of time and the time of day in the commands of doc/fleet.md. Compares
# the table of messages in doc/fleet.md with the source code.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::LeaseServer;
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

# Replaces patterns in a text, and fails if a pattern does not occur in the text.
sub adapted
{
	my ($text, @replacements) = @_;
	while (my ($pattern, $replacement) = splice @replacements, 0, 2)
	{
		$text =~ s/$pattern/$replacement/g or BAIL_OUT("there is no $pattern in:\n$text");
	}
	return $text;
}

# Moves the configuration files of a server out of its data directory, as Debian's packages do. Creates scripts that
# replace the commands `runuser`, `chown` and `systemctl`.
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
	# The test runs as the account of the server, so a script replaces runuser and runs its command.
	append_to_file("$base/bin/runuser", "#!/bin/sh\nshift 3\nexec \"\$\@\"\n");
	append_to_file("$base/bin/chown", "#!/bin/sh\n");
	append_to_file("$base/bin/systemctl", "#!/bin/sh\n[ \"\$2\" = postgresql\@15-main ] || exit 2\nexec pg_ctl \"\$1\" -s -w -D '$etc' -l '@{[ $node->logfile ]}'\n");
	chmod 0755, "$base/bin/runuser", "$base/bin/chown", "$base/bin/systemctl";
	$node->{etc} = $etc;
	$node->{_host} = $node->host;
	systemctl($node, 'start');
	return;
}

# Runs shell commands as a user on the machine of a server would, with the server's home directory, PATH and psql
# defaults.
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
	shell($node, "systemctl $what postgresql\@15-main");
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

# Runs the section "Three servers" of doc/fleet.md. One of the three servers already mints ids in a region that
# "snowflake.region" sets.

my $title = 'Three servers';
my $lease_server = Snowflake::LeaseServer->new('lease_server');
$lease_server->init;
debian($lease_server, "local all all trust\n");
shell($lease_server, adapted(next_block($title), q{'\*'} => q{'127.0.0.1'}));
$lease_server->_update_pid(1);
my $commands = adapted(next_block($title), 'leases:5432' => '127.0.0.1:' . $lease_server->port,
	'host=leases port=5432' => 'host=127.0.0.1 port=' . $lease_server->port);

my (%server, @ids);
foreach my $name ('north', 'west', 'south')
{
	my $node = $server{$name} = Snowflake::Node->new($name);
	$node->init;
	debian($node, "local all all trust\n");
	configure($node, 'mine.conf', "snowflake.max_wait = 30s\n" . ($name eq 'north' ? "shared_preload_libraries = 'pg_stat_statements, snowflake'\n" : ''));
	restart($node);
	$node->safe_psql('postgres', 'CREATE DATABASE app');
	$node->safe_psql('app', 'CREATE EXTENSION pg_stat_statements');
	next if $name ne 'north';
	$node->safe_psql('app', 'CREATE EXTENSION snowflake');
	push @ids, mint($node);
}
my %regions = (north => '0,1', west => '2,3', south => '4,5');
foreach my $name ('north', 'west', 'south')
{
	my $node = $server{$name};
	my $pass = $node->basedir . '/fleet.pgpass';
	my $out = shell($node, adapted($commands, '/var/lib/postgresql/fleet\.pgpass' => $pass, 'CREATE EXTENSION snowflake"' => 'CREATE EXTENSION IF NOT EXISTS snowflake"'),
		NAME => $name, SECRET => substr($name, 0, 1) . '-secret', REGIONS => $regions{$name});
	$node->_update_pid(1);
	like($out, qr/\b\d{18}\b.*(?:leased region [024] of fleet \d+|renewed the lease of region [024]\b)/s, "after the commands $name mints, and shows its lease");
	is($node->safe_psql('app', 'SELECT count(*) > 0 FROM pg_stat_statements'), 't', "after the commands $name still preloads its other library");
	push @ids, mint($node);
}
is(twice(@ids), 0, 'ids are unique, although one region was static before');
my $told = $lease_server->safe_psql('fleet', next_block($title));
like($told, qr/^[024]\|$_\|held\|127\.0\.0\.1\|/m, "the lease server shows a region of $_") foreach sort keys %server;
section_ends($title);

# Runs the first statements of "Getting out of trouble" in doc/fleet.md.

$title = 'Getting out of trouble';
like($server{north}->safe_psql('app', next_block($title)), qr/(?:leased|renewed the lease of) region \d/, 'the statement on a server shows its lease');
like($lease_server->safe_psql('fleet', next_block($title)), qr/^t\|\|\|\n.*^west\|[^\n]*\|\{2,3\}\|\{2\}\|/ms, 'the statement on the lease server shows the fleet and its servers');
section_ends($title);

my $west = $server{west};

# Checks that each message in the table of doc/fleet.md exists in the sources.

my $source = join '', map { slurp_file($_) } glob("$FindBin::RealBin/../src/*.cpp"), glob("$FindBin::RealBin/../../../src/pg/*/*lease*.cpp");
$source =~ s/"\n\s*"//g;
$source =~ s/"\s*PRId64\s*"/d/g;
my ($table) = $page =~ /^\| `last_message`, and in the log \|.*?\n((?:\|.*\n)+)/m;
my @messages = map { /^\| `(.*?)` \|/ ? $1 : () } split /\n/, $table;
cmp_ok(scalar @messages, '>', 8, 'the table has more than eight messages');
my %formats = map { $_ => 1 } $source =~ /"((?:[^"\\]|\\.)*)"/g;
foreach my $message (@messages)
{
	my $start = quotemeta(($message =~ /^(.*?)(?:: |\xe2|$)/)[0]);
	ok((grep { /^(?:snowflake: )?$start/ } keys %formats), "the sources contain the message: $message");
}
# After ALTER ROLE changes a server's password, requests must fail until the test corrects the server's password file.
$lease_server->safe_psql('fleet', q{ALTER ROLE north PASSWORD 'another'});
ask_now($server{north});
$server{north}->poll_query_until('app', q{SELECT last_message LIKE '%password authentication failed%' FROM snowflake.lease}) or die 'no error';
my $pass = $server{north}->basedir . '/fleet.pgpass';
my $line = slurp_file($pass);
open my $file, '>', $pass or die "$pass: $!";
print $file adapted($line, 'n-secret' => 'another');
close $file;
ask_now($server{north});
$server{north}->poll_query_until('app', q{SELECT last_message ~ '^renewed' FROM snowflake.lease}) or die 'not renewed';
push @ids, mint($server{north});

# Runs the sections "A lease has to end, or a server is gone" and "A machine is gone" of doc/fleet.md.

$title = 'A lease has to end, or a server is gone';
my $held = $server{north}->safe_psql('app', 'SELECT region FROM snowflake.lease');
$lease_server->safe_psql('fleet', adapted(next_block($title), '\(0\)' => "($held)"));
is($lease_server->safe_psql('fleet', "SELECT state FROM snowflake_fleet.regions WHERE region = $held"), 'revoked', 'revoke_lease() revokes the lease');
restart($server{$_}) foreach 'north', 'south';
push @ids, mint($server{north});
isnt($server{north}->safe_psql('app', 'SELECT region FROM snowflake.lease'), $held, 'the server whose lease was revoked leases another region');
$server{south}->poll_query_until('app', q{SELECT last_message LIKE '%42501%The server was removed at%' FROM snowflake.lease}) or die 'not refused';
section_ends($title);
$lease_server->safe_psql('fleet', q{SELECT snowflake_fleet.add_server('south')});
push @ids, mint($server{south});
$title = 'A machine is gone';
systemctl($server{south}, 'stop');
like($lease_server->safe_psql('fleet', next_block($title)), qr/^Region 4 is free at /, 'confirm_dead() shows when the region is free');
systemctl($server{south}, 'start');
section_ends($title);

# Runs the section "The lease server was promoted, or restored" of doc/fleet.md. The test simulates a promotion by a
# changed timeline, and a restore by changed rows without a new signature.

sub waits { return $west->poll_query_until('app', q{SELECT last_message LIKE '%waits for an operator%' FROM snowflake.lease}); }
sub renewed { return $west->poll_query_until('app', q{SELECT last_message ~ '^(renewed|leased)' FROM snowflake.lease}); }
# pg_cancel_backend() makes the process that renews the lease send its next request at once.
sub ask_now { my ($node) = @_; return ($node // $west)->safe_psql('app', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'snowflake lease'}); }
$title = 'The lease server was promoted, or restored';
$lease_server->safe_psql('fleet', 'UPDATE snowflake_fleet.fleet SET timeline = 99; SELECT snowflake_fleet.sign_rows()');
ask_now();
ok(waits(), 'after a promotion the lease server waits for an operator');
like($lease_server->safe_psql('fleet', next_block($title)), qr/^These leases continue: /, 'confirm_no_data_loss() shows the leases that continue');
ask_now();
ok(renewed(), 'after confirm_no_data_loss() the server renews its lease');
push @ids, mint($west);
my $region = $west->safe_psql('app', 'SELECT region, incarnation FROM snowflake.lease');
$lease_server->safe_psql('fleet', 'UPDATE snowflake_fleet.region SET until_ms = floor_ms');
ask_now();
ok(waits(), 'after rows were changed the lease server waits for an operator');
# confirm_data_loss() keeps a lease only if the lease ends more than two times max_skew after the call. A small max_skew
# keeps even the short lease of a server that has just started.
$lease_server->safe_psql('fleet', q{BEGIN; UPDATE snowflake_fleet.fleet SET skew_ms = 500; SELECT snowflake_fleet.sign_rows(); COMMIT});
my $now = now_of($lease_server);
my (undef, undef, $error) = $lease_server->psql('fleet', adapted($blocks{$title}[0], 'THE TIME BY YOUR WATCH' => '2026-01-01 00:00:00+00'));
like($error, qr/the clock of the lease server differs from the argument "now"/, 'confirm_data_loss() refuses a wrong time');
like($lease_server->safe_psql('fleet', adapted(next_block($title), 'THE TIME BY YOUR WATCH' => $now)), qr/^Servers keep leases that end after/, 'confirm_data_loss() shows which leases servers keep');
ask_now();
ok(renewed(), 'after confirm_data_loss() the server renews its lease');
is($west->safe_psql('app', 'SELECT region, incarnation FROM snowflake.lease'), $region, 'after confirm_data_loss() the server has the same region and incarnation');
push @ids, mint($west);
section_ends($title);

# Runs the section "The lease server is lost" of doc/fleet.md.

$title = 'The lease server is lost';
my $fleet = $lease_server->safe_psql('fleet', 'SELECT id FROM snowflake_fleet.fleet');
shell($lease_server, 'pg_dump -Fc -f fleet.dump fleet');
$lease_server->safe_psql('postgres', 'DROP DATABASE fleet WITH (FORCE); DROP ROLE west');
shell($lease_server, adapted(next_block($title), 'THE TIME BY YOUR WATCH' => now_of($lease_server), '(pg_restore.*)' => 'pg_restore -d fleet fleet.dump 2>restore.log || true'));
is($lease_server->safe_psql('fleet', 'SELECT id FROM snowflake_fleet.fleet'), $fleet, 'the restored database has the same fleet');
$lease_server->safe_psql('postgres', q{ALTER ROLE west PASSWORD 'w-secret'});
ask_now();
ok(renewed(), 'after the restore the server renews its lease');
push @ids, mint($west);
is(twice(@ids), 0, 'ids are unique over all problems and their solutions');
is($west->safe_psql('app', next_block($title)), '0', 'the last statement removes a database from its fleet');
section_ends($title);

# "Choosing the lease".

$title = 'Choosing the lease';
$lease_server->safe_psql('postgres', 'CREATE DATABASE short');
$lease_server->install('short');
like($lease_server->safe_psql('short', next_block($title)), qr/^Leases last up to 00:10:00/, 'the statement creates a fleet with another lease');
section_ends($title);

is(join(', ', sort keys %blocks), '', 'no command of the page was left out');

# Checks that doc/fleet.md contains each function, except functions whose SQL comment begins with "Internal".
my %comment = map { split /\|/, $_, 2 } split /\n/, $lease_server->safe_psql('fleet', <<~'SQL');
	SELECT proname, left(obj_description(oid, 'pg_proc'), 20) FROM pg_proc WHERE pronamespace = 'snowflake_fleet'::regnamespace
	SQL
cmp_ok(scalar keys %comment, '>', 30, 'the schema has more than 30 functions');
is(join(', ', grep { $comment{$_} !~ /^(?:Internal: |Behind )/ && $page !~ /\b$_\(|`$_`/ } sort keys %comment), '',
	'each function that is not on the page has a comment which marks it as internal');
is(join(', ', grep { !/^(?:now|health)$/ && exists $comment{$_} && $comment{$_} =~ /^(?:Internal|Behind)/ } $page =~ /`(?:SELECT snowflake_fleet\.)?(\w+)\(/g), '', 'the page names no internal function');

done_testing();
