# Checks the alert rules with promtool: the rules must have valid syntax, and must fire as rules_test.yaml expects
# during simulated hours.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Test::More;

command_like([ qw(promtool check rules doc/monitoring/snowflake_rules.yml) ], qr/SUCCESS: 22 rules/, 'promtool check rules');
command_like([ qw(promtool check config doc/monitoring/prometheus.yml) ], qr/SUCCESS/, 'promtool check config');
command_like([ qw(promtool test rules test/metrics/rules_test.yaml) ], qr/SUCCESS/, 'promtool test rules');

done_testing();
