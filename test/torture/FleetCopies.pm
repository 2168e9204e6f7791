# Makes torture faults in which a copy of a server runs next to the original server. The copy of a server is a clone, or
# a promoted standby whose old primary continues. Original and copy must not mint the same id, although the copy lacks
# the latest data.
package FleetCopies;

use strict;
use warnings;
use File::Path qw(rmtree);
use PostgreSQL::Test::Utils qw(system_or_bail);
use Snowflake::Node;
use Test::More;
use Time::HiRes qw(sleep);
use World;

our %faults = (
	clone_backup => \&clone_backup,
	clone_cold   => \&clone_cold,
	clone_live   => \&clone_live,
	clone_static => \&clone_static,
	failover     => \&failover,
	switchover   => \&switchover,
);

my $number = 0;

# Makes a new server from the copied data files of another server.
sub copy_files
{
	my ($from, $name) = @_;
	my $node = Snowflake::Node->new($name);
	mkdir $_ for $node->backup_dir, $node->archive_dir;
	# Ignores errors of cp, because the running server removes files during the copy.
	system 'cp', '-a', $from->data_dir, $node->data_dir;
	unlink map { $node->data_dir . "/postmaster.$_" } 'pid', 'opts';
	$node->append_conf('postgresql.conf', 'port = ' . $node->port . "\nunix_socket_directories = '" . $node->host . "'");
	return $node;
}

# Lets clients mint on the original server and on its copy at the same time.
sub side_by_side
{
	my ($w, $member, $node, $fork, $step, $hold) = @_;
	my $copy = { %$member, title => $node->name, node => $node, clients => [],
		line => $w->new_line(parent => $member->{line}, fork => $fork) };
	$w->mint_now($copy);
	$w->start_clients($copy, 1);
	sleep $hold;
	$w->correct($copy, $step);
	ok($w->settles(40, $copy, $member), $node->name . " and $member->{title} mint at the same time");
	$w->stop_clients($copy);
	# A copy that is stopped cleanly returns its leased region.
	$node->stop if rand() < 0.5;
	$w->discard($node);
	return;
}

my @steps = (0, 0, -0.5, -1, -30, -86400, 1);

sub clone_backup
{
	my ($w) = @_;
	my ($member, $step, $hold) = ($w->some_member, $w->pick(@steps), 1 + rand 2);
	my $name = 'clone' . ++$number;
	my $fork = World::now_ns();
	$member->{node}->backup($name);
	my $node = Snowflake::Node->create_from_backup($name, $member->{node}, $name);
	rmtree($member->{node}->backup_dir . "/$name");
	$w->set_clock($node, $step);
	$node->start;
	side_by_side($w, $member, $node, $fork, $step, $hold);
	return "pg_basebackup of $member->{title} beside it, clock $step s";
}

sub clone_cold
{
	my ($w) = @_;
	my ($member, $how, $step, $hold) = ($w->some_member, $w->pick(qw(fast immediate)), $w->pick(@steps), 1 + rand 2);
	$member->{node}->stop($how);
	my $fork = World::now_ns();
	my $node = copy_files($member->{node}, 'clone' . ++$number);
	$w->set_clock($node, $step);
	# Starts the original server and its copy in random order.
	my @order = ($member->{node}, $node);
	@order = reverse @order if rand() < 0.5;
	$_->start for @order;
	side_by_side($w, $member, $node, $fork, $step, $hold);
	return "cp -a of $member->{title} after a stop ($how), both started, clock $step s";
}

# Copies the files of a running server without a backup. A copy that was made without a backup may lack any data, or may
# not start. If the copy starts, its ids must differ from the ids of all other servers.
sub clone_live
{
	my ($w) = @_;
	my ($member, $step) = ($w->some_member, $w->pick(0, -0.5, -1));
	my ($minted, $tries) = (0, 0);
	$w->must($member->{node}, 'postgres', 'CHECKPOINT');
	for $tries (1 .. 3)
	{
		my $node = copy_files($member->{node}, 'torn' . ++$number);
		$w->set_clock($node, $step);
		my $started = eval { $node->start(fail_ok => 1) };
		if ($started)
		{
			my $copy = { %$member, node => $node, line => $w->new_line };
			for (1 .. 5)
			{
				$minted += $w->mint_now($copy, 2000);
				$minted += $w->mint_extra($copy, 'd', 4000);
			}
		}
		$w->discard($node);
		last if $minted;
	}
	return "cp -a of $member->{title} while it runs, clock $step s: " . ($minted ? "$minted ids" : "no copy that starts and mints");
}

