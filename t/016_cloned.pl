# Tests a database that last minted elsewhere: a copied data directory, a cloned machine or disk, a promoted standby,
# restored files. It reports that without any set-up, and mints or fails until a superuser accepts it. Nothing is
# reported for changes that are not copies.

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

my $warning = qr/WARNING:  database "postgres" last minted elsewhere\n.*DETAIL:  Changed since then: /;
my $state = 'SELECT minting, coalesce(reason, \'\'), cloned FROM snowflake.health()';
my $remembered = 'SELECT last_value FROM snowflake.origin_fingerprint';

sub warnings_of
{
	my ($of) = @_;
	my $log = $of->log_content;
	return scalar(() = $log =~ /$warning/g);
}

# Mints as the original, without a report.
sub at_home
{
	my ($name, $of) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$of //= $node;
	$of->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
	is($of->safe_psql('postgres', $state), 't||f', "$name: mints");
	is(warnings_of($of), 0, "$name: nothing is said");
	return;
}

# Changes that are not copies

at_home('at first');
my $home = $node->safe_psql('postgres', $remembered);
$node->restart;
at_home('restarted');
$node->kill_all;
$node->start;
at_home('killed');
my $victim = $node->start_writer('SELECT pg_sleep(600)');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer' AND wait_event = 'PgSleep'");
$node->kill_backend($node->ids("SELECT pid FROM pg_stat_activity WHERE application_name = 'writer'"));
$node->finish_writer($victim);
at_home('after a crash of a backend');
is($node->safe_psql('postgres', $remembered), $home, 'what is remembered stays the same');

$node->stop;
rename $node->data_dir, $node->basedir . '/elsewhere' or die $!;
mkdir $node->data_dir, 0700 or die $!;
rename $_, $node->data_dir . '/' . s{.*/}{}r or die $! foreach glob $node->basedir . '/elsewhere/*';
chmod 0750, $node->data_dir;
chmod 0640, $node->data_dir . '/global/pg_control';
$node->start;
at_home('its files moved into another directory, and their modes changed');

$node->safe_psql('postgres', 'CREATE DATABASE made TEMPLATE postgres');
is($node->safe_psql('made', "SELECT snowflake.next_id(1) > 0; $state"), "t\nt||f", 'a database made from a template is none');
$node->safe_psql('postgres', 'DROP DATABASE made');
$node->safe_psql('postgres', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
at_home('dropped and created');

# Parts that are not available are not compared; stored parts are kept.
$node->stop;
$machine->set_id(undef);
$machine->set_disk;
$node->start;
at_home('where neither machine nor disk has a name');
$node->stop;
$machine->set_id('uninitialized');
$machine->set_disk('dm/uuid' => '');
$node->start;
at_home('the same where the files are there and say nothing');
is($node->safe_psql('postgres', $remembered), $home, 'and what is remembered stays the same');

# A clone of the machine, of the disk, or of both: the files are identical.
foreach my $case (
	[ 'machine', sub { $machine->set_id('f' x 32); $machine->set_disk(wwid => 'eui.0025385b71b0f5c5') } ],
	[ 'disk', sub { $machine->set_id($id); $machine->set_disk('../serial' => 'vol0123') } ],
	[ 'disk, machine', sub { $machine->set_id('e' x 32); $machine->set_disk('dm/uuid' => 'LVM-x') } ])
{
	my ($what, $make) = @$case;
	$node->stop;
	$make->();
	$node->start;
	is($node->safe_psql('postgres', $state), 't|last minted elsewhere|t', "another $what: health says so before anything is minted");
	my $before = warnings_of($node);
	my ($code, $out, $err) = $node->psql('postgres', 'SELECT snowflake.next_id(77); SHOW client_min_messages');
	is("$code $err", '0 ', 'the session that notices is told nothing');
	like($out, qr/\d\nnotice/, 'and not made deaf');
	$ledger->record('psql', $out =~ /(\d+)/);
	$node->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g') for 1 .. 3;
	is(warnings_of($node) - $before, 1, 'the log has one warning');
	like($node->log_content, qr/$warning$what\. If the original server also runs/, 'which says what is another');
	is($node->safe_psql('postgres', $remembered), $home, 'and nothing is remembered');
}
unlike($node->log_content, qr/last minted elsewhere(?:(?!LOG:|WARNING:).)*STATEMENT/s, 'without the statement that noticed');
$node->stop;
$machine->set_id($id);
$machine->set_disk(wwid => 'eui.0025385b71b0f5c5');
unlink $node->logfile;
$node->start;
at_home('where it was before');

# Copied files, while the original runs. Both mint the same ids, which is why the report matters.

$node->backup('base');
my $copy = Snowflake::Node->create_from_backup('copy', $node, 'base');
Snowflake::Machine->new($copy)->set_id($id);
$copy->start;
$_->safe_psql('postgres', 'SELECT snowflake.next_id(1)') foreach $node, $copy;
is($copy->safe_psql('postgres', $state), 't|last minted elsewhere|t', 'a base backup that is started mints, and says so');
is($copy->safe_psql('postgres', 'SELECT advice FROM snowflake.health()'),
	'Stop the original server, or give one of the two another region or other shards; then run SELECT snowflake.accept_clone().', 'and what to do');
is(warnings_of($copy), 1, 'its log has one warning');
like($copy->log_content, qr/${warning}files\./, 'by its files');
is($node->safe_psql('postgres', $state), 't||f', 'the original sees nothing');

# Calls begin to fail at once, also in sessions that already mint.
my $session = $copy->session;
$session->query_safe('SELECT snowflake.next_id(1)');
$copy->reconfigure('snowflake.on_clone' => 'refuse');
my %refused = (
	sqlstate => '55000',
	message => 'this database last minted elsewhere',
	detail => 'Changed since then: files\. If the original server also runs, both mint the same ids, and the original cannot detect this',
	hint => 'SELECT snowflake\.accept_clone\(\)');
my $said = '';
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$session->query('SELECT snowflake.next_id(1)');
	last if ($said = $session->{stderr}) =~ /ERROR/;
	select undef, undef, undef, 0.1;
}
like($said, qr/this database last minted elsewhere/, 'a session that minted is refused by the next extension of the mark');
$session->quit;
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'a new one at once');
$copy->refuses('SELECT snowflake.observe(1)', \%refused, 'and observe()');
is($copy->safe_psql('postgres', $state), 'f|last minted elsewhere|t', 'health says that nothing is minted');
is($copy->safe_psql('postgres', "SELECT refusals > 0, since IS NOT NULL FROM snowflake.refusals WHERE cause = 'clone'"), 't|t', 'refusals are counted');
is($copy->safe_psql('postgres', 'SELECT snowflake.shard_of(snowflake.make_id(now(), 7, 1))'), '7', 'it decodes');
$copy->restart;
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'also after a restart');
is(warnings_of($copy), 1, 'where it is refused the error is enough');
$copy->safe_psql('postgres', 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake');
is($copy->safe_psql('postgres', 'SELECT snowflake.next_id(1) > 0'), 't', 'an extension that was made here mints here');
$copy->stop;

# Accepted after the original has stopped.
$node->stop;
$node->backup_fs_cold('cold');
$copy = Snowflake::Node->create_from_backup('accepted', $node, 'cold', conf => "snowflake.on_clone = refuse\n");
Snowflake::Machine->new($copy)->set_id($id);
$copy->start;
$copy->safe_psql('postgres', 'CREATE ROLE joe; CREATE DATABASE other TEMPLATE postgres');
$copy->refuses('SET ROLE joe; SELECT snowflake.accept_clone()', { sqlstate => '42501', message => 'permission denied for function accept_clone' }, 'not everybody may accept it');
$copy->refuses('SET default_transaction_read_only = on; SELECT snowflake.accept_clone()', { sqlstate => '25006', message => 'cannot execute accept_clone\(\)' }, 'nor a read-only transaction');
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'it is refused still');
is($copy->safe_psql('postgres', 'BEGIN; SELECT snowflake.accept_clone(); ROLLBACK'), 't', 'a superuser may, and takes it back by no rollback');
is($copy->safe_psql('postgres', 'SELECT snowflake.accept_clone()'), 'f', 'a second time finds nothing to accept');
$ledger->new_server_run;
at_home('accepted', $copy);
$copy->refuses('SELECT snowflake.next_id(1)', \%refused, 'another database is accepted by itself', 'other');
$copy->kill_all;
$copy->start;
$ledger->new_server_run;
at_home('killed thereafter', $copy);

