#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs for Ray, torch and verl, as they are, and verl's own tests: they run outside of the cluster, and their workers
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

# What the program's user may do, and what its actors may.
rights() {
    local role
    kc create namespace ship >/dev/null
    kc create rolebinding cadre-cli -n ship --clusterrole=cadre-edit --serviceaccount=cadre-system:cadre-cli >/dev/null
    for role in call code edit; do
        kc create rolebinding "actors-$role" -n ship "--clusterrole=cadre-$role" --serviceaccount=ship:default >/dev/null
    done
}

# of_itself PYTHON-ARGUMENTS...: what a program outside of the cluster prints, without what its ranks and verl print, and a
# sanitizer that does not know what torch does.
of_itself() {
    outside "$@" 2>&1 | grep -vE '^([a-z0-9-]+ \[(rank [0-9,-]+|agent)\] |(INFO|WARNING):|colocated worker base|==[0-9]+==WARNING: ASan)'
}

# as_ray PYTHON-ARGUMENTS...: a program for Ray.
as_ray() {
    RAY_ADDRESS=auto CADRE_RAY_IMAGE=localhost/cadre-python:dev CADRE_NAMESPACE=ship of_itself "$@"
}

test_ray() {
    local programs=$suite_root/tests/unit/sdk/python/ray
    sed 's/^import ray$/import cadre.ray as ray/; s/^from ray[.]/from cadre.ray./' "$here/ray_program.py" >"$suite_dir/ray_program.py"
    check "a program for Ray, with another import line, has its actors and tasks in pods" \
        is "$(cat "$here/ray_program.txt")" as_ray "$suite_dir/ray_program.py"
    check "... and another one, as it is, with a folder of its own" is "$(cat "$programs/shipped.txt")" \
        as_ray -m cadre.ray "$programs/shipped.py"
}

# torch_template SITE-PACKAGES: of pods that have these packages of this machine, which no image has to hold.
torch_template() {
    jq -n --arg site "$1" --arg verl "$suite_root/tests/verl" '
        [{name: "packages", path: $site}, {name: "verl", path: $verl}] as $folders |
        {VERL_USE_EXTERNAL_MODULES: "verl_on_cpu,cadre.verl", VERL_USE_EXTERNAL_PLUGINS: "none", VERL_PLATFORM: "cpu",
            VERL_ENGINE_DEVICE: "cuda", VERL_LOGGING_LEVEL: "ERROR", OMP_NUM_THREADS: "1", TOKENIZERS_PARALLELISM: "false",
            HOME: "/tmp", PYTHONPATH: "/opt/packages:/opt/verl", LOGICAL_GPUS: "4"} as $env |
        {spec: {terminationGracePeriodSeconds: 2,
            volumes: [$folders[] | {name, hostPath: {path}}],
            containers: [{name: "worker", image: "localhost/cadre-python:dev",
                env: [$env | to_entries[] | {name: .key, value}],
                volumeMounts: [$folders[] | {name, mountPath: "/opt/\(.name)", readOnly: true}]}]}}'
}

# verl_tests ARGUMENT...: verl's own tests, which tests/verl/run.sh runs outside of the cluster: how many passed.
verl_tests() {
    local outside_python=bash log=$suite_dir/verl_tests
    as_ray "$suite_root/tests/verl/run.sh" "$@" >"$log" || cat "$log"
    grep -oE '[0-9]+ (passed|failed|error)' "$log"
}

# Ranks that use torch: they are built on this machine's packages.
test_torch() {
    local template=$suite_dir/template.json outside_python outside_path=$suite_root/tests/verl variable
    if ! outside_python=$("$suite_root/deploy/python.sh" large 2>"$suite_diag"); then
        skip "programs with torch and verl, whose ranks are in pods" "deploy/python.sh cannot bring torch"
        return
    fi
    torch_template "$("$outside_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >"$template"
    check "two groups with torch on the halves of one pool" is "$(cat "$here/two_groups.txt")" \
        of_itself "$here/two_groups.py" "$template"
    while read -r variable; do
        local -x "${variable?}"
    done < <(jq -r '.spec.containers[0].env[] | select(.name | IN("HOME", "PYTHONPATH") | not) | "\(.name)=\(.value)"' "$template")
    local -x CADRE_RAY_TEMPLATE=$template CADRE_RAY_CPU=10m
    check "a program of verl, as it is, has its workers in pods" is "$(cat "$here/verl_program.txt")" \
        as_ray -m cadre.ray "$here/verl_program.py"
    if ! "$suite_root/tests/verl/run.sh" --bring >"$suite_diag" 2>&1; then
        skip "tests of verl, whose workers are in pods" "tests/verl/run.sh cannot bring verl's source"
        return
    fi
    check "verl's own tests of worker groups pass with their workers in pods" is "1 passed" \
        verl_tests single_controller/test_worker_group_basics.py
    check "... also with an actor for each rank" is "1 passed" \
        verl_tests --actors single_controller/test_worker_group_basics.py
}

suite_start e2e-programs --nodes 1
calls_images=(python)
calls_install --set crds.install=false
rights
test_ray
test_torch
suite_end
