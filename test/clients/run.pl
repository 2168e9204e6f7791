# Runs the programs of test/clients/ against one server. Each client program has its own database and reports in TAP.
# Each program compares the ids that its client library returns with id::text.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Node;
use Test::More;

my $here = $FindBin::RealBin;
my @clients = split ' ', $ENV{SNOWFLAKE_CLIENTS} // '';
ok(@clients > 0, 'SNOWFLAKE_CLIENTS names clients');
@clients = grep { !/^reader-/ } @clients;    # readers.pl runs the readers
unlike(slurp_file("$here/javascript/package-lock.json"), qr/"resolved"/, 'the lock file names no registry');

# Creates a server that listens on a Unix socket and on the loopback interface, because JDBC does not support Unix
# sockets. The extension is installed in template1, so that a role with only CREATEDB can create test databases that
# contain it.
my $node = Snowflake::Node->create('clients', conf => "listen_addresses = '127.0.0.1'\n");
$node->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust');
$node->start;
$node->safe_psql('template1', 'CREATE EXTENSION snowflake');
$node->safe_psql('postgres', 'CREATE ROLE application LOGIN CREATEDB');

my $work = $node->basedir;
my %command = (
	py => sub { ('/usr/bin/python3', '-P', $_[0]) },
	js => sub { ('node', $_[0]) },
	pl => sub { ('perl', $_[0]) },
	php => sub { ('php', $_[0]) },
	rb => sub { ('ruby', $_[0]) },
	go => sub { ('go', 'run', $_[0]) },
	java => \&java_command);

# Returns the Java command for a program. The classpath contains the Debian jars that the program lists, and the
# directory with the program's name.
sub java_command
{
	my ($file) = @_;
	my ($class) = $file =~ m{(\w+)[.]java$};
	my @jars = map { "/usr/share/java/$_.jar" } map { split } slurp_file($file) =~ m{^// Jars: (.*)$}mg;
	my $path = join ':', "$work/classes", "$here/java/" . lc $class, @jars;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'javac', '-nowarn', '-d', "$work/classes", '-cp', $path, "$here/java/Tap.java", $file ], '<', \undef, '>', \$out, '2>', \$err)
	  or diag($err);
	return ('java', '-cp', $path, $class);
}

# Returns the command that runs the program of a client.
sub command_of
{
	my ($client) = @_;
	my @files = grep { /[.](\w+)$/ && $command{$1} } glob("$here/*/$client.*"), grep { -e } "$here/java/\u$client.java";
	return if @files != 1 || $files[0] !~ /[.](\w+)$/;
	return $command{$1}->($files[0]);
}

foreach my $client (@clients)
{
	my @command = command_of($client) or fail("there is one program of $client"), next;
	(my $database = "client_$client") =~ tr/a-z0-9_/_/c;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	# Sets a region for the database of the HTTP program, because otherwise /health would report that other databases
	# mint the same ids.
	$node->safe_psql('postgres', "ALTER DATABASE $database SET snowflake.region = 1") if $client eq 'http';
	local %ENV = (
		%ENV,
		PGHOST => $node->host,
		PGPORT => $node->port,
		PGUSER => $node->safe_psql('postgres', 'SELECT current_user'),
		PGDATABASE => $database,
		PYTHONPATH => "$here/python/lib",
		PYTHONDONTWRITEBYTECODE => 1,
		GOPATH => '/usr/share/gocode',
		GO111MODULE => 'off',
		GOCACHE => "$work/go");
	my ($out, $err) = ('', '');
	# A timeout ends a client program that hangs. The timeout of a client program is long, because this test does not
	# measure speed.
	my $ended = eval { IPC::Run::run(\@command, '<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(300)); 1 };
	my $status = $ended ? $? : "no end: $@";

	my ($reported, $planned) = (0, 'none');
	foreach my $line (split /\n/, $out)
	{
		if ($line =~ /^(not )?ok \d+ - (.*)/) { ok(!$1, "$client: $2"); $reported++; }
		elsif ($line =~ /^1[.][.](\d+)$/) { $planned = $1; }
		else { diag("$client: $line"); }
	}
	ok($status eq '0' && $planned eq $reported && $reported > 0, "$client ran to its end")
	  or diag("status $status, $reported checks of $planned\n$err");
}

done_testing();
