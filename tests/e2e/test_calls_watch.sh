#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Calls with modes that are data (a rule of a class, meshes of an object), and the views of calls from outside, end to end.
# The chart installs the operator. Groups of modules run on two nodes.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154,SC2016
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"
# shellcheck source=/dev/null
. "$here/../lib/calls.sh"

watched_module() {
    cc -std=c11 -O2 -D_GNU_SOURCE -I"$suite_root/sdk/c/include" -fPIC -shared -s -o "$suite_dir/watched.so" \
        "$suite_root/tests/unit/modules/watched.c"
    kc create configmap modules "--from-file=$suite_dir/watched.so"
}

mounted='.spec.template.spec |= (.volumes = [{name: "modules", configMap: {name: "modules"}}]
    | .containers[0].volumeMounts = [{name: "modules", mountPath: "/more"}])'
spread='.spec.placement.strategy = "Spread"'
meshes='.spec.worker.meshes = [{name: "train", dims: [{name: "pp", size: 2}, {name: "dp", size: 2}]}]'

groups() {
    module_apply actor 4 /modules/dispatch.so TestActor '.spec.worker.init = {x: 2}'
    module_apply meshed 4 /modules/accumulator.so Accumulator "$meshes"
    module_apply watched 4 /more/watched.so Watched "$mounted" "$spread"
}

test_modes() {
    check "groups become Ready" kc wait --for=condition=Ready --timeout=600s wg/actor wg/meshed wg/watched
    check "S1-10: two_to_all, a rule of the class" is "[8,10,8,10]" called actor \
        '{"method": "foo_custom", "args": {"x": [1, 2], "y": [5, 6]}}'
    check "... of the call" is "[8,10,8,10]" called actor '{"method": "foo_one_to_all", "dispatch": "SPLIT",
        "split": {"index": [0, 1, 0, 1], "elements": true}, "args": {"x": [1, 2], "y": [5, 6]}}'
    check "a mesh of the object: an element for each dp, of the last pp" is "[12, 23]" cadre call meshed add '[10, 20]' \
        --dispatch split --split '{"mesh": "train", "dims": ["dp"], "elements": true}' --collect '{"at": {"pp": "last"}}'
    check "... on the other ranks it ran, too" is "[10, 21, 12, 23]" cadre call meshed get_value
    check "... of one rank a stage" is "[10, 12]" cadre call meshed get_value --dispatch 3d-pp-only
    check "a mesh that it has not" says "no mesh" cadre call meshed get_value --dispatch split \
        --split '{"mesh": "none", "dims": ["dp"]}'
}

# Prints what a call writes to standard error, without its result.
lines_of() {
    cadre call "$@" --no-reply --logs 2>&1 >/dev/null | sort
}

top_of() { # GROUP METHOD: what top counts while the method is called twice
    top_begin "$1" "$2" 2
    cadre call "$1" "$2" >/dev/null
    cadre call "$1" "$2" >/dev/null
    top_seen
}

metrics() {
    "$devcluster" exec -- curl --silent --show-error --max-time 60 \
        http://cadre-operator-metrics.cadre-system.svc:8080/metrics
}

test_watch() {
    check "a call without a reply prints nothing" is "" cadre call meshed add 1 --no-reply
    check "... and has run" eventually 10 is "[11, 22, 13, 24]" cadre call meshed get_value
    check "S0-10: equal lines of all ranks are one, with their numbers in front" eventually 10 is "[rank 0-3] hello" \
        lines_of watched say '"hello"'
    check "... others are not" \
        eventually 10 is "$(printf '[rank %d] I am %d\n' 0 0 1 1 2 2 3 3)" lines_of watched say '["I am", 1]'
    check "... of a rank on the other node" eventually 10 is "[rank 3] alone" lines_of watched say '"alone"' --rank 3
    check "the pods' logs have them as well" says "hello" kc logs --tail=-1 watched-2-0
    check "kubectl cadre top: the calls of an interval, and the rank that is late" \
        eventually 10 is "[2,0,3,2]" top_of watched step
    check "... of all groups" eventually 10 says "watched" cadre top --interval 100ms
    check "... of the only replica, which it says" \
        eventually 10 matches 'Calls through replica cadre-operator-.* \(the only one\)' \
        cadre top --interval 100ms
    check "metrics of calls by group and method" \
        says 'cadre_calls_total{namespace="default",group="watched",method="step",result="ok"} ' metrics
    check "a trace comes to the method" is 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 called watched \
        '{"method": "trace", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}'
}

suite_start e2e-calls-watch --nodes 2 --gpus 4
calls_install --set replicas=1 --set crds.install=false
calls_user caller >/dev/null
watched_module >/dev/null
export TOKEN; TOKEN=$(calls_token caller)
groups
test_modes
test_watch
suite_end
