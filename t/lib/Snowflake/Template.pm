# Copies a data directory that initdb made once. The program initdb takes half a second of CPU, and a test run needs
# more than a hundred data directories. Each copy of the data directory gets its own system identifier.

package Snowflake::Template;

use strict;
use warnings FATAL => 'all';

use Carp;
use Fcntl qw(:flock);
use File::Path qw(make_path);
use IPC::Run;
use Time::HiRes qw(gettimeofday);

# Makes the data directory $data. The first caller runs @initdb in $work, and other callers wait until initdb has ended.
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
		# The copied data directory needs no WAL files, because pg_resetwal creates new files.
		unlink glob "$template.part/pg_wal/0*";
		rename "$template.part", $template or croak "$template: $!";
	}
	close $lock;
	croak "$data is there" if -e $data;
	_run('cp', '-a', $template, $data);
	_identify($data);
	return;
}

# Writes a new system identifier to the start of pg_control, computed from the time and the process id as in initdb. The
# program pg_resetwal corrects the checksum of pg_control and creates WAL with the new system identifier.
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
