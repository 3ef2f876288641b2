#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers on a cluster that do more than answer: several roles in one process, methods that call groups and create them as
# their ServiceAccount, tasks for a free rank, ranks that are killed on request, and workers in Python in an image that has
# only python3.
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

groups() {
    module_apply ppo 2 /modules/tensor.so "" \
        '.spec.worker |= (del(.class) | .roles = [{name: "actor", class: "Actor"}, {name: "critic", class: "Critic", init: {b: 10}}])'
    module_apply parent 1 /modules/nested.so Parent '.spec.worker.init = {group: "child"}'
    module_apply tasks 2 /modules/tasks.so Tasks '.spec.restartPolicy = "Worker" | .spec.worker.init = {seconds: 0.1}'
    module_apply counter 2 /modules/counter.so Counter
    kc create configmap code "--from-file=$suite_root/examples/python/accumulator.py" "--from-file=$here/debugged.py" >/dev/null
    container_apply python 2 '.spec.worker = {python: "debugged", class: "Debugged", workingDir: "/code"}' \
        '.spec.template.spec |= (.volumes = [{name: "code", configMap: {name: "code"}}]
            | .containers[0].volumeMounts = [{name: "code", mountPath: "/code"}]
            | .containers[0].image = "localhost/cadre-python:dev")'
}

program() { # STEP
    outside "$here/python_worker.py" "$1"
}

# A method stops at a breakpoint, and a person debugs it from outside the cluster.
debugged() {
    program stops >"$suite_dir/stopped" 2>&1 &
    local program=$!
    printf 'p self.value + 1000\ncontinue\n' | outside -m cadre debug python -n default || return
    wait "$program" && cat "$suite_dir/stopped"
}

test_python() {
    check "a worker in Python, in an image that has only python3, becomes Ready" kc wait --for=condition=Ready \
        --timeout=600s wg/python
    check "... a program in Python calls it" is "[10, 11] [11, 13] 11" program values
    check "... with 500 calls in flight" is "[511, 513]" program in_flight
    check "... a TypeError is caught as one, with its rank, pod, node and traceback" \
        matches "^Failed 1 python-1-[0-9]+ n1 True$" program fails
    check "... kubectl cadre stack shows where its ranks are" \
        eventually 10 matches "rank 1.*:.*worker/_serve\.py" cadre stack python
    check "... pickles of an account that may only call are refused" matches "^Forbidden .*workergroups/code" program pickled
    kc create rolebinding coder --clusterrole=cadre-code --serviceaccount=cadre-system:cadre-cli >/dev/null
    check "... and opened for one that may send code" eventually 60 matches "unsupported operand" program pickled
    check "... python -m cadre debug is the terminal of a breakpoint in a pod" matches "debugged.py.*1511.*went on at 511" debugged
    check "... kubectl cadre sees its methods" matches "add +ONE_TO_ALL" cadre info python
    check "... a rank that is killed starts again, with its group" is "[1, 2]" program killed
}

# A program sends its code to pods that its user may create. The image has none of this code.
test_shipped() {
    kc create namespace ship >/dev/null
    check "a kubeconfig alone makes no groups, and the message says what is missing" \
        matches "^Forbidden .*cadre-cli.*create WorkerGroups.*-edit" program by_value
    kc create rolebinding cadre-cli -n ship --clusterrole=cadre-edit --serviceaccount=cadre-system:cadre-cli >/dev/null
    check "a class of a program outside runs in pods that have only python3, and so do its exceptions and tasks" \
        eventually 60 is "[11, 12] OutOfTokens 49" program by_value
    check "... an Event says who has sent it, its hash and size" matches "cadre-cli.*SHA-256 [0-9a-f]{64}.*bytes" \
        kc get events -n ship --field-selector reason=CodeByValue -o 'jsonpath={.items[*].message}'
    check "... what ranks print is in the program, equal lines as one" matches "^talking \[rank 0-1\] hello$" program prints
    check "... a changed class with the same name runs in the same pods" is "[1, 1] [2, 2] True" program changed
    check "a program sends its working_dir to the pods of its group, also to those that come later" \
        is "['shipped', 'shipped'] ['shipped', 'shipped'] True" program shipped
    check "a pod that comes later gets it from another pod, though the program is gone and all constructors wait for it" \
        is "['shipped', 'shipped'] ['shipped', 'shipped']" program inherited
    check "where no pod has it, CodeMissing says what to do" \
        matches "CodeMissing: run the program that made the group again, or put the code into the image" program lost
}

