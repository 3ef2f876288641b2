#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls of workers in Python by a program in Python, on Cadre and on Ray in turn, on this machine; prints a table.
#   bench/python/run.sh [OPTION]...
#   --seconds S       of each measurement (1)
#   --rounds N        (3); the median counts
# Needs Ray in ~/.cache/cadre/ray, which bench/calls/run.sh installs, and cloudpickle, which test_python_code brings there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre
build=$root/build/release
seconds=1 rounds=3
while [[ $# -gt 0 ]]; do
    case $1 in
    --seconds) seconds=$2 ;;
    --rounds) rounds=$2 ;;
    esac
    shift 2
done
python=$cache/ray/bin/python
"$python" -c 'import numpy, ray' 2>/dev/null || options_refuse "no Ray in $cache/ray: bench/calls/run.sh installs it"
log=$(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release 2>&1 &&
    cmake --build "$build" --target cadre cadre-local cadre-agent cadre-worker 2>&1) || {
    echo "$log" >&2
    exit 1
}
export CADRE_CLIENT_LIBRARY=$build/worker/host/libcadre.so CADRE_LOCAL=$build/operator/local/cadre-local PYTHONDONTWRITEBYTECODE=1
export CADRE_AGENT=$build/worker/agent/cadre-agent CADRE_WORKER=$build/worker/host/cadre-worker
pickle=("$cache"/cloudpickle-*)
export PYTHONPATH=$root/sdk/python:$root/bench/python:${pickle[0]}
exec "$python" -c 'import calls; calls.main()' "$seconds" "$rounds"
