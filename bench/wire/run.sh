#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Our websocket client against our server in another process, beside a bare TCP socket; prints a table. Needs no root.
#   bench/wire/run.sh [--tls] [--unix] [--read-size N] [--seconds N]     N bytes at a time
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
cmake -S "$root" -B "$root/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$root/build/release" --target bench-wire >/dev/null
exec "$root/build/release/bench/wire/bench-wire" "$@"
