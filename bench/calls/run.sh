#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls through the proxy to workers, beside bare sockets and beside Ray, on loopback; prints tables. Needs no root.
#   bench/calls/run.sh [OPTION]...
#   --without-ray     its columns and the columns of Ray Client stay empty
#   --seconds S       of each measurement (1)
#   --rounds N        (3); the median counts
#   --idle N          most idle workers (10000)
#   --only TEXT       only the lines with this in their name
# Ray comes from deploy/python.sh; where that fails it is left out.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
build=$root/build/release

options=() ray=yes python=python3
for argument; do
    [[ $argument == --without-ray ]] && ray='' || options+=("$argument")
done
if [[ -z $ray ]]; then
    :
elif python=$("$root/deploy/python.sh" large); then
    options+=(--ray-python "$python" --ray-script "$root/bench/calls/ray_peer.py")
else
    python=python3
    echo "bench: without Ray" >&2
fi
log=$(cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release 2>&1 &&
    cmake --build "$build" --target bench-calls cadre_client 2>&1) || {
    echo "$log" >&2
    exit 1
}
export CADRE_CLIENT_LIBRARY=$build/sdk/c/client/libcadre_client.so PYTHONPATH=$root/sdk/python PYTHONDONTWRITEBYTECODE=1
options+=(--client-python "$python" --client-script "$root/bench/calls/python_client.py")
exec "$build/bench/calls/bench-calls" --worker "$build/worker/host/cadre-worker" \
    --module "$build/examples/echo/echo.so" "${options[@]}"
