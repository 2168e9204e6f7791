# Samples that the parts took, and what is made of them: medians with the extremes, and ratios that pair
# the runs, so that what disturbed a whole run disturbs no ratio.
package Samples;
use strict;
use warnings;

# Reads results/*.tsv of four columns: subject, metric, run, value.
sub read_all {
  my ($class, $directory) = @_;
  my %values;
  for my $file (glob "$directory/*.tsv") {
    my ($part) = $file =~ m{([a-z0-9]+)\.tsv$} or next;
    open my $in, '<', $file or die "$file: $!\n";
    my $header = <$in> // '';
    next if $header ne "subject\tmetric\trun\tvalue\n";
    while (<$in>) {
      chomp;
      my ($subject, $metric, $run, $value) = split /\t/;
      $values{$part}{$subject}{$metric}{$run} = $value if defined $value && $value ne '';
    }
  }
  return bless \%values, $class;
}

sub has { my ($self, $part) = @_; return exists $self->{$part} }

# The runs of a subject, by number; empty where it was not measured.
sub runs {
  my ($self, $part, $subject, $metric) = @_;
  my $subjects = $self->{$part} // {};    # looked up step by step: what is not there is not to come into being
  return %{ ($subjects->{$subject} // {})->{$metric} // {} };
}

# Median, least and greatest of a list; empty of an empty one.
sub summary {
  my @sorted = sort { $a <=> $b } @_;
  return () unless @sorted;
  my $middle = int(@sorted / 2);
  my $median = @sorted % 2 ? $sorted[$middle] : ($sorted[$middle - 1] + $sorted[$middle]) / 2;
  return ($median, $sorted[0], $sorted[-1]);
}

sub of { my $self = shift; my %runs = $self->runs(@_); return summary(values %runs) }

sub median { my $self = shift; my ($median) = $self->of(@_); return $median }

# The quotient of two subjects of a part, run by run. Each is [subject, metric].
sub ratio {
  my ($self, $part, $above, $below) = @_;
  my %above = $self->runs($part, @$above);
  my %below = $self->runs($part, @$below);
  return summary(map { $above{$_} / $below{$_} } grep { $below{$_} } keys %above);
}

1;
