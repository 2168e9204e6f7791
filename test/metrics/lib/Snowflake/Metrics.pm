# Starts exporters and Prometheus on unused ports of the loopback interface, and reads their metrics.

package Snowflake::Metrics;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use File::Basename qw(basename);
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP;
use POSIX qw(WNOHANG);
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(start_program stop_program free_port fetch ask_prometheus scrape with_names_of_rules eventually
  start_postgres_exporter start_sql_exporter start_lease_server_sql_exporter start_prometheus firing adapted
  monitoring_file);

my @running;

sub monitoring_file
{
	my ($name) = @_;
	open my $file, '<', "doc/monitoring/$name" or die "$name: $!";
	local $/;
	return scalar <$file>;
}

# Applies replacements to a text. Replaces patterns in a text, and fails if a pattern does not match.
sub adapted
{
	my ($text, @replacements) = @_;
	while (my ($pattern, $replacement) = splice @replacements, 0, 2)
	{
		$text =~ s/$pattern/$replacement/g or die "there is no $pattern in:\n$text";
	}
	return $text;
}

sub free_port
{
	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "no free port: $!";
	return $socket->sockport;
}

# start_program NAME, ENVIRONMENT, COMMAND...: starts a program, whose output goes to a file with the name NAME.
sub start_program
{
	my ($name, $environment, @command) = @_;
	my $log = "$PostgreSQL::Test::Utils::log_path/" . basename($0, '.pl') . "_$name.log";
	my $pid = fork // die "fork: $!";
	if ($pid == 0)
	{
		%ENV = (%ENV, %$environment);
		open STDOUT, '>', $log and open STDERR, '>&', \*STDOUT or die "$log: $!";
		exec { $command[0] } @command or die "$command[0]: $!";
	}
	push @running, $pid;
	return $pid;
}

sub stop_program
{
	my ($pid) = @_;
	@running = grep { $_ != $pid } @running;
	kill TERM => $pid;
	foreach (1 .. 50)
	{
		return if waitpid($pid, WNOHANG) != 0;
		sleep 0.1;
	}
	kill KILL => $pid;
	waitpid $pid, 0;
	return;
}

END
{
	local $?;
	stop_program($_) foreach my @all = @running;
}

