#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills the replica of the operator that a client is connected to, again and again, and prints how long its calls stay
# away, beside what a new connection takes. On loopback, without Kubernetes and without root; two minutes.
#   bench/failover/run.sh [OPTION]...
#   --rounds N        (50)
#   --busy N          processes that use a core each meanwhile (as many as there are cores)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
build=$root/build/release
log=$(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release 2>&1 &&
    cmake --build "$build" --target bench-failover 2>&1) || {
    echo "$log" >&2
    exit 1
}
exec "$build/bench/failover/bench-failover" --worker "$build/worker/host/cadre-worker" \
    --module "$build/examples/echo/echo.so" "$@"
