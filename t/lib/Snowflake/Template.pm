# A new data directory as initdb makes it, copied: initdb takes half a second of a processor, and a run
# of the tests needs more than a hundred. A copy has an identifier of its own, as every cluster has.

package Snowflake::Template;

use strict;
use warnings FATAL => 'all';

use Carp;
use Fcntl qw(:flock);
use File::Path qw(make_path);
use IPC::Run;
use Time::HiRes qw(gettimeofday);

# Makes $data. The first caller below $work has @initdb make the template, with the same environment that
# the others have; they wait for it.
sub instantiate
{
	my ($work, $data, @initdb) = @_;
	my $template = "$work/initdb";
	make_path($work);
	open my $lock, '>', "$template.lock" or croak "$template.lock: $!";
	flock $lock, LOCK_EX or croak "$template.lock: $!";
	if (!-e $template)
	{
		_run(map { $_ eq $data ? "$template.part" : $_ } @initdb);
		# pg_resetwal makes another.
		unlink glob "$template.part/pg_wal/0*";
		rename "$template.part", $template or croak "$template: $!";
	}
	close $lock;
	croak "$data is there" if -e $data;
	_run('cp', '-a', $template, $data);
	_identify($data);
	return;
}

# The identifier is the first thing in pg_control, time and process, as the server would choose it.
# pg_resetwal puts the checksum right, and starts a WAL that goes with it.
sub _identify
{
	my ($data) = @_;
	my ($s, $us) = gettimeofday;
	open my $control, '+<:raw', "$data/global/pg_control" or croak "pg_control: $!";
	print $control pack 'Q', $s << 32 | $us << 12 | $$ & 0xfff;
	close $control or croak "pg_control: $!";
	_run('pg_resetwal', '-f', '-D', $data);
	return;
}

sub _run
{
	my (@command) = @_;
	my $output;
	IPC::Run::run(\@command, '<', \undef, '>&', \$output) or croak "@command: $output";
	return;
}

1;
