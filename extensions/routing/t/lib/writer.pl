#!/usr/bin/perl
# Simulates a client while a test moves a shard to another server: writer.pl CONTROL SHARD NUMBER JOURNAL STOP. CONTROL
# is the connection string of the control database, and JOURNAL is a log file. The client inserts, updates and deletes
# rows of a shard on the server that has the shard. The client ends when the file STOP exists or its parent process has
# ended.

use strict;
use warnings FATAL => 'all';

use IPC::Open3;
use Time::HiRes qw(sleep);

my ($control, $shard, $number, $journal, $stop) = @ARGV;
open my $log, '>>', $journal or die "$journal: $!";
$log->autoflush(1);

sub session
{
	my ($conninfo) = @_;
	my %self;
	$self{pid} = open3($self{in}, $self{out}, undef, 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-d', $conninfo);
	$self{in}->autoflush(1);
	return \%self;
}

# Runs a statement, and returns its first row and the SQLSTATE.
sub run
{
	my ($session, $sql) = @_;
	local $SIG{PIPE} = 'IGNORE';
	print { $session->{in} } "$sql;\n\\echo '-- done' :SQLSTATE\n";
	my $row;
	while (defined(my $line = readline $session->{out}))
	{
		chomp $line;
		return ($row, $1) if $line =~ /^-- done (\S+)/;
		$row //= $line;
	}
	return ($row, '08006');
}

my $map = session($control);
my ($session, $server, $conninfo);

sub read_map
{
	my ($row) = run($map, "SELECT server, conninfo FROM snowflake_fleet.map WHERE shard = $shard");
	my ($now, $where) = split /\|/, $row;
	return if defined $server && $now eq $server && $session;
	($server, $conninfo) = ($now, $where);
	$session = session($conninfo);
	return;
}

sub commit
{
	my ($sql) = @_;
	for (;;)
	{
		my ($row, $state) = run($session, $sql);
		return $row if $state eq '00000';
		# A client repeats a statement if snowflake-move-shard has stopped writers, or if the shard's table is no longer on
		# the server.
		if ($state =~ /^(40001|40P01|42P01|3F000)$/)
		{
			print $log "refused\n";
			sleep 0.002;
			read_map();
			next;
		}
		print $log "error $state $sql $row\n";
		exit 1;
	}
}

read_map();
my @own;
my $n = 0;
my $parent = getppid;
until (-e $stop || getppid != $parent)
{
	sleep 0.005;  # the pause limits the load, because the target server applies all clients' changes in one process
	my $name = "w${number}_" . ++$n;
	my $id = commit("INSERT INTO shard_$shard.users (name) VALUES ('$name') RETURNING id");
	print $log "insert $id $name $server\n";
	push @own, $id;
	if ($n % 3 == 0)
	{
		my $one = $own[ rand @own ];
		commit("UPDATE shard_$shard.users SET name = '$name' WHERE id = $one RETURNING 1") // die "row $one is gone\n";
		print $log "update $one $name $server\n";
	}
	if ($n % 7 == 0)
	{
		my $one = shift @own;
		commit("DELETE FROM shard_$shard.users WHERE id = $one RETURNING 1") // die "row $one is gone\n";
		print $log "delete $one - $server\n";
	}
}
