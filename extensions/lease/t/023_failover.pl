# A control database with standbys: what was granted is there after a failover, or nothing is granted.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib", "$FindBin::RealBin/../../../t/lib";
use PostgreSQL::Test::Utils;
use Snowflake::Control;
use Test::More;

my $primary = Snowflake::Control->create('primary', allows_streaming => 1, conf => <<~'CONF');
	synchronous_commit = local
	archive_mode = on
	archive_command = 'cp "%p" "%%ARCHIVE%%/%f"'
	wal_keep_size = 64MB
	CONF
my $archive = $primary->archive_dir;
(my $conf = slurp_file($primary->data_dir . '/postgresql.conf')) =~ s/%%ARCHIVE%%/$archive/g;
open my $file, '>', $primary->data_dir . '/postgresql.conf' or die $!;
print $file $conf;
close $file;
mkdir $archive;
$primary->start;
$primary->install;
$primary->safe_psql('postgres', "SELECT snowflake_fleet.enroll('alpha'), snowflake_fleet.enroll('beta')");
my $fleet = $primary->safe_psql('postgres', 'SELECT id FROM snowflake_fleet.fleet');

sub add_standby
{
	my ($name, $source) = @_;
	$source->backup("for_$name");
	my $standby = Snowflake::Control->new($name);
	$standby->init_from_backup($source, "for_$name", has_streaming => 1);
	$standby->start;
	return $standby;
}
my $standby = add_standby('standby', $primary);

# A standby grants nothing, and says where to go.
my $told = $standby->ask(call => 'acquire', server => 'alpha', incarnation => 1);
like($told->{error}, qr/ERROR:  25006: the control database is a standby\nHINT: .*target_session_attrs/, 'a standby grants nothing');

# Synchronous: an answer is not given before the standby has it, whatever synchronous_commit says.
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'\n");
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'})
  or die 'no synchronous standby';
my $first = $primary->ask(call => 'acquire', server => 'alpha', incarnation => 1);
is($first->{status}, 'granted', 'with the standby there');
$standby->stop;
my %waiting = (ask => 'SELECT status FROM ' . $primary->question(call => 'acquire', incarnation => 2), out => '', err => '');
my $run = IPC::Run::start([ 'psql', '-XAtq', '-U', 'beta', '-d', $primary->connstr('postgres'), '-c', $waiting{ask} ],
	'<', \undef, '>', \$waiting{out}, '2>', \$waiting{err});
ok($primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}),
	'without it, the commit waits, though "synchronous_commit" is local');
is($waiting{out}, '', 'and so does the answer');
$standby->start;
$run->finish;
like($waiting{out}, qr/granted/, 'until it is back');

# Promoted: nothing before the operator has spoken, and then everything is where it was.
$primary->wait_for_catchup($standby, 'replay');
$primary->stop('immediate');
$standby->promote;
my %known = (server => 'alpha', incarnation => 1, $primary->known($first), acked => 1);
foreach my $call ('renew', 'acquire', 'give_back')
{
	$told = $standby->ask(call => $call, %known, highest => 5, grant => 1);
	is($told->{status}, 'halted', "after a promotion, no $call");
	like($told->{detail}, qr/timeline 2 of .*was timeline 1/, 'and why') if $call eq 'renew';
}
$standby->safe_psql('postgres', 'SELECT snowflake_fleet.nothing_lost(old_is_stopped => true)');
$told = $standby->ask(call => 'renew', %known);
is($told->{status}, 'granted', 'nothing_lost(): leases go on');
is($told->{grant_number}, $first->{grant_number}, 'the same one');

# Recovered to an earlier time: what was granted since is forgotten, and granted to nobody else.
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$standby->reload;
my $base = $standby->backup('base');
$standby->safe_psql('postgres', 'SELECT pg_create_restore_point($$before$$)');
my $forgotten = $standby->ask(call => 'acquire', server => 'beta', incarnation => 3, length => 600_000);
is($forgotten->{status}, 'granted', 'a grant');
$standby->safe_psql('postgres', 'SELECT pg_switch_wal()');
$standby->stop;
my $recovered = Snowflake::Control->new('recovered');
$recovered->init_from_backup($standby, 'base', standby => 0);
$recovered->append_conf('postgresql.conf', <<~"CONF");
	restore_command = 'cp "$archive/%f" "%p" || cp "@{[ $standby->data_dir ]}/pg_wal/%f" "%p"'
	recovery_target_name = 'before'
	recovery_target_action = promote
	CONF
$recovered->set_recovery_mode;
$recovered->start;
$recovered->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no end of recovery';
is($recovered->safe_psql('postgres', "SELECT count(*) FROM snowflake_fleet.region WHERE incarnation = 3"), '0', 'is forgotten');
$told = $recovered->ask(call => 'acquire', server => 'alpha', incarnation => 4);
is($told->{status}, 'halted', 'nothing is granted before recovered()');
$told = $recovered->ask(call => 'renew', server => 'beta', incarnation => 3, $primary->known($forgotten), acked => 1);
is($told->{status}, 'halted', 'nor renewed');
like(($recovered->psql('postgres', 'SELECT snowflake_fleet.nothing_lost(old_is_stopped => true)'))[2], qr/something was lost/,
	'and nothing_lost() is refused: a server has named what is lost');
