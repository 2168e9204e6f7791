# shellcheck shell=bash disable=SC2034,SC2154
#
# Measures the code in src/core alone with Google Benchmark: the CPU time per operation, and the operations per second
# of all threads.
begin_results core
unprivileged make -s -C "$work/source/bench/core" BUILD="$work/source/bench/build" >/dev/null
unprivileged "$work/source/bench/build/core_bench" --benchmark_format=csv \
  --benchmark_enable_random_interleaving=true --benchmark_repetitions="$(by_form 4 2)" \
  --benchmark_min_time="$(by_form 0.15 0.02)" 2>/dev/null |
  awk -F, '{ gsub(/"/, "") }
  $1 == "name" { for (i = 1; i <= NF; i++) column[$i] = i }
  $1 ~ /^[a-z_]+(\/|$)/ && $1 != "name" && $1 !~ /_(mean|median|stddev|cv)$/ {
    name = $1
    sub(/\/real_time/, "", name)
    run = ++runs[name]
    printf "%s\tCPU ns an item\t%d\t%.4f\n", name, run, $column["cpu_ns"] / $column["items"]
    printf "%s\tallocations an item\t%d\t%.6f\n", name, run, $column["allocations"] / $column["items"]
    printf "%s\titems/s\t%d\t%.0f\n", name, run, $column["items"] * 1e9 / $column["wall_ns"]
  }' >>"$results"