test_roles() {
    local zeros='{"a": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}'
    check "groups become Ready" kc wait --for=condition=Ready --timeout=600s wg/ppo wg/parent wg/tasks wg/counter
    check "S2-10: actor.add" is '{"a": [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]}' cadre call ppo add "$zeros" --role actor
    check "S2-10: critic.sub, of the same data" is '{"a": [-10, -10, -10, -10, -10, -10, -10, -10, -10, -10]}' \
        cadre call ppo sub "$zeros" --role critic
    check "a call says which role" says "ppo has several roles" cadre call ppo add "$zeros"
    check "a changed role restarts the processes" kc patch wg ppo --type json \
        -p '[{"op": "replace", "path": "/spec/worker/roles/1/init/b", "value": 3}]'
    check "... with the new init" eventually 30 is '{"a": [-3, -3]}' cadre call ppo sub '{"a": [0, 0]}' --role critic
}

# The manifest of the child group, as an argument.
child() {
    kc get wg parent -o json | jq -c '{metadata: {name: "child"},
        spec: (.spec | .worker = {module: "/modules/nested.so", class: "Child"})}'
}

test_nested() {
    check "a method calls as its ServiceAccount, which may not" says "FORBIDDEN" cadre call parent get_work
    kc create role nested --verb=create --resource=workergroups.cadre.dev,workergroups.cadre.dev/call >/dev/null
    kc create rolebinding nested --role=nested --serviceaccount=default:default >/dev/null
    check "S0-4: create_child" eventually 20 is null cadre call parent create_child "[$(child)]"
    check "S0-4: get_work" is '"Work done by child"' cadre call parent get_work
    check "... made by the parent's ServiceAccount" matches 'system:serviceaccount:default:default' \
        kc get wg child -o 'jsonpath={.metadata.annotations.cadre\.dev/created-by}'
}

test_tasks() {
    check "S0-2: a task" is 49 cadre call tasks example_task 7
    check "S3-3" is 3 cadre call tasks add '[1, 2]'
}

# worker_stop GROUP RANK: stops its process (SIGSTOP).
worker_stop() {
    local pod
    for pod in $(kc get pods -l "cadre.dev/group=$1" -o name); do
        # shellcheck disable=SC2016
        kc exec "$pod" -c worker -- sh -c 'for p in /proc/[0-9]*; do
            grep -qsx cadre-worker "$p/comm" && tr "\0" "\n" <"$p/environ" | grep -qx "RANK=$0" &&
                kill -STOP "${p#/proc/}"; done; true' "$2"
    done
}

test_killed() {
    check "counters" is "[1, 1]" cadre call counter increment
    worker_stop counter 1
    check "a rank that hangs answers nothing" \
        eventually 10 says "no answer from rank 1" cadre call counter get_value --timeout 1s
    check "... and is killed all the same" is "rank 1 of counter killed" cadre kill counter --rank 1
    check "... all start again, as restartPolicy says" eventually 30 is "[0, 0]" cadre call counter get_value
    check "... and the failure is told" eventually 10 matches "killed by a client" \
        kc get wg counter -o 'jsonpath={.status.lastFailure.message}'
    check "... with its rank and exit code" is "1 137" \
        kc get wg counter -o 'jsonpath={.status.lastFailure.rank} {.status.lastFailure.exitCode}'
    check "restartPolicy Worker: only that rank" is "rank 0 of tasks killed" cadre kill tasks --rank 0
    check "... and tasks go on" is 4 cadre call tasks example_task 2
    check "a kill for another attempt is refused" says "CONFLICT" cadre kill counter --rank 0 --attempt 1
}

suite_start e2e-roles --nodes 1
calls_images=(python)
calls_install --set crds.install=false
kc label namespace default pod-security.kubernetes.io/enforce=restricted >/dev/null
groups
test_roles
test_nested
test_tasks
test_killed
test_python
test_shipped
check "deleted groups leave nothing" group_delete ppo parent tasks counter child python
suite_end
