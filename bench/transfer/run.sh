#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Weights that four ranks split by rows go to four ranks that split them by columns, on Cadre and on Ray in turn, beside
# plain copies by one process and by four at once, and reads of the memory of four by four others; prints a table.
#   bench/transfer/run.sh [OPTION]...
#   --mib N           of weights (1024)
#   --rounds N        (3); the median counts
# Ray comes from deploy/python.sh.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
build=$root/build/release
mib=1024 rounds=3
while [[ $# -gt 0 ]]; do
    case $1 in
    --mib) mib=$2 ;;
    --rounds) rounds=$2 ;;
    esac
    shift 2
done
python=$("$root/deploy/python.sh" large)
log=$(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release 2>&1 &&
    cmake --build "$build" --target cadre cadre-local cadre-agent cadre-worker 2>&1) || {
    echo "$log" >&2
    exit 1
}
export CADRE_CLIENT_LIBRARY=$build/worker/host/libcadre.so CADRE_LOCAL=$build/operator/local/cadre-local PYTHONDONTWRITEBYTECODE=1
export CADRE_AGENT=$build/worker/agent/cadre-agent CADRE_WORKER=$build/worker/host/cadre-worker
export PYTHONPATH=$root/sdk/python:$root/bench/transfer
exec "$python" -c 'import resharding; resharding.main()' "$mib" "$rounds"
