# A copy of the server whose snowflake libraries are not where the server's own are, but in another directory of
# dynamic_library_path, as image volumes and Nix have it. The control files and scripts stay.

package Snowflake::LibraryPath;

use strict;
use warnings FATAL => 'all';

use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use Snowflake::Node;

# Started, with the extension. PostgreSQL finds its directories relative to its programs, so these are copied, and the rest is
# linked. %params: conf.
sub create_running
{
	my ($name, %params) = @_;
	my $root = PostgreSQL::Test::Utils::tempdir('elsewhere');
	my %dir;
	foreach my $kind ('bindir', 'pkglibdir', 'sharedir')
	{
		chomp($dir{$kind} = `pg_config --$kind`);
		make_path("$root" . dirname($dir{$kind}));
	}
	system_or_bail('cp', '-a', $dir{bindir}, "$root$dir{bindir}");
	make_path("$root$dir{pkglibdir}", "$root/ext");
	symlink $_, (basename($_) =~ /^snowflake/ ? "$root/ext/" : "$root$dir{pkglibdir}/") . basename($_) or die "$_: $!"
	  foreach glob("$dir{pkglibdir}/*");
	-e "$root$dir{sharedir}" or symlink $dir{sharedir}, "$root$dir{sharedir}" or die "$dir{sharedir}: $!";
	my $node = Snowflake::Node->new($name, install_path => dirname("$root$dir{bindir}"));
	$node->init;
	$node->append_conf('postgresql.conf', slurp_file(dirname(__FILE__) . '/../../../test/snowflake.conf')
		  . "fsync = on\nlog_statement = none\ndynamic_library_path = '$root/ext:\$libdir'\n" . ($params{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $node;
}

1;
