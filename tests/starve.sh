#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests beside a load that leaves them a fifth of this machine's CPU time, also their clusters, as on a machine that
# others keep busy. Each test must pass: it waits for a state, not for a time. Needs root, and build/ci (make test).
#   starve.sh [OPTION OF CTEST...]      starve.sh -R integration_operator_ha
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
die() {
    printf 'starve.sh: error: %s\n' "$*" >&2
    exit 1
}
# shellcheck source=deploy/devcluster/lib/cgroup.sh
. deploy/devcluster/lib/cgroup.sh
[[ $EUID -eq 0 ]] || die "tests/starve.sh needs root: it makes cgroups"

export CADRE_CGROUP=cadre-starved-$$
load=cadre-load-$$

# weigh CGROUP N: what it gets of a core that others want, too. No quota: pods may not have a larger one of their own.
weigh() {
    local dir weighed=
    while read -r dir; do
        if [[ -e $dir/cpu.shares ]]; then
            echo $(($2 * 1024)) >"$dir/cpu.shares" && weighed=1
        elif [[ -e $dir/cpu.weight ]]; then
            echo $(($2 * 100)) >"$dir/cpu.weight" && weighed=1
        fi
    done < <(cgroup_dirs "$1")
    [[ -n $weighed ]] || die "no cgroup of this machine shares out CPU time"
}

trap 'cgroup_kill "$load"; cgroup_kill "$CADRE_CGROUP"; cgroup_remove "$load"; cgroup_remove "$CADRE_CGROUP"' EXIT
cgroup_create "$CADRE_CGROUP/tests"
cgroup_create "$load"
weigh "$CADRE_CGROUP" 1
weigh "$load" 4
for ((i = 0; i < $(nproc); i++)); do
    (
        cgroup_join "$load" "$BASHPID"
        while :; do :; done
    ) &
    disown
done

status=0
(
    cgroup_join "$CADRE_CGROUP/tests" "$BASHPID"
    exec ctest --test-dir "${CADRE_BUILD_DIR:-build/ci}" --output-on-failure --no-tests=error "$@"
) || status=$?
exit "$status"