# Calls the code until it returns a true value, and returns this value. Dies after a time limit.
sub eventually
{
	my ($what, $code) = @_;
	my $until = time + ($PostgreSQL::Test::Utils::timeout_default // 180) / 2;
	for (;;)
	{
		my $result = eval { $code->() };
		return $result if $result;
		die "did not come: $what ($@)\n" if time > $until;
		sleep 0.1;
	}
}

sub fetch
{
	my ($url) = @_;
	my $answer = HTTP::Tiny->new(timeout => 20)->get($url);
	die "$url: $answer->{status} $answer->{content}\n" unless $answer->{success};
	return $answer->{content};
}

# ask_prometheus BASE, PATH [, PARAMETERS]
sub ask_prometheus
{
	my ($base, $path, %parameters) = @_;
	my $query = HTTP::Tiny->new->www_form_urlencode(\%parameters);
	my $answer = decode_json(fetch("$base/api/v1/$path?$query"));
	die "$path: $answer->{error}\n" unless $answer->{status} eq 'success';
	return $answer->{data};
}

# Reads the metrics of an exporter whose names match a pattern. Returns { name => { 'label="value",...' => number } }
# with sorted labels.
sub scrape
{
	my ($url, $pattern) = @_;
	my %samples;
	foreach (split /\n/, fetch("$url/metrics"))
	{
		my ($name, $labels, $value) = /^(\w+)(?:\{(.*)\})? (\S+)$/ or next;
		next unless $name =~ $pattern;
		# Removes the label "server", which only the postgres exporter adds.
		$labels = join ',', sort(grep { !/^server=/ } ($labels // '') =~ /(\w+="(?:[^"\\]|\\.)*")/g);
		$samples{$name}{$labels} = $value;
	}
	return \%samples;
}

# Returns metrics of the SQL exporter, with the names that prometheus.yml gives to these metrics.
sub with_names_of_rules
{
	my ($samples) = @_;
	my %renamed;
	foreach my $name (keys %$samples)
	{
		foreach my $labels (keys %{ $samples->{$name} })
		{
			my ($column) = $labels =~ /\bcol="(\w+)"/ or die "$name\{$labels} has no label \"col\"";
			my $rest = join ',', grep { !/^(?:col|driver|host|user|sql_job)=/ } $labels =~ /(\w+="[^"]*")/g;
			$renamed{ $name =~ s/^sql_//r . "_$column" }{$rest} = $samples->{$name}{$labels};
		}
	}
	return \%renamed;
}

# start_postgres_exporter NODE [, NAME [, QUERIES [, ADDRESS]]]: starts an exporter for a server. ADDRESS can be the
# address of a stopped exporter, so that the new exporter replaces it. Without ADDRESS an unused address is chosen.
sub start_postgres_exporter
{
	my ($node, $name, $queries, $url) = @_;
	$url //= '127.0.0.1:' . free_port();
	my ($timeouts) = monitoring_file('README.md') =~ /^DATA_SOURCE_NAME='user=monitor host=\S+ dbname=app (.*)'$/m or die 'no data source in README.md';
	my $source = $node->connstr('postgres') . " user=monitor sslmode=disable $timeouts";
	my $pid = start_program($name // 'postgres_exporter', { DATA_SOURCE_NAME => $source }, 'prometheus-postgres-exporter',
		"--web.listen-address=$url", '--extend.query-path=doc/monitoring/' . ($queries // 'postgres_exporter.yaml'),
		'--disable-default-metrics', '--disable-settings-metrics');
	eventually('the postgres exporter answers', sub { fetch("http://$url/metrics") =~ /^snowflake_/m });
	return { target => $url, url => "http://$url", pid => $pid };
}

# Starts an SQL exporter for the metrics of a lease server, in the database postgres.
sub start_lease_server_sql_exporter
{
	my ($node) = @_;
	my $url = '127.0.0.1:' . free_port();
	my $config = PostgreSQL::Test::Utils::tempdir() . '/lease_server.yaml';
	PostgreSQL::Test::Utils::append_to_file($config, adapted(monitoring_file('lease_server_sql_exporter.yaml'),
			qr{postgres:///fleet\?\S+}, 'postgres:///postgres?host=' . $node->host . '&port=' . $node->port . '&user=monitor&sslmode=disable',
			qr/interval: 15s/, 'interval: 500ms'));
	start_program('lease_server_sql_exporter', {}, 'prometheus-sql-exporter', '-config.file', $config, '-web.listen-address', $url);
	eventually('the SQL exporter answers', sub { fetch("http://$url/metrics") =~ /^sql_snowflake_/m });
	return "http://$url";
}

sub start_sql_exporter
{
	my ($node, @databases) = @_;
	my $url = '127.0.0.1:' . free_port();
	my $page = monitoring_file('sql_exporter.yaml');
	my ($user) = $page =~ m{postgres:///app\?host=/run/postgresql(&user=monitor\S*)} or die 'no connection in sql_exporter.yaml';
	my $connections = join "\n      - ", map { "postgres:///$_?host=" . $node->host . '&port=' . $node->port . "$user&sslmode=disable" }
	  @databases ? @databases : 'postgres';
	my $name = join '_', 'sql_exporter', @databases;
	my $config = PostgreSQL::Test::Utils::tempdir() . "/$name.yaml";
	PostgreSQL::Test::Utils::append_to_file($config, adapted($page, qr{postgres:///app\?\S+}, $connections, qr/interval: 15s/, 'interval: 500ms'));
	my $pid = start_program($name, {}, 'prometheus-sql-exporter', '-config.file', $config, '-web.listen-address', $url);
	eventually('the SQL exporter answers', sub { fetch("http://$url/metrics") =~ /^sql_snowflake_/m });
	return { target => $url, url => "http://$url", pid => $pid };
}

# Returns the alerts that fire: { name => { instance => labels } }.
sub firing
{
	my ($prometheus) = @_;
	my %firing;
	foreach my $alert (@{ ask_prometheus($prometheus, 'alerts')->{alerts} })
	{
		$firing{ $alert->{labels}{alertname} }{ $alert->{labels}{instance} // '' } = { %{ $alert->{labels} }, %{ $alert->{annotations} } }
		  if $alert->{state} eq 'firing';
	}
	return \%firing;
}

# start_prometheus CONFIG, RULES: starts Prometheus with the texts CONFIG as configuration and RULES as alert rules.
# Returns the address of Prometheus.
sub start_prometheus
{
	my ($config, $rules) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	PostgreSQL::Test::Utils::append_to_file("$directory/prometheus.yml", $config);
	PostgreSQL::Test::Utils::append_to_file("$directory/snowflake_rules.yml", $rules);
	my $address = '127.0.0.1:' . free_port();
	start_program('prometheus', {}, 'prometheus', "--config.file=$directory/prometheus.yml",
		"--storage.tsdb.path=$directory/data", "--web.listen-address=$address", '--storage.tsdb.retention.time=1h');
	eventually('Prometheus is ready', sub { fetch("http://$address/-/ready") });
	return "http://$address";
}

1;
