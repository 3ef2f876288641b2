#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target for FUZZ_SECONDS (60), from the committed corpus. New inputs are kept in build/fuzz/corpus; a crash
# leaves its input in build/fuzz/crash and ends the run. ctest only replays the committed corpus.
#   run.sh [NAME]...      default: all targets
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p build
cmake --preset fuzz >build/configure.log || {
    cat build/configure.log
    exit 1
}
mapfile -t names < <(printf '%s\n' "$@" | sed '/^$/d')
[[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(cd tests/fuzz && printf '%s\n' fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')
cmake --build --preset fuzz --target "${names[@]/#/fuzz_}"
mkdir -p build/fuzz/crash
for name in "${names[@]}"; do
    echo "==> $name, ${FUZZ_SECONDS:-60} s"
    mkdir -p "build/fuzz/corpus/$name"
    "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 \
        -artifact_prefix="build/fuzz/crash/$name-" -print_final_stats=1 -verbosity=0 \
        "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
