# Reads the measured values (samples) of the benchmark, and computes ratios, medians, minimums and maximums. A ratio
# compares values of the same run, so a disturbance of the whole run does not change the ratio.
package Samples;
use strict;
use warnings;

# Reads the files results/*.tsv, which have four columns: subject, metric, run, value.
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

# runs PART, SUBJECT, METRIC: returns a hash that maps the number of each run to the measured value. The hash of values
# is empty if the benchmark has not measured SUBJECT (for example a generator of ids).
sub runs {
  my ($self, $part, $subject, $metric) = @_;
  my $subjects = $self->{$part} // {};    # prevents the next expression from adding missing keys to the hash
  return %{ ($subjects->{$subject} // {})->{$metric} // {} };
}

# Returns the median, the minimum and the maximum of a list. The result is empty if the given list of values is empty.
sub summary {
  my @sorted = sort { $a <=> $b } @_;
  return () unless @sorted;
  my $middle = int(@sorted / 2);
  my $median = @sorted % 2 ? $sorted[$middle] : ($sorted[$middle - 1] + $sorted[$middle]) / 2;
  return ($median, $sorted[0], $sorted[-1]);
}

sub of { my $self = shift; my %runs = $self->runs(@_); return summary(values %runs) }

sub median { my $self = shift; my ($median) = $self->of(@_); return $median }

# ratio PART, ABOVE, BELOW: divides the measured value ABOVE by the measured value BELOW of the same run. Returns the
# median, the minimum and the maximum of the ratios of all runs. ABOVE and BELOW are lists of the names of a subject
# (for example a generator of ids) and a metric.
sub ratio {
  my ($self, $part, $above, $below) = @_;
  my %above = $self->runs($part, @$above);
  my %below = $self->runs($part, @$below);
  return summary(map { $above{$_} / $below{$_} } grep { $below{$_} } keys %above);
}

1;
