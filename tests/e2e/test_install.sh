#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The images and the chart: the suite builds both images, installs the operator into a cluster of two nodes, and runs the
# groups of examples/. test_chart.sh tests what the chart renders, and which rights it gives.
#
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154
set -euo pipefail

# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/../lib/suite.sh"

chart=$suite_root/charts/cadre
image=localhost/cadre-operator
max_image_bytes=34000000
our_image=(--set "image.repository=$image" --set image.tag=dev)

hl() {
    "$devcluster" helm "$@"
}

# nodes_of GROUP: the number of nodes that its pods are on.
nodes_of() {
    kc get pods -l "cadre.dev/group=$1" -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l
}

image_is_small() {
    local bytes
    bytes=$(stat -c %s "$operator_tar")
    echo "$bytes bytes"
    [ "$bytes" -le "$max_image_bytes" ]
}

# unpack ARCHIVE FOLDER: writes the files that a container of the image sees into the folder.
unpack() {
    local layer
    mkdir -p "$2/dev"
    for layer in $(tar -xOf "$1" manifest.json | jq -r '.[0].Layers[]'); do
        tar -xOf "$1" "$layer" | tar -xC "$2"
    done
    [[ -e $2/dev/urandom ]] || mknod -m 666 "$2/dev/urandom" c 1 9
}

# The operator fails only after its start without the plugin. So a small program of the same library asks for it.
plugin_loads() {
    cat >"$suite_dir/probe.c" <<'C'
#include <libwebsockets.h>

int main(void)
{
    const struct lws_context_creation_info info = {.options = LWS_SERVER_OPTION_LIBUV, .port = CONTEXT_PORT_NO_LISTEN};
    return !lws_create_context(&info);
}
C
    gcc -o "$suite_dir/operator-image/probe" "$suite_dir/probe.c" -lwebsockets && chroot "$suite_dir/operator-image" /probe
}

runs_anywhere() { # PROGRAM
    mkdir -p "$suite_dir/empty" && cp "$1" "$suite_dir/empty/" && chroot "$suite_dir/empty" "/${1##*/}" --version
}

test_images() {
    unpack "$operator_tar" "$suite_dir/operator-image"
    unpack "$example_tar" "$suite_dir/example-image"
    check "libwebsockets finds its libuv plugin in the operator's image" plugin_loads
    check "the agent in it needs nothing of the image it is copied to" \
        runs_anywhere "$suite_dir/operator-image/usr/bin/cadre-agent"
    check "the example's image has modules that its cadre-worker runs" says '"class":"Accumulator"' \
        chroot "$suite_dir/example-image" cadre-worker --module /modules/accumulator.so --describe
    check "... and, as the worker's image has, the header to build others" \
        test -s "$suite_dir/example-image/usr/include/cadre/worker.h"
    check "the operator's image is at most $((max_image_bytes / 1000000)) MB" image_is_small
    check "it runs as a user that is not root" equals 65532:65532 \
        "$(tar -xOf "$operator_tar" "$(tar -xOf "$operator_tar" manifest.json | jq -r '.[0].Config')" | jq -r .config.User)"
}

# ---- the chart ---------------------------------------------------------------------------------------------------

test_helm() {
    kc create namespace cadre-system >/dev/null
    kc label namespace cadre-system pod-security.kubernetes.io/enforce=restricted >/dev/null
    check "helm install --wait, two replicas in a namespace of Pod Security restricted" \
        hl install cadre "$chart" -n cadre-system "${our_image[@]}" --wait --timeout 600s
    check "the replicas are on different nodes" equals 2 "$(kc -n cadre-system get pods -o wide --no-headers \
        -l app.kubernetes.io/component=operator | awk '{print $7}' | sort -u | wc -l)"
    check "the operator has made its keys" eventually 10 keys_are_made
    check "the proxy is who its CA says" says "BEGIN CERTIFICATE" proxy_curl /v1/ca
    check "helm test calls four workers" \
        says "[1, 2, 3, 4]" hl test cadre -n cadre-system --logs --hide-notes --timeout 600s
    check "... and leaves no group" eventually 20 is "" kc -n cadre-system get wg -o name
    check "one of them leads" eventually 30 says cadre-operator- kc -n cadre-system get lease cadre-operator
    check "the Service of the metrics answers" says "# TYPE " "$devcluster" exec -- \
        curl --silent --show-error --max-time 60 http://cadre-operator-metrics.cadre-system.svc:8080/metrics
}

test_groups() {
    check "kubectl apply -f examples/workergroup.yaml" kc apply -f "$suite_root/examples/workergroup.yaml"
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/rendezvous
    check "its ranks are on one node" equals 1 "$(nodes_of rendezvous)"
    check "its ranks find each other" eventually 30 says "roll-call: 4 of 4 ranks" \
        kc logs --tail=-1 -l cadre.dev/group=rendezvous,cadre.dev/index=0
    check "kubectl apply -f examples/spread.yaml" kc apply -f "$suite_root/examples/spread.yaml"
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/spread
    check "its ranks are on both nodes" equals 2 "$(nodes_of spread)"
    check "its ranks find each other" eventually 30 says "roll-call: 4 of 4 ranks" \
        kc logs --tail=-1 -l cadre.dev/group=spread,cadre.dev/index=0
    check "kubectl apply -f examples/too-big.yaml" kc apply -f "$suite_root/examples/too-big.yaml"
    check "the group says why it cannot run" eventually 30 says Infeasible kc get wg too-big
    check "... and has no pods" equals "" "$(kc get pods -l cadre.dev/group=too-big -o name)"
}

