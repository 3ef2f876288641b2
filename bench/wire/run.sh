#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Our websocket client against our server in another process, beside a bare TCP socket; prints a table. Needs no root.
#   bench/wire/run.sh [--tls] [--unix] [--read-size BYTES] [--seconds N]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cmake -S "$root" -B "$root/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$root/build/release" --target bench-wire >/dev/null
exec "$root/build/release/bench/wire/bench-wire" "$@"
