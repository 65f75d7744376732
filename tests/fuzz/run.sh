#!/usr/bin/env bash
# Run every fuzz target for some seconds, starting from its corpus.
#
#   tests/fuzz/run.sh DIRECTORY_OF_FUZZERS SECONDS
#
# Inputs that are new and worth keeping stay in the directory; one that fails is named in the output.
set -euo pipefail

directory=$1 seconds=$2
corpus=$(dirname "$0")/../../fixtures/fuzz
failed=0
for fuzzer in "$directory"/*_fuzzer; do
  name=$(basename "$fuzzer" _fuzzer)
  mkdir -p "$directory/corpus/$name" "$directory/failures"
  printf '%-24s' "$name"
  if "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$directory/failures/$name-" "$directory/corpus/$name" "$corpus/$name" \
      >"$directory/$name.log" 2>&1; then
    awk '/number_of_executed_units/ {printf "%12d runs", $2} /^stat::peak_rss_mb/ {printf "%8d MiB", $2}
         END {print "  clean"}' "$directory/$name.log"
  else
    echo '  FAILED'
    tail -n 40 "$directory/$name.log"
    failed=1
  fi
done
exit $failed
