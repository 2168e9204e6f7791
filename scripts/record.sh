# shellcheck shell=bash
#
# Counts and prints the results of scripts/test, which sources this file.
#
# The stages of scripts/test run at the same time, each in a separate process. A stage prints the result of each test
# run at once, and appends the result to $work/counts. The variable $began contains the value that $SECONDS had when the
# current part of the stage started.

# record STAGE NAME EXIT_STATUS LOG PASSED FAILED: prints one line with the result, and after a failure the end of LOG.
# If EXIT_STATUS is not 0 although no test failed, the result is a failure. A run in which no test has run counts as a
# failure.
record() {
  local stage=$1 name=$2 status=$3 log=$4 passed=$5 failed=$6
  [ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
  [ $((passed + failed)) != 0 ] || { failed=1; echo "no test ran" >>"$log"; }
  {
    flock 9
    echo "$passed $failed" >>"$work/counts"
    printf '%-10s %-42s %5d passed' "$stage" "$name" "$passed"
    [ "$failed" = 0 ] || printf ', %d failed' "$failed"
    printf ' %8s\n' "$((SECONDS - began)) s"
    [ "$failed" = 0 ] || { tail -n 40 "$log" | sed 's/^/    | /'; echo "    whole log: $log"; }
  } 9>>"$work/counts"
  began=$SECONDS
}

# in_all FIELD: prints the sum of a field over all results. FIELD 1 is the number of passed tests, and FIELD 2 the
# number of failed tests.
in_all() { awk -v field="$1" '{ sum += $field } END { print sum + 0 }' "$work/counts"; }

# logged LOG COMMAND...: runs COMMAND, and writes its output to the file LOG. If COMMAND fails, the script continues,
# with the exit status of COMMAND in $status.
logged() {
  local log=$1
  shift
  status=0
  "$@" >>"$log" 2>&1 || status=$?
}

# once NAME COMMAND...: runs COMMAND only for the first stage that calls once() with this NAME. Other stages that call
# once() with the same NAME wait for COMMAND, and return its exit status.
once() {
  local name=$1 result=0
  shift
  {
    flock 8
    if [ -e "$work/$name.result" ]; then result=$(cat "$work/$name.result")
    else
      "$@" || result=$?
      echo "$result" >"$work/$name.result"
    fi
  } 8>>"$work/$name.lock"
  return "$result"
}

# Sets $passed and $failed to the numbers of lines in the output of a test tool that match the patterns for passed and
# failed tests. A skipped test counts as failed, because a skipped test has not tested anything.
count() {
  passed=$(grep -Ec "$2" "$1" || true)
  failed=$(grep -Ec "$3" "$1" || true)
}
count_tap() { count "$1" '^ok [0-9]+( (- )?[^#]*)?$' '^(not ok |ok [0-9]+.*#|1\.\.0)'; }
count_regress() {  # each pattern matches two formats of pg_regress: up to PostgreSQL 15, and since 16
  count "$1" '^(test +[^ ]+|     [^ ]+) +\.\.\. ok|^ok [0-9]' '^(test +[^ ]+|     [^ ]+) +\.\.\. FAILED|^not ok [0-9]'
}
count_gtest() {
  eval "$(awk '/^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
    /^\[  FAILED  \] [0-9]+ tests?, listed/ || /^\[  SKIPPED \] [0-9]+ test/ { failed += $4 }
    /^  YOU HAVE [0-9]+ DISABLED/ { failed += $3 }
    END { print "passed=" passed + 0, "failed=" failed + 0 }' "$1")"
}
