#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests with a fifth of this machine's CPU time, as on a machine that others keep busy. The clusters that the tests
# start are part of it. Each test must pass: it waits for a state, not for a time. Needs root, and build/ci (make test).
#   starve.sh [OPTION OF CTEST...]      starve.sh -R integration_operator_ha
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
die() {
    printf 'starve.sh: error: %s\n' "$*" >&2
    exit 1
}
# shellcheck source=deploy/devcluster/lib/cgroup.sh
. deploy/devcluster/lib/cgroup.sh
[[ $EUID -eq 0 ]] || die "tests/starve.sh needs root: it makes a cgroup"

readonly PERIOD_US=100000
export CADRE_CGROUP=cadre-starved-$$
quota=$(($(nproc) * PERIOD_US / 5))
limited=

trap 'cgroup_kill "$CADRE_CGROUP"; cgroup_remove "$CADRE_CGROUP"' EXIT
cgroup_create "$CADRE_CGROUP/tests"
while read -r dir; do
    if [[ -e $dir/cpu.cfs_quota_us ]]; then
        echo "$PERIOD_US" >"$dir/cpu.cfs_period_us"
        echo "$quota" >"$dir/cpu.cfs_quota_us"
        limited=$dir
    elif [[ -e $dir/cpu.max ]]; then
        echo "$quota $PERIOD_US" >"$dir/cpu.max"
        limited=$dir
    fi
done < <(cgroup_dirs "$CADRE_CGROUP")
[[ -n $limited ]] || die "no cgroup of this machine limits CPU time"

status=0
(
    cgroup_join "$CADRE_CGROUP/tests" "$BASHPID"
    exec ctest --test-dir "${CADRE_BUILD_DIR:-build/ci}" --output-on-failure --no-tests=error "$@"
) || status=$?
cat "$limited/cpu.stat"
exit "$status"
