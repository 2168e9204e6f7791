# Makes a server installation in which the snowflake libraries are not in the server's own library directory. The server
# finds the snowflake libraries by dynamic_library_path, as with Nix or image volumes of Kubernetes.

package Snowflake::LibraryPath;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use Snowflake::Node;

# Copies the server's installation into a new directory. Returns three paths: the install_path for
# Snowflake::Node->new(), the new directory, and the directory of the control files. Programs are copied instead of
# linked, because PostgreSQL finds its directories relative to its programs. With the option without_control, the
# control files and scripts of snowflake are not copied.
sub copy_installation
{
	my (%params) = @_;
	my $root = PostgreSQL::Test::Utils::tempdir('elsewhere');
	my %dir;
	foreach my $kind ('bindir', 'pkglibdir', 'sharedir')
	{
		chomp($dir{$kind} = `pg_config --$kind`);
		make_path("$root" . dirname($dir{$kind}));
	}
	system_or_bail('cp', '-a', $dir{bindir}, "$root$dir{bindir}");
	make_path("$root$dir{pkglibdir}", "$root$dir{sharedir}/extension", "$root/ext");
	my $link = sub { my ($from, $to) = @_; -e $to or symlink $from, $to or die "$from: $!"; return; };
	$link->($_, (basename($_) =~ /^snowflake/ ? "$root/ext/" : "$root$dir{pkglibdir}/") . basename($_)) foreach glob("$dir{pkglibdir}/*");
	$link->($_, "$root$_") foreach glob("$dir{sharedir}/*"), grep { !$params{without_control} || basename($_) !~ /^snowflake/ } glob("$dir{sharedir}/extension/*");
	return (dirname("$root$dir{bindir}"), $root, "$root$dir{sharedir}/extension");
}

# Starts a server from the copied installation and creates the extension. The value of "conf" in %params is appended to
# postgresql.conf.
sub create_running
{
	my ($name, %params) = @_;
	my ($install_path, $root) = copy_installation();
	my $node = Snowflake::Node->new($name, install_path => $install_path);
	$node->init;
	$node->append_conf('postgresql.conf', slurp_file(dirname(__FILE__) . '/../../../test/snowflake.conf')
		  . "fsync = on\nlog_statement = none\ndynamic_library_path = '$root/ext:\$libdir'\n" . ($params{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $node;
}

1;
