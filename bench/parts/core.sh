# The core alone, by Google Benchmark. CPU time per operation, and operations per second of all threads.
begin_results core
unprivileged "$work/source/bench/build/core_bench" --benchmark_format=csv \
  --benchmark_enable_random_interleaving=true --benchmark_repetitions="$(by_form 9 3)" \
  --benchmark_min_time="$(by_form 0.3 0.05)" 2>/dev/null |
  awk -F, '/^"/ && $1 !~ /_(mean|median|stddev|cv)"$/ {
    name = $1; gsub(/"|\/real_time/, "", name)
    run = ++runs[name]
    items = name ~ /^batch_[a-z]*\// ? gensub_batch(name) : 1
    printf "%s\tCPU ns an item\t%d\t%.4f\n", name, run, $4 / items
    printf "%s\titems/s\t%d\t%.0f\n", name, run, $7
  }
  function gensub_batch(name, part) { split(name, part, "/"); return part[2] }' >>"$results"
