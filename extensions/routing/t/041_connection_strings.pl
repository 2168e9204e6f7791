# The example routers and what a connection string of the map says: they do it, or refuse to go on. A server that
# speaks no TLS, one that does, one that is not the one it says, and one that does not answer.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use File::Copy qw(copy);
use IO::Socket::INET;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Fleet;
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(time);

my $fleet = Snowflake::Fleet->new({ a => [ 0, 1 ] }, conf => "listen_addresses = '127.0.0.1'\n");
my ($control, $a) = map { $fleet->node($_) } 'control', 'a';
$_->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust'), $_->reload foreach $control, $a;
my $work = $control->basedir;
my $user = $fleet->control('SELECT current_user');
my $examples = "$FindBin::RealBin/../examples";
command_ok([ 'javac', '-d', $work, "$examples/Router.java" ], 'the Java example compiles');
my $to_control = 'host=127.0.0.1 port=' . $control->port . " dbname=postgres user=$user";
my %command = (
	python => [ '/usr/bin/python3', "$examples/router.py", $to_control ],
	node => [ '/usr/bin/node', "$examples/router.js", $to_control ],
	# Short runs: little is worth compiling.
	java => [ qw(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC), '-cp', "/usr/share/java/postgresql.jar:$work", 'Router', 'jdbc:postgresql://127.0.0.1:' . $control->port . "/postgres?user=$user" ]);

# Signs up two users on the server of the map, whose connection string ends so.
sub run
{
	my ($language, $options, %params) = @_;
	my $conninfo = $params{conninfo} // 'host=127.0.0.1 port=' . $a->port . " dbname=postgres user=$user $options";
	$fleet->control('SELECT snowflake_fleet.set_server(\'a\', ' . Snowflake::Fleet::quote($conninfo) . ')');
	my @command = @{ $command{$language} };
	splice @command, -1, 1, $params{from} if $params{from};
	my ($out, $err) = ('', '');
	local %ENV = (%ENV, HOME => $work);
	delete @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)};
	my $run = IPC::Run::start([ @command, 1, 2 ], '<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(120));
	$run->finish;
	return ($run->full_result >> 8) == 0 && $out =~ /\A\d+ $language 0\n\d+ $language 1\n\z/ ? 'well' : $err;
}
sub goes { my ($language, $options) = @_; return is(run($language, $options), 'well', "$language: $options"); }
sub stops { my ($language, $options, $pattern, %params) = @_; return like(run($language, $options, %params), $pattern, "$language, refused: " . ($params{name} // $options)); }

# In the clear, there is no TLS; and options that each language has.
foreach my $language (sort keys %command)
{
	goes($language, 'application_name=\'an app\' connect_timeout=7');
	is($a->safe_psql('postgres', 'SELECT count(*) FROM shard_1.users'), 2, "$language: both are there") and $a->safe_psql('postgres', 'DELETE FROM shard_1.users');
	stops($language, "sslmode=$_", qr/SSL/) foreach 'require', 'verify-full sslrootcert=' . $a->data_dir . '/postgresql.conf';
}
stops($_, "options='-c search_path=nowhere' target_session_attrs=any", qr/cannot do what a connection string wants: target_session_attrs/) foreach 'node', 'java';
stops($_, '', qr/wants: several hosts/, conninfo => 'host=127.0.0.1,127.0.0.1 port=' . $a->port . ',' . $a->port . ' dbname=postgres', name => 'several hosts') foreach 'node', 'java';
is(run('python', '', conninfo => 'host=127.0.0.1,127.0.0.1 port=1,' . $a->port . " dbname=postgres user=$user"), 'well', 'python: several hosts');
stops('node', 'sslmode=prefer', qr/wants: sslmode=prefer/);
stops('java', '', qr/wants: a host that is none of TCP/, conninfo => $fleet->conninfo('a'), name => 'a unix socket');
is(run('node', '', from => "postgresql://$user\@127.0.0.1:" . $control->port . '/postgres?application_name=x'), 'well', 'node: the database of the map by URL');
stops('node', '', qr/wants: nothing_known/, from => "postgresql://$user\@127.0.0.1:" . $control->port . '/postgres?nothing_known=x', name => 'an option of a URL');
stops('node', '', qr/cannot be read/, from => 'secret', name => 'no connection string');
unlike(run('node', '', from => 'secret'), qr/secret/, '... nor is it repeated');

# With TLS: encrypted where that is wanted, and only with who has the certificate.
my $pki = "$work/pki";
mkdir $pki;
sub certificate
{
	my ($name, $subject) = @_;
	my $extra = $subject =~ /^\d/ ? "subjectAltName=IP:$subject" : "subjectAltName=DNS:$subject";
	my $said;
	IPC::Run::run([ 'openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', "/CN=$subject", '-addext', $extra,
			'-keyout', "$pki/$name.key", '-out', "$pki/$name.crt" ], '>&', \$said) or die $said;
	chmod 0600, "$pki/$name.key" or die $!;
	return;
}
certificate('right', '127.0.0.1');
certificate('named', 'elsewhere.example');
sub server_with
{
	my ($name) = @_;
	copy("$pki/$name.$_", $a->data_dir . "/server.$_") or die $! foreach 'crt', 'key';
	chmod 0600, $a->data_dir . '/server.key';
	$a->append_conf('postgresql.conf', 'ssl = on');
	$a->restart;
	return;
}
server_with('right');
unlink $a->data_dir . '/pg_hba.conf';
$a->append_conf('pg_hba.conf', "local all all trust\nhostssl all all 127.0.0.1/32 trust");
$a->reload;
foreach my $language (sort keys %command)
{
	goes($language, "sslmode=$_") foreach 'require', "verify-ca sslrootcert=$pki/right.crt", "verify-full sslrootcert=$pki/right.crt";
	stops($language, 'sslmode=disable', qr/no pg_hba.conf entry/);
	stops($language, "sslmode=$_", qr/certificate|PKIX|trust/) foreach map { "$_ sslrootcert=$pki/named.crt" } 'require', 'verify-ca', 'verify-full';
}
stops('node', 'sslmode=verify-full', qr/wants: sslmode=verify-full without sslrootcert/);
server_with('named');
foreach my $language (sort keys %command)
{
	goes($language, "sslmode=verify-ca sslrootcert=$pki/named.crt");
	stops($language, "sslmode=verify-full sslrootcert=$pki/named.crt", qr/does not match|altnames|could not be verified|hostname/i);
}

# A server that accepts and does not answer is given up.
my $silent = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1') or die $!;
foreach my $language (sort keys %command)
{
	my $began = time;
	isnt(run($language, '', conninfo => "host=127.0.0.1 port=${\$silent->sockport} dbname=x user=$user connect_timeout=2"), 'well', "$language: a silent server is an error");
	cmp_ok(time - $began, '<', 110, '... in time');
}

done_testing();
