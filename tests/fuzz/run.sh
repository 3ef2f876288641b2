#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target for FUZZ_SECONDS (60), from the committed corpus, in FUZZ_FOLDER (build/fuzz). New inputs are kept
# in its corpus/; a crash leaves its input in its crash/ and ends the run.
#   run.sh [NAME]...            builds and fuzzes these targets; default: all. Exit status 77: no clang here
#   run.sh --build              builds all of them, and no more
#   run.sh --built [NAME]...    fuzzes what is built already
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${FUZZ_FOLDER:-build/fuzz}

build() { # NAME...
    mkdir -p "$folder"
    cmake --preset fuzz -B "$folder" >"$folder/configure.log" || {
        cat "$folder/configure.log"
        return 1
    }
    cmake --build "$folder" --target "${@/#/fuzz_}"
}

fuzz() { # NAME
    mkdir -p "$folder/crash" "$folder/corpus/$1"
    echo "==> $1, ${FUZZ_SECONDS:-60} s"
    "$folder/tests/fuzz/fuzz_$1" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 \
        -artifact_prefix="$folder/crash/$1-" -print_final_stats=1 -verbosity=0 \
        "$folder/corpus/$1" "tests/fuzz/corpus/$1"
}

command -v clang >/dev/null || {
    echo "1..0 # SKIP clang is not installed: deploy/deps.sh fuzz"
    exit 77
}
mode=all
[[ ${1:-} != --buil[dt] ]] || {
    mode=${1#--}
    shift
}
names=("$@")
[[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(cd tests/fuzz && printf '%s\n' fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')
[[ $mode == built ]] || build "${names[@]}"
[[ $mode != build ]] || exit 0
for name in "${names[@]}"; do
    fuzz "$name"
done
