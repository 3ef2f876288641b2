#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of planning by itself, then simulates days of a cluster. Prints a table and a summary, without root.
#   bench/planner/run.sh [EVENTS [SEED [NODES]]]     of the simulation: 1000000 1 24
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
for argument; do
    [[ $argument =~ ^[0-9]{1,10}$ ]] || options_refuse "no option \"$argument\""
done
cmake -S "$root" -B "$root/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$root/build/release" --target bench-planner bench-simulate >/dev/null
"$root/build/release/bench/planner/bench-planner"
echo
exec "$root/build/release/bench/planner/bench-simulate" "$@"
