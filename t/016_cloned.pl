# Tests a database that minted its last id on another server. The log and health() report that the database minted its
# last id on another server. Depending on "snowflake.on_clone", a cloned database mints ids at once, or after a
# superuser has called accept_clone().

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Machine;
use Snowflake::Node;
use Test::More;

my $node = Snowflake::Node->create('original', allows_streaming => 1, conf => <<~'CONF');
	restart_after_crash = on
	snowflake.reserve = 200ms
	snowflake.clock_error = 5
	CONF
my $machine = Snowflake::Machine->new($node);
my $id = 'c0ffee' x 5 . '00';
$machine->set_id($id);
$machine->set_disk(wwid => 'eui.0025385b71b0f5c5');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my $ledger = Snowflake::Ledger->new;

my $warning = qr/WARNING:  database "postgres" was copied or moved after it minted its last ids\n.*DETAIL:  These parts of the server changed since the last id was minted: /;
my $state = 'SELECT minting, coalesce(reason, \'\'), cloned FROM snowflake.health()';
my $remembered = 'SELECT last_value FROM snowflake.origin_fingerprint';

sub warnings_of
{
	my ($of) = @_;
	my $log = $of->log_content;
	return scalar(() = $log =~ /$warning/g);
}

# Checks that the database mints ids and that the log has no warning about a clone.
sub at_home
{
	my ($name, $of) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$of //= $node;
	$of->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
	is($of->safe_psql('postgres', $state), 't||f', "$name: health() shows that the database mints and is no clone");
	is(warnings_of($of), 0, "$name: the log has no warning");
	return;
}

# Tests restarts and changes of a server that must not be reported as a clone.

at_home('a new database');
my $home = $node->safe_psql('postgres', $remembered);
$node->restart;
at_home('a restart');
$node->kill_all;
$node->start;
at_home('SIGKILL of the whole server');
my $victim = $node->start_writer('SELECT pg_sleep(600)');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'PgSleep'");
$node->kill_backend($node->ids("SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'"));
$node->finish_writer($victim);
at_home('a crash of a backend');
is($node->safe_psql('postgres', $remembered), $home, 'restarts and crashes do not change the stored fingerprint');

$node->stop;
rename $node->data_dir, $node->basedir . '/elsewhere' or die $!;
mkdir $node->data_dir, 0700 or die $!;
rename $_, $node->data_dir . '/' . s{.*/}{}r or die $! foreach glob $node->basedir . '/elsewhere/*';
chmod 0750, $node->data_dir;
chmod 0640, $node->data_dir . '/global/pg_control';
$node->start;
at_home('files that were moved into another directory and got other modes');

