#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls of workers in Python by a program in Python, on Cadre and on Ray in turn, on this machine, beside a worker in C; the
# second start of a program with a working_dir; the memory of a rank. Programs of verl, and starts of groups with torch, on
# Cadre and on Ray in turn. Prints tables.
#   bench/python/run.sh [OPTION]...
#   --part PART       calls, beside_c or programs (all)
#   --seconds S       of each measurement (1)
#   --rounds N        (3); the median counts
# Ray comes from deploy/python.sh.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
build=$root/build/release
seconds=1 rounds=3 parts="calls beside_c programs"
while [[ $# -gt 0 ]]; do
    case $1 in
    --part) parts=$2 ;;
    --seconds) seconds=$2 ;;
    --rounds) rounds=$2 ;;
    esac
    shift 2
done
python=$("$root/deploy/python.sh" large)
log=$(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release 2>&1 &&
    cmake --build "$build" --target cadre cadre-local cadre-agent cadre-worker module_echo 2>&1) || {
    echo "$log" >&2
    exit 1
}
export CADRE_CLIENT_LIBRARY=$build/worker/host/libcadre.so CADRE_LOCAL=$build/operator/local/cadre-local PYTHONDONTWRITEBYTECODE=1
export CADRE_AGENT=$build/worker/agent/cadre-agent CADRE_WORKER=$build/worker/host/cadre-worker
export ECHO_SO=$build/examples/echo/echo.so
export PYTHONPATH=$root/sdk/python:$root/bench/python:$root/tests/verl
export VERL_PLATFORM=cpu VERL_USE_EXTERNAL_MODULES=verl_on_cpu,cadre.verl # verl without a GPU; on Ray, the latter does nothing
for name in $(compgen -e | grep -i '_proxy$' || true); do
    unset "$name" # Ray asks it for loopback, too
done
for part in $parts; do
    "$python" -c "import $part; $part.main()" "$seconds" "$rounds"
done
