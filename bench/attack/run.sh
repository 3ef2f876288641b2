#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures how attacks of one tenant slow down the clients of another, how much memory they make the operator use, and
# how long the turns of its loop take, at several memory limits. Prints a table for each limit. It is
# tests/attack/test_attack.sh, for longer: a cluster for each limit.
#   bench/attack/run.sh [--seconds N] [--limits LIST]      (10, "128 1024 4096", in MiB)
# It needs root, and a build in $CADRE_BUILD_DIR (build/release: cmake --workflow --preset release).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
seconds=10
limits="128 1024 4096"
while [[ $# -gt 0 ]]; do
    case $1 in
    --seconds) seconds=$2 ;;
    --limits) limits=$2 ;;
    esac
    shift 2
done
export CADRE_BUILD_DIR=${CADRE_BUILD_DIR:-$root/build/release} CADRE_ATTACK_SECONDS=$seconds
export CADRE_OPERATOR=$CADRE_BUILD_DIR/operator/cadre-operator CADRE_KUBECTL_CADRE=$CADRE_BUILD_DIR/cli/kubectl-cadre

# The suite's lines "# NAME: p50 X ms, p99 Y ms, Z MiB; ...", as rows; the first one is the victim alone.
rows() {
    awk -F '[:,;] ' '/^# [a-z ]+: p50/ {
        name = substr($1, 3); split($2, p50, " "); split($3, p99, " "); split($4, mib, " ")
        if (name == "alone") alone = p99[2]
        split($5, turns, " "); split($6, over2, " "); split($7, over10, " ")
        printf "| %s | %s | %s | %.1fx | %s | %d | %.2f%% | %.2f%% |\n", name, p50[2], p99[2], p99[2] / alone, mib[1],
            turns[1], 100 * over2[1] / turns[1], 100 * over10[1] / turns[1]
    }'
}

for mib in $limits; do
    printf '\n%s MiB, attacks of %s s:\n\n' "$mib" "$seconds"
    printf '| attack | p50 of others, ms | p99, ms | ratio | most memory, MiB | turns | over 2 ms | over 10 ms |\n'
    printf '|---|---:|---:|---:|---:|---:|---:|---:|\n'
    CADRE_ATTACK_MEMORY_MIB=$mib "$root/tests/attack/test_attack.sh" >"${TMPDIR:-/tmp}/attack-$mib.log" 2>&1 ||
        echo "the suite has failed, see ${TMPDIR:-/tmp}/attack-$mib.log"
    rows <"${TMPDIR:-/tmp}/attack-$mib.log"
done
