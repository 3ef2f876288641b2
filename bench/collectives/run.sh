#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long the members of a communicator wait in a collective after one of them was killed; prints a line for each kind
# of collective: milliseconds, median, 99th percentile, longest. Then all_reduce beside gloo's own: bytes, milliseconds
# of Cadre and of gloo; median and quartiles of the ratios; median of the ratios of CPU time. Needs no root.
#   bench/collectives/run.sh [--rounds N] [--members N]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
cmake -S "$root" -B "$root/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$root/build/release" --target bench-collectives bench-beside-gloo >/dev/null
export LD_LIBRARY_PATH=$root/build/release/worker/host
"$root/build/release/bench/collectives/bench-collectives" "$@"
"$root/build/release/bench/collectives/bench-beside-gloo"