# The keys exist. Writes the CA of the Secret to $suite_dir/ca.crt.
keys_are_made() {
    kc -n cadre-system get secret cadre-keys -o 'jsonpath={.data.ca\.crt}' | base64 -d >"$suite_dir/ca.crt"
    [[ -s $suite_dir/ca.crt ]]
}

proxy_curl() { # PATH CURL-ARGUMENT...
    local path=$1
    shift
    "$devcluster" exec -- curl --silent --show-error --fail-with-body --max-time 600 --cacert "$suite_dir/ca.crt" "$@" \
        "https://cadre-operator.cadre-system.svc:9443$path"
}

# adds PARAMS: calls Accumulator.add() as an account that may call, and prints the answer.
adds() {
    local token
    token=$(kc -n cadre-system create token cadre-cli --audience=cadre) || return 1
    proxy_curl /v1/namespaces/default/workergroups/accumulator -H "Content-Type: application/json" -H "Authorization: Bearer $token" \
        -d '{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"method":"add",'"$1"'}}'
}

test_agent_groups() {
    kc delete wg/rendezvous --cascade=foreground >/dev/null # when it returns, the names are free
    check "kubectl apply -f examples/pairs.yaml" kc apply -f "$suite_root/examples/pairs.yaml"
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/pairs
    check "its ranks, two a pod, find each other" eventually 30 says "roll-call: 4 of 4 ranks" \
        kc logs --tail=-1 -l cadre.dev/group=pairs,cadre.dev/index=0
    kc delete wg/pairs >/dev/null
    kc apply -f "$suite_root/examples/workergroup.yaml" >/dev/null
    check "kubectl apply -f examples/accumulator.yaml" kc apply -f "$suite_root/examples/accumulator.yaml"
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=600s wg/accumulator
    check "a call has arguments for each rank" says '"result":[1,2,3,4]' adds '"perRank":[1,1,1,1]'
    check "... or the same for all" says '"result":[11,12,13,14]' adds '"args":[10]'
    check "a call without a token is refused" says "a token is needed" \
        proxy_curl /v1/namespaces/default/workergroups/accumulator -d '{}'
    kc wait --for=condition=Ready --timeout=600s wg/rendezvous >/dev/null
}

test_uninstall() {
    check "helm uninstall" hl uninstall cadre -n cadre-system --wait --timeout 600s
    check "a running group goes on" says "rank 0: go" kc logs --tail=-1 -l cadre.dev/group=rendezvous,cadre.dev/index=0
    check "... and is still there" equals "Running Running Running Running" \
        "$(kc get pods -l cadre.dev/group=rendezvous -o 'jsonpath={.items[*].status.phase}')"
}

# ---- install.yaml, and one namespace only --------------------------------------------------------------------------

new_ranks_run() {
    equals "$(printf 'rendezvous-%s-1 Running\n' 0 1 2 3)" "$(kc get pods -l cadre.dev/group=rendezvous \
        -o 'jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}')"
}

test_install_yaml() {
    sed -E "s|cadre/operator:[^\"]*|$image:dev|" "$suite_root/deploy/install.yaml" |
        kc apply -f - >/dev/null 2>&1 || true
    check "kubectl apply -f deploy/install.yaml brings up the operator" \
        kc -n cadre-system rollout status deployment/cadre-operator --timeout=600s
    check "... which has the keys of the one before, so that workers dial in again, with the numbers they had" \
        eventually 60 says '"result":[21,22,23,24]' adds '"args":[10]'
    kc delete pod rendezvous-1-0 >/dev/null
    check "... which takes care of groups that were there: a lost rank restarts them" eventually 30 new_ranks_run
    kc delete wg/spread >/dev/null
    kc apply -f "$suite_root/examples/spread.yaml" >/dev/null
    check "... and of new ones" kc wait --for=condition=Ready --timeout=600s wg/spread
    kc delete -f "$suite_root/deploy/install.yaml" --timeout=900s >/dev/null
}

test_namespaced() {
    kc create namespace team-a >/dev/null
    check "helm install for one namespace" hl install team-a "$chart" -n team-a "${our_image[@]}" \
        --set watchNamespace=team-a --set rbac.userRoles=false --wait --timeout 600s
    check "helm test" hl test team-a -n team-a --logs --hide-notes --timeout 600s
    kc apply -n default -f "$suite_root/examples/spread.yaml" >/dev/null
    kc apply -n team-a -f "$suite_root/examples/spread.yaml" >/dev/null
    check "a group of that namespace becomes Ready" kc -n team-a wait --for=condition=Ready --timeout=600s wg/spread
    check "a group of another one is not its business" equals "" "$(kc -n default get wg spread -o 'jsonpath={.status}')"
    check "the operator has logged no error" equals "" "$(kc -n team-a logs --tail=-1 \
        -l app.kubernetes.io/component=operator | grep '"level":"error"' || true)"
}

suite_cluster install --nodes 2 --gpus 4
export HELM_CACHE_HOME=$suite_dir/helm HELM_CONFIG_HOME=$suite_dir/helm HELM_DATA_HOME=$suite_dir/helm
suite_images operator example
operator_tar=$(suite_image operator)
example_tar=$(suite_image example)
test_images
test_helm
test_groups
test_agent_groups
test_uninstall
test_install_yaml
test_namespaced
suite_end