$node->safe_psql('postgres', 'CREATE DATABASE made TEMPLATE postgres');
is($node->safe_psql('made', "SELECT snowflake.next_id(1) > 0; $state"), "t\nt|another database mints the same ids|f", 'a database made from a template is no clone');
$node->safe_psql('postgres', 'DROP DATABASE made');
$node->safe_psql('postgres', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
at_home('an extension that was dropped and created again');

# A machine or disk without an identifier must not be reported as a clone.
$node->stop;
$machine->set_id(undef);
$machine->set_disk;
$node->start;
at_home('a machine and a disk without identifiers');
$node->stop;
$machine->set_id('uninitialized');
$machine->set_disk('dm/uuid' => '');
$node->start;
at_home('a machine and a disk whose identifiers are empty');
is($node->safe_psql('postgres', $remembered), $home, 'the stored fingerprint does not change if identifiers are not available');

# Tests a clone of the machine, of the disk, or of both. The data files are identical.
foreach my $case (
	[ 'machine', sub { $machine->set_id('f' x 32); $machine->set_disk(wwid => 'eui.0025385b71b0f5c5') } ],
	[ 'disk', sub { $machine->set_id($id); $machine->set_disk('../serial' => 'vol0123') } ],
	[ 'disk, machine', sub { $machine->set_id('e' x 32); $machine->set_disk('dm/uuid' => 'LVM-x') } ])
{
	my ($what, $make) = @$case;
	$node->stop;
	$make->();
	$node->start;
	is($node->safe_psql('postgres', $state), 't|the database may be a clone|t', "another $what: health() shows it before the first id");
	my $before = warnings_of($node);
	my ($code, $out, $err) = $node->psql('postgres', 'SELECT snowflake.next_id(77); SHOW client_min_messages');
	is("$code $err", '0 ', "another $what: the session that detects the change gets no message");
	like($out, qr/\d\nnotice/, "another $what: client_min_messages of the session is unchanged");
	$ledger->record('psql', $out =~ /(\d+)/);
	$node->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g') for 1 .. 3;
	is(warnings_of($node) - $before, 1, "another $what: the log has one warning");
	like($node->log_content, qr/$warning$what\. If this server is a copy and the original server still runs/, "another $what: the warning names what changed");
	is($node->safe_psql('postgres', $remembered), $home, "another $what: the stored fingerprint does not change");
}
unlike($node->log_content, qr/was copied or moved after(?:(?!LOG:|WARNING:).)*STATEMENT/s, 'the warnings contain no statement');
$node->stop;
$machine->set_id($id);
$machine->set_disk(wwid => 'eui.0025385b71b0f5c5');
unlink $node->logfile;
$node->start;
at_home('the original machine and disk again');

# Starts a server with a copy of the data files while the original server runs.

$node->backup('base');
my $copy = Snowflake::Node->create_from_backup('copy', $node, 'base');
Snowflake::Machine->new($copy)->set_id($id);
$copy->start;
$_->safe_psql('postgres', 'SELECT snowflake.next_id(1)') foreach $node, $copy;
is($copy->safe_psql('postgres', $state), 't|the database may be a clone|t', 'a copy that is started mints, and health() shows that it is a clone');
is($copy->safe_psql('postgres', 'SELECT advice FROM snowflake.health()'),
	'Stop the original server, or set another "snowflake.region" or "snowflake.owned_shards" on one of the two servers. Then run SELECT snowflake.accept_clone().', 'health() of the copy has an advice');
is(warnings_of($copy), 1, 'the log of the copy has one warning');
like($copy->log_content, qr/${warning}files\./, 'the warning says that the files are others');
is($node->safe_psql('postgres', $state), 't||f', 'health() of the original does not show the copy');

my $session = $copy->session;
$session->query_safe('SELECT snowflake.next_id(1)');
$copy->reconfigure('snowflake.on_clone' => 'refuse');
my %refused = (
	sqlstate => '55000',
	message => 'this database was copied or moved after it minted its last ids',
	detail => 'These parts of the server changed since the last id was minted: files\. If this server is a copy and the original server still runs, both mint the same ids, and the original server cannot detect this',
	hint => 'SELECT snowflake\.accept_clone\(\)');
my $said = '';
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$session->query('SELECT snowflake.next_id(1)');
	last if ($said = $session->{stderr}) =~ /ERROR/;
	select undef, undef, undef, 0.1;
}
like($said, qr/this database was copied or moved after it minted its last ids/, 'on_clone = refuse: next_id() fails in a session that minted before');
$session->quit;
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'on_clone = refuse: next_id() fails in a new session');
$copy->refuses('SELECT snowflake.observe(1)', \%refused, 'on_clone = refuse: observe() fails');
is($copy->safe_psql('postgres', $state), 'f|the database may be a clone|t', 'on_clone = refuse: health() shows that the copy does not mint');
is($copy->safe_psql('postgres', "SELECT refusals > 0, since IS NOT NULL FROM snowflake.refusals WHERE cause = 'clone'"), 't|t', 'on_clone = refuse: the refused calls are counted');
is($copy->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 7, 1))'), '7', 'on_clone = refuse: the copy decodes');
$copy->restart;
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'on_clone = refuse: next_id() fails after a restart');
is(warnings_of($copy), 1, 'on_clone = refuse: the log has no further warning');
$copy->safe_psql('postgres', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
is($copy->safe_psql('postgres', 'SELECT snowflake.next_id(1) > 0'), 't', 'the copy mints after its extension was dropped and created again');
$copy->stop;

$node->stop;
$node->backup_fs_cold('cold');
$copy = Snowflake::Node->create_from_backup('accepted', $node, 'cold', conf => "snowflake.on_clone = refuse\n");
Snowflake::Machine->new($copy)->set_id($id);
$copy->start;
$copy->safe_psql('postgres', 'CREATE ROLE joe; CREATE DATABASE other TEMPLATE postgres');
$copy->refuses('SET ROLE joe; SELECT snowflake.accept_clone()', { sqlstate => '42501', message => 'permission denied for function accept_clone' }, 'an ordinary role may not call accept_clone()');
$copy->refuses('SET default_transaction_read_only = on; SELECT snowflake.accept_clone()', { sqlstate => '25006', message => 'cannot execute accept_clone\(\)' }, 'accept_clone() fails in a read-only transaction');
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'next_id() still fails after both attempts');
is($copy->safe_psql('postgres', 'BEGIN; SELECT snowflake.accept_clone(); ROLLBACK'), 't', 'a superuser may call accept_clone()');
is($copy->safe_psql('postgres', 'SELECT snowflake.accept_clone()'), 'f', 'accept_clone() has taken effect although its transaction was rolled back');
$ledger->new_server_run;
at_home('an accepted clone', $copy);
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'another database of the same server must be accepted separately', 'other');
$copy->kill_all;
$copy->start;
$ledger->new_server_run;
at_home('an accepted clone after a crash', $copy);

