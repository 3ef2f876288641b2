#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs for Ray, torch and verl without changes, and verl's own tests. They run outside the cluster, and their workers run
# in pods.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154,SC2016,SC2034
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"
# shellcheck source=/dev/null
. "$here/../lib/calls.sh"
# shellcheck source=/dev/null
. "$here/../lib/outside.sh"
# shellcheck source=/dev/null
. "$here/../lib/programs.sh"

test_ray() {
    local programs=$suite_root/tests/unit/sdk/python/ray
    sed 's/^import ray$/import cadre.ray as ray/; s/^from ray[.]/from cadre.ray./' "$here/ray_program.py" >"$suite_dir/ray_program.py"
    check "a program for Ray, with another import line, has its actors and tasks in pods" \
        is "$(cat "$here/ray_program.txt")" as_ray "$suite_dir/ray_program.py"
    check "... and another one, as it is, with a folder of its own" is "$(cat "$programs/shipped.txt")" \
        as_ray -m cadre.ray "$programs/shipped.py"
}

# passed groups|actors FILE: the number of verl's own tests that pass.
passed() {
    local log=$suite_dir/passed
    programs_verl_tests "$@" >"$log" 2>&1 || cat "$log"
    grep -oE '[0-9]+ (passed|failed|error)' "$log"
}

# Ranks that use torch. Their pods mount the packages of this machine.
test_torch() {
    local template=$suite_dir/template.json outside_python outside_path=$suite_root/tests/verl variable
    if ! outside_python=$("$suite_root/deploy/python.sh" large 2>"$tap_diag"); then
        skip "programs with torch and verl, whose ranks are in pods" "deploy/python.sh cannot bring torch"
        return
    fi
    programs_template "$("$outside_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >"$template"
    check "a group with torch on one pool, then two groups on its halves, with DDP and with FSDP2" is "$(cat "$here/torch_program.txt")" \
        of_itself "$here/torch_program.py" "$template"
    while read -r variable; do
        local -x "${variable?}"
    done < <(jq -r '.spec.containers[0].env[] | select(.name | IN("HOME", "PYTHONPATH") | not) | "\(.name)=\(.value)"' "$template")
    local -x CADRE_RAY_TEMPLATE=$template CADRE_RAY_CPU=10m
    check "a program of verl, as it is, has its workers in pods" is "$(cat "$here/verl_program.txt")" \
        as_ray -m cadre.ray "$here/verl_program.py"
    if ! "$suite_root/tests/verl/run.sh" --bring >"$tap_diag" 2>&1; then
        skip "tests of verl, whose workers are in pods" "tests/verl/run.sh cannot bring verl's source"
        return
    fi
    check "verl's own tests of worker groups pass with their workers in pods" is "1 passed" \
        passed groups single_controller/test_worker_group_basics.py
    check "... also with an actor for each rank" is "1 passed" \
        passed actors single_controller/test_worker_group_basics.py
}

suite_start e2e-programs --nodes 1
calls_images=(python)
calls_install --set crds.install=false
programs_rights
test_ray
test_torch
suite_end
