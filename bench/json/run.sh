#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Decoding of real documents against cJSON, in one process; prints a table. Needs no root.
#   bench/json/run.sh [--rounds N] [FILE]...    FILE: a letter (p pod, n node, w WorkerGroup), then the JSON
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
[[ ${1:-} != -* ]] || options_check "${@:1:2}"
cmake -S "$root" -B "$root/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$root/build/release" --target bench-json >/dev/null
cd "$root/tests/fuzz/corpus/object"
exec "$root/build/release/bench/json/bench-json" "$@"
