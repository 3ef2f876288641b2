#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How much CPU time the longest turn of the proxy's loop takes during each attack of tests/attack, and how many turns take
# more than 2 ms; prints a table. Without a cluster and without root: all are processes on loopback.
#   bench/turns/run.sh [--seconds N] [--attacks LIST]      (4, all that need no cluster)
# NAME*SCALE in the list: with so many times the connections, or bytes. silent*2: 12,000 connections. texts*7: requests of 58 MiB.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
seconds=4
attacks="info posts hoard calls ahead flood hellos silent*2 sessions slow handshakes bodies texts texts*7 crumbs documents frames"
while [[ $# -gt 0 ]]; do
    case $1 in
    --seconds) seconds=$2 ;;
    --attacks) attacks=$2 ;;
    esac
    shift 2
done
build=$root/build/release
log=$(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release 2>&1 &&
    cmake --build "$build" --target bench-turns 2>&1) || {
    echo "$log" >&2
    exit 1
}
read -ra list <<<"$attacks"
exec "$build/bench/turns/bench-turns" "$build/worker/host/cadre-worker" "$build/examples/echo/echo.so" \
    "$root/tests/attack/attack.py" "$seconds" "${list[@]}"