# Before promotion, health() of a standby must not show that its database is a clone. After the promotion of the
# standby, health() must show the clone.
$copy->backup('standby');
my $standby = Snowflake::Node->create_from_backup('standby', $copy, 'standby', has_streaming => 1, conf => "snowflake.on_clone = warn\n");
Snowflake::Machine->new($standby)->set_id($id);
$standby->start;
$copy->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $state), 'f|standby|f', 'health() of a standby shows only that it is a standby');
$standby->refuses('SELECT snowflake.accept_clone()', { sqlstate => '25006', message => 'cannot execute accept_clone\(\) during recovery' }, 'accept_clone() fails on a standby');
my $primarys = $copy->safe_psql('postgres', $remembered);
is($standby->safe_psql('postgres', $remembered), $primarys, 'the standby has the stored fingerprint of the primary');
$copy->stop;
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($standby->safe_psql('postgres', $state), 't|the database may be a clone|t', 'health() of the promoted standby shows that it is a clone');
$ledger->new_server_run;
$standby->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
is(warnings_of($standby), 1, 'the log of the promoted standby has one warning');
is($standby->safe_psql('postgres', 'SELECT snowflake.accept_clone()'), 't', 'accept_clone() works on the promoted standby');
is($standby->safe_psql('postgres', $state), 't||f', 'after accept_clone() health() shows no clone');

# Restores the data files into the original directory, possibly with the original inodes. A server with restored data
# files must report a clone.
$standby->stop;
my $data = $standby->data_dir;
$standby->command_ok([ 'sh', '-c', 'cp -a "$1" "$1.old" && rm -r "$1"/* && cp -a "$1.old"/. "$1"', '-', $data ], 'the data directory is replaced by its copy');
unlink $standby->logfile;
$standby->start;
$ledger->new_server_run;
$standby->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
is(warnings_of($standby), 1, 'the log has one warning after files were restored in place');

# A database that is restored from a dump is not reported as a clone.
my $restored = Snowflake::Node->create('restored', conf => "snowflake.on_clone = refuse\nsnowflake.clock_error = 5\n");
Snowflake::Machine->new($restored)->set_id('d' x 32);
$restored->start;
$standby->command_ok([ 'pg_dump', '-Fc', '-f', $standby->basedir . '/dump', '-d', $standby->connstr('postgres') ], 'pg_dump of the standby');
$restored->command_ok([ 'pg_restore', '--no-owner', '-d', $restored->connstr('postgres'), $standby->basedir . '/dump' ], 'pg_restore on another server');
$ledger->new_server_run;
at_home('a database restored from a dump', $restored);

$ledger->check(100, 'ids are unique if only one copy mints at a time');

done_testing();
