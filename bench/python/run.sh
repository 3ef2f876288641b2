#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls of workers in Python by a program in Python, on Cadre and on Ray in turn, on this machine, beside a worker in C; the
# second start of a program with a working_dir; the memory of a rank. Prints tables.
#   bench/python/run.sh [OPTION]...
#   --seconds S       of each measurement (1)
#   --rounds N        (3); the median counts
# Ray comes from deploy/python.sh.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
build=$root/build/release
seconds=1 rounds=3
while [[ $# -gt 0 ]]; do
    case $1 in
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
export PYTHONPATH=$root/sdk/python:$root/bench/python
exec "$python" -c 'import calls; calls.main()' "$seconds" "$rounds"
