#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests beside a load that leaves a fifth of this machine's CPU time to them, to their clusters, and to everything
# else, as on a machine that others keep busy. Each test must pass: it waits for a state, not for a time. Needs root,
# because the load has a real-time priority, and build/ci (make test).
#   starve.sh [OPTION OF CTEST...]      starve.sh -R integration_operator_ha
#   starve.sh --parallel "$(($(nproc) + 4))" --resource-spec-file "$PWD/tests/resources.json"   all tests, as make test
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $EUID -eq 0 ]] || {
    echo "starve.sh: error: it needs root: its load has a real-time priority" >&2
    exit 1
}
# pyenv's python3 is a script of bash that takes longer to start than Python.
if [[ $(head -c 2 "$(command -v python3)") == '#!' ]]; then
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
fi

load=()
trap 'kill "${load[@]}"' EXIT
for ((i = 0; i < $(nproc); i++)); do
    python3 tests/lib/busy_cpu.py "$i" &
    load+=($!)
done
sleep 1
kill -0 "${load[@]}"

status=0
ctest --test-dir "${CADRE_BUILD_DIR:-build/ci}" --output-on-failure --no-tests=error --timeout 21600 "$@" || status=$?
kill -0 "${load[@]}"
exit "$status"