# Starts a copy of a leasing server with a static region instead of a lease. Without a lease, a copy of a leasing server
# could mint duplicate ids, so the copy must refuse to mint.
sub clone_static
{
	my ($w) = @_;
	my $member = $w->some_member;
	my $name = 'unleased' . ++$number;
	$member->{node}->backup($name);
	my $node = Snowflake::Node->create_from_backup($name, $member->{node}, $name,
		conf => "snowflake.lease_conninfo = ''\nsnowflake.leased_regions = ''\nsnowflake.region = " . int rand $w->{regions});
	rmtree($member->{node}->backup_dir . "/$name");
	$node->start;
	my (undef, $out, $error) = $w->query($node, 'd', 'SELECT snowflake.next_id(5)');
	like($error, qr/55000: .*minted its ids under leases/, 'a copy that leases nothing does not mint');
	$w->discard($node);
	return "pg_basebackup of $member->{title}, with a static region: refused";
}

# Promotes the standby while the old primary runs. The standby's clock may be behind ids that the standby has not
# received. The old primary does not detect that the standby was promoted.
sub failover
{
	my ($w) = @_;
	my ($behind, $lag, $hold, $stop) =
	  ($w->pick(-0.5, -1, -1, -30, -600), 0.3 + rand 0.7, 1 + rand 2, $w->pick(qw(fast immediate)));
	my ($member, $standby) = @$w{qw(standby_of standby)};
	my $old = { %$member, clients => [] };
	$member->{node}->wait_for_catchup($standby->name, 'replay', $member->{node}->lsn('insert'));
	my $fork = World::now_ns();
	$member->{node}->wait_for_catchup($standby->name, 'replay', $member->{node}->lsn('insert'));
	my (undef, undef, $error) = $w->query($standby, 'd', "SELECT snowflake.next_id($w->{hot})");
	like($error, qr/25006/, 'the standby does not mint');
	# Stops the WAL receiver, so that the standby does not receive the ids that the primary mints from this time on.
	my $receiver = $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	$w->freeze($receiver) if $receiver;
	sleep $lag;
	$w->set_clock($standby, $behind);
	# Continues the suspended WAL receiver only after the promotion. The promotion ends the WAL receiver before it can
	# receive more WAL.
	system_or_bail('pg_ctl', '-s', '-W', '-D', $standby->data_dir, 'promote');
	sleep 0.3;
	$w->thaw;
	$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the standby is not promoted';
	$old->{clients} = $member->{clients};
	$member->{clients} = [];
	@$member{qw(node line)} = ($standby, $w->new_line(parent => $old->{line}, fork => $fork));
	$w->mint_now($member);
	$w->start_clients($member);
	sleep $hold;
	$w->stop_clients($old);
	$w->correct($member, $behind);
	ok($w->settles(40, $member, $old), 'the promoted server and the old primary mint at the same time');
	$old->{node}->stop($stop);
	$w->discard($old->{node});
	delete $w->{standby};
	$w->new_standby;
	return "$member->{title}: asynchronous failover to a clock $behind s, the old primary running on";
}

# Promotes the standby after a clean stop of the primary. After a promotion that loses no data, the checker continues
# the same history of ids.
sub switchover
{
	my ($w) = @_;
	my ($behind, $hold) = ($w->pick(-0.05, -0.5, -1, -30), 0.5 + rand 1);
	my ($member, $standby) = @$w{qw(standby_of standby)};
	my $old = $member->{node};
	$w->stop_clients($member);
	$w->set_clock($standby, $behind);
	$old->stop;
	$standby->promote;
	$member->{node} = $standby;
	$w->mint_now($member);
	$w->start_clients($member);
	sleep $hold;
	$w->correct($member, $behind);
	$w->discard($old);
	delete $w->{standby};
	$w->new_standby;
	return "$member->{title}: planned switch-over to a clock $behind s";
}

1;
