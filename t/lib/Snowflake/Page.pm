# Reads the SQL examples of a documentation page.

package Snowflake::Page;

use strict;
use warnings FATAL => 'all';

use Carp;
use PostgreSQL::Test::Utils qw(slurp_file);
use Time::HiRes qw(sleep);

# Returns the title of each section of a documentation page, with the section's blocks of SQL.
sub blocks
{
	my ($file) = @_;
	my %blocks;
	foreach my $section (split /^(?=##+ )/m, slurp_file($file))
	{
		my $title = $section =~ /^##+ (.*)/ ? $1 : '';
		while ($section =~ /^( *)```sql\n(.*?)^\1```$/gms)
		{
			my ($indent, $block) = ($1, $2);
			$block =~ s/^$indent//gm;
			push @{ $blocks{$title} }, $block;
		}
	}
	return %blocks;
}

sub statements
{
	my ($block) = @_;
	my @statements = $block =~ /\G\s*(BEGIN;.*?^COMMIT;|DO \$\$.*?^\$\$;|.*?;)[^\n]*\n/gms;
	return @statements;
}

# Runs a statement in a session. Repeats the SQL statement after a lock timeout, as the documentation advises. Returns
# the output and the error of the statement.
sub say_in
{
	my ($session, $statement) = @_;
	for (1 .. 600)
	{
		my $out = $session->query("$statement\n");
		my ($error) = $session->{stderr} =~ /((?:ERROR|FATAL|PANIC|connection|invalid command).*)/s;
		$session->{stderr} = '';
		return ($out, $error // '') if ($error // '') !~ /canceling statement due to lock timeout/;
		sleep 0.05;
	}
	croak "no lock for:\n$statement";
}

1;
