# Tables with row security move with all their rows, or not at all: the target copies and applies as roles that policies may
# hold back.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use Snowflake::Fleet;
use Snowflake::Mover;
use Test::More;

my $fleet = Snowflake::Fleet->new({ a => [ 0 .. 2 ], b => [3] });
my $mover = Snowflake::Mover->new($fleet);
my ($north, $south) = map { $fleet->node($_) } 'a', 'b';
# What people give a role that replicates: it reads all tables, and obeys their policies.
$_->safe_psql('postgres', 'CREATE ROLE tenant LOGIN; CREATE ROLE copier LOGIN REPLICATION IN ROLE pg_read_all_data') foreach $north, $south;
foreach my $shard (1, 2)
{
	$north->safe_psql('postgres', <<~"SQL");
		GRANT USAGE ON SCHEMA shard_$shard TO tenant;
		CREATE TABLE shard_$shard.secrets (id int PRIMARY KEY, tenant text);
		INSERT INTO shard_$shard.secrets SELECT n, CASE WHEN n % 2 = 0 THEN 'tenant' ELSE 'copier' END FROM generate_series(1, 100) n;
		ALTER TABLE shard_$shard.secrets OWNER TO tenant;
		ALTER TABLE shard_$shard.secrets ENABLE ROW LEVEL SECURITY;
		CREATE POLICY own ON shard_$shard.secrets USING (tenant = current_user);
		SQL
}
my $as = sub { my ($user) = @_; return ('--source-for-target' => ($fleet->conninfo('a') =~ s/ ?\buser=\S+//r) . ($user ne '' ? " user=$user" : '')) };

foreach my $case ([ 'copier', 'role copier' ], [ '', 'a role that it does not name' ], [ 'absent', 'role absent' ])
{
	my ($user, $named) = @$case;
	my $run = $mover->run('--shard' => 1, '--to' => 'b', $as->($user));
	is($run->{status}, 1, "refused where $named copies");
	like($run->{output}, qr/Table shard_1\.secrets has row security, and --source-for-target copies it as $named, .* BYPASSRLS/, '... by name');
	is($mover->leftovers, '', '... and nothing is begun');
}

# Who may see all rows may copy them: by BYPASSRLS, or as the owner of a table that does not force it.
$north->safe_psql('postgres', 'ALTER ROLE copier BYPASSRLS');
my $moved = $mover->run('--shard' => 1, '--to' => 'b', $as->('copier'));
is($moved->{status}, 0, 'who bypasses row security may copy') or diag($moved->{output});
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_1.secrets'), '100', '... all rows');
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_1.secrets', extra_params => [ '-U', 'copier' ]), '50', '... and the policy holds there');
$north->safe_psql('postgres', 'ALTER ROLE copier NOBYPASSRLS; GRANT tenant TO copier');
is($mover->run('--shard' => 2, '--to' => 'b', '--check', $as->('copier'))->{status}, 0, 'so may its owner');
$north->safe_psql('postgres', 'ALTER TABLE shard_2.secrets FORCE ROW LEVEL SECURITY');
is($mover->run('--shard' => 2, '--to' => 'b', '--check', $as->('copier'))->{status}, 1, '... but where it is forced');

# Since PostgreSQL 16 the target applies as the owner of the table, by its role there.
$north->safe_psql('postgres', 'ALTER ROLE tenant BYPASSRLS');
my $forced = $mover->run('--shard' => 2, '--to' => 'b');
if ($south->pg_version >= 16)
{
	is($forced->{status}, 1, 'refused where its owner would apply changes that it is forced not to see');
	like($forced->{output}, qr/Table shard_2\.secrets forces row security on its owner, role tenant, as whom the target applies changes/, '... by name');
	is($mover->leftovers, '', '... and nothing is begun');
	$south->safe_psql('postgres', 'ALTER ROLE tenant BYPASSRLS');
	$forced = $mover->run('--shard' => 2, '--to' => 'b');
}
is($forced->{status}, 0, 'forced row security moves') or diag($forced->{output});
is($south->safe_psql('postgres', 'SELECT count(*) FROM shard_2.secrets'), '100', '... with all rows');

done_testing();
