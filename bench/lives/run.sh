#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From apply to Ready, and from a worker's death to Ready again, beside bare pods; prints a table.
#   bench/lives/run.sh [--rounds N]      (10)
# It uses the cluster of the demo, which must be up (`make demo`).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
exec "$root/deploy/devcluster/devcluster" exec -- python3 "$root/bench/lives/lives.py" "$@"
