#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lives.py on the cluster of the demo, which must be up (`make demo`), with the options given.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
exec "$root/deploy/devcluster/devcluster" exec -- python3 "$root/bench/lives/lives.py" "$@"
