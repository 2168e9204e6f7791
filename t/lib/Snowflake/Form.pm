# Simulates another version of the library, which expects other data in shared memory. The simulated version is a copy
# of the library in which only numbers that describe the shared memory are changed.

package Snowflake::Form;

use strict;
use warnings FATAL => 'all';

use File::Path qw(make_path);
use File::Spec;
use PostgreSQL::Test::Utils qw(slurp_file append_to_file);

# Returns the directory of the changed library, for the setting dynamic_library_path. The hash %form contains new values
# for the constants abi and most_databases of the library.
sub directory
{
	my ($node, %form) = @_;
	my $directory = File::Spec->rel2abs($node->basedir . '/form');
	make_path($directory);
	write_copy($node->config_data('--pkglibdir') . '/snowflake.so', "$directory/snowflake.so", %form);
	return $directory;
}

# Replaces the file $to with a copy of the library $from, as the upgrade of a package does. Processes that have loaded
# the replaced library continue to use the old file.
sub write_copy
{
	my ($from, $to, %form) = @_;
	my $library = slurp_file($from);
	my $changed = $library =~ s{(snowflake form:\0)(.{4})(.{4})}
		{ $1 . (defined $form{abi} ? pack('V', $form{abi}) : $2) . (defined $form{most_databases} ? pack('V', $form{most_databases}) : $3) }gse;
	die 'the form is not in the library' if $changed != 1;
	append_to_file("$to.new", $library);
	rename "$to.new", $to or die "$to: $!";
	return;
}

# Configures a server to load the changed copy of the library at its next start.
sub install
{
	my ($node, %form) = @_;
	$node->append_conf('postgresql.conf', "dynamic_library_path = '" . directory($node, %form) . ":\$libdir'\n");
	return;
}

1;