# A standby reports and writes nothing. After its promotion it reports.
$copy->backup('standby');
my $standby = Snowflake::Node->create_from_backup('standby', $copy, 'standby', has_streaming => 1, conf => "snowflake.on_clone = warn\n");
Snowflake::Machine->new($standby)->set_id($id);
$standby->start;
$copy->wait_for_catchup($standby, 'replay');
is($standby->safe_psql('postgres', $state), 'f|standby|f', 'a standby is a standby');
$standby->refuses('SELECT snowflake.accept_clone()', { sqlstate => '25006', message => 'cannot execute accept_clone\(\) during recovery' }, 'which accepts nothing');
my $primarys = $copy->safe_psql('postgres', $remembered);
is($standby->safe_psql('postgres', $remembered), $primarys, 'it has what the primary remembers');
$copy->stop;
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($standby->safe_psql('postgres', $state), 't|last minted elsewhere|t', 'promoted, it says so');
$ledger->new_server_run;
$standby->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
is(warnings_of($standby), 1, 'and warns');
is($standby->safe_psql('postgres', 'SELECT snowflake.accept_clone()'), 't', 'it is accepted');
is($standby->safe_psql('postgres', $state), 't||f', 'and all is well');

# Files restored in place: they are other files, even if the directory and perhaps their inodes are the same.
$standby->stop;
my $data = $standby->data_dir;
$standby->command_ok([ 'sh', '-c', 'cp -a "$1" "$1.old" && rm -r "$1"/* && cp -a "$1.old"/. "$1"', '-', $data ], 'the files are put back from a copy');
unlink $standby->logfile;
$standby->start;
$ledger->new_server_run;
$standby->mint($ledger, 'SELECT snowflake.next_id(g) FROM generate_series(0, 9) g');
is(warnings_of($standby), 1, 'that is told as well');

# A dump does not carry the origin fingerprint: the restored system and database are new.
my $restored = Snowflake::Node->create('restored', conf => "snowflake.on_clone = refuse\nsnowflake.clock_error = 5\n");
Snowflake::Machine->new($restored)->set_id('d' x 32);
$restored->start;
$standby->command_ok([ 'pg_dump', '-Fc', '-f', $standby->basedir . '/dump', '-d', $standby->connstr('postgres') ], 'it is dumped');
$restored->command_ok([ 'pg_restore', '--no-owner', '-d', $restored->connstr('postgres'), $standby->basedir . '/dump' ], 'and restored elsewhere');
$ledger->new_server_run;
at_home('restored from a dump', $restored);

$ledger->check(100, 'where one mints at a time');

done_testing();