my $resumes = $recovered->safe_psql('postgres', 'SELECT snowflake_fleet.to_ms(snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true))');
cmp_ok($resumes, '>=', $forgotten->{until_ms}, 'and then nothing that the forgotten grant has');
is($recovered->safe_psql('postgres', "SELECT min(until_ms) FROM snowflake_fleet.region"), $resumes, 'in no region');
$told = $recovered->ask(call => 'renew', server => 'beta', incarnation => 3, $primary->known($forgotten), until_ms => $forgotten->{until_ms} + 1);
is($told->{status}, 'lost', 'nobody goes on with a lease that is not signed');
my %renewal = (call => 'renew', server => 'beta', incarnation => 3, $primary->known($forgotten), acked => 1);
$told = $recovered->ask(%renewal);
is($told->{status}, 'term_over', 'its holder is told of the new term, for the renewal may be an old one,');
is($recovered->safe_psql('postgres', 'SELECT count(*) FROM snowflake_fleet.region WHERE incarnation <> 0'), '0', 'and holds nothing yet');
$told = $recovered->ask(%renewal, newest => $told->{number}, map { $_ => $told->{$_} } qw(term proof));
is($told->{status}, 'granted', 'goes on when he asks again,');
is($told->{region}, $forgotten->{region}, 'in the same region');
cmp_ok($told->{term}, '>', $forgotten->{term}, 'in a new term');
is($told->{floor_ms}, $forgotten->{floor_ms}, 'from where it began');
$told = $recovered->ask(call => 'renew', server => 'alpha', incarnation => 1, $primary->known($first), acked => 1, until_ms => 1);
is($told->{status}, 'lost', 'and whose lease had ended does not');

# Files put back in place: a copy of them has not the time at which they were made.
# That is told in seconds by PostgreSQL.
sub copies_differ
{
	my $written = (stat $recovered->data_dir . '/PG_VERSION')[10];
	select undef, undef, undef, 0.05 while time <= $written;
	return;
}
$recovered->stop;
copies_differ();
my $copy = $recovered->basedir . '/older';
system_or_bail('cp', '-a', $recovered->data_dir, $copy);
$recovered->start;
my $later = $recovered->ask(call => 'acquire', server => 'alpha', incarnation => 5);
is($later->{status}, 'full', 'all other regions begin in an hour');
$later = $recovered->ask(call => 'acquire', server => 'alpha', incarnation => 5);
$recovered->stop;
system_or_bail('rm', '-rf', $recovered->data_dir);
system_or_bail('mv', $copy, $recovered->data_dir);
$recovered->start;
$told = $recovered->ask(call => 'acquire', server => 'beta', incarnation => 6);
is($told->{status}, 'halted', 'older files are found out');
like($told->{detail}, qr/files of (\S+ \S+), was .*files of (?!\g1)/, 'by the time of the data directory');
# A snapshot of the disk has that time too: then a server that knows more finds out, and for all.
$recovered->safe_psql('postgres', 'UPDATE snowflake_fleet.fleet SET directory = (SELECT directory FROM snowflake_fleet.whereabouts())');
$told = $recovered->ask(call => 'acquire', server => 'alpha', incarnation => 5, $primary->known($later), proof => 5);
is($told->{status}, 'unproven', 'a server that only says that it knows more is refused,');
is($recovered->safe_psql('postgres', 'SELECT halted FROM snowflake_fleet.fleet'), 'f', 'and halts nobody');
$told = $recovered->ask(call => 'acquire', server => 'alpha', incarnation => 5, $primary->known($later));
is($told->{status}, 'halted', 'a snapshot of older files: found out by a server that knows more');
$told = $recovered->ask(call => 'acquire', server => 'beta', incarnation => 6);
is($told->{status}, 'halted', 'and then refused to everybody');
like(($recovered->psql('postgres', 'SELECT snowflake_fleet.nothing_lost(old_is_stopped => true)'))[2], qr/something was lost/, 'nothing_lost() is not believed');
$recovered->safe_psql('postgres', 'SELECT snowflake_fleet.recovered(clock_timestamp(), old_is_stopped => true)');
$told = $recovered->ask(call => 'acquire', server => 'beta', incarnation => 6);
is($told->{status}, 'full', 'until recovered() again');
$told = $recovered->ask(call => 'renew', server => 'beta', incarnation => 3, $primary->known($forgotten), acked => 1);
is($told->{status}, 'lost', 'which ends all leases, as this copy may have granted some of them twice');

# A base backup that is simply started, without being told that it is a standby or that it recovers.
copies_differ();
$recovered->backup('started');
my $started = Snowflake::Control->new('started');
$started->init_from_backup($recovered, 'started');
$started->start;
is($started->safe_psql('postgres', 'SELECT timeline FROM snowflake_fleet.whereabouts()'),
	$recovered->safe_psql('postgres', 'SELECT timeline FROM snowflake_fleet.whereabouts()'), 'a base backup is started on the same timeline');
$told = $started->ask(call => 'acquire', server => 'beta', incarnation => 11);
is($told->{status}, 'halted', 'and grants nothing');
is($recovered->ask(call => 'acquire', server => 'beta', incarnation => 11)->{status}, 'full', 'its original goes on');

# A dump that is restored in place: the same database, and another table.
system_or_bail('pg_dump', '-Fc', '-f', $recovered->basedir . '/fleet.dump', $recovered->connstr('postgres'));
system_or_bail('pg_restore', '--clean', '--if-exists', '-d', $recovered->connstr('postgres'), $recovered->basedir . '/fleet.dump');
$recovered->safe_psql('postgres', "SELECT snowflake_fleet.enroll(s) FROM unnest(ARRAY['alpha', 'beta']) AS s");
$told = $recovered->ask(call => 'acquire', server => 'beta', incarnation => 12);
is($told->{status}, 'halted', 'pg_restore --clean: nothing is granted');

done_testing();
