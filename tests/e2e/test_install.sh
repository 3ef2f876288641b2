#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The images and the chart, for real: both images are built, the operator is installed into a cluster of two nodes, and
# the groups of examples/ run. What the chart renders and which rights it gives is in test_chart.sh.
#
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
devcluster=$root/deploy/devcluster/devcluster
chart=$root/charts/cadre
image=localhost/cadre-operator
max_image_bytes=30000000
export CADRE_CLUSTER=install-$$ CADRE_USE=own
work=$(mktemp -d)
diag=$work/diag
export HELM_CACHE_HOME=$work/helm HELM_CONFIG_HOME=$work/helm HELM_DATA_HOME=$work/helm
our_image=(--set "image.repository=$image" --set image.tag=dev)

passed=0
failed=0

# check NAME COMMAND...: the command succeeds; what it printed explains a failure.
check() {
    local name=$1 number=$((passed + failed + 1))
    shift
    if "$@" >"$diag" 2>&1; then
        passed=$((passed + 1))
        echo "ok $number - $name"
    else
        failed=$((failed + 1))
        echo "not ok $number - $name"
        sed 's/^/# /' "$diag"
    fi
}

equals() {
    [ "$1" = "$2" ] || { printf 'want: %s\ngot:  %s\n' "$1" "$2"; return 1; }
}

kc() {
    "$devcluster" kubectl "$@"
}

hl() {
    "$devcluster" helm "$@"
}

# eventually COMMAND...: for 30 s; what it printed last explains a failure.
eventually() {
    local end=$((SECONDS + 30))
    until "$@" >"$work/eventually" 2>&1; do
        [ "$SECONDS" -lt "$end" ] || { cat "$work/eventually"; return 1; }
        sleep 0.2
    done
}

# says TEXT COMMAND...: its output contains the text.
says() {
    local text=$1 out
    shift
    out=$("$@" 2>&1) || true
    case $out in *"$text"*) ;; *) printf 'want: ...%s...\ngot:  %s\n' "$text" "$out"; return 1 ;; esac
}

cleanup() {
    local rc=$?
    trap - EXIT INT TERM
    "$devcluster" down >/dev/null 2>&1 || echo "# dev cluster $CADRE_CLUSTER is left: devcluster down --name $CADRE_CLUSTER"
    rm -rf "$work"
    exit "$rc"
}

bail_out() {
    echo "Bail out! $1"
    sed 's/^/# /' "$diag"
    exit 1
}

start() {
    if [ "$(id -u)" != 0 ]; then
        echo "1..0 # SKIP test_install: a dev cluster needs root"
        rm -rf "$work"
        exit 77
    fi
    trap cleanup EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    operator_tar=$("$root/deploy/images.sh" operator 2>"$diag") || bail_out "the image of the operator cannot be built"
    example_tar=$("$root/deploy/images.sh" example 2>"$diag") || bail_out "the image of the examples cannot be built"
    "$devcluster" up --nodes 2 --gpus 4 >"$diag" 2>&1 || bail_out "the dev cluster does not start"
    "$devcluster" load "$operator_tar" "$example_tar" >"$diag" 2>&1 || bail_out "the images cannot be loaded"
}

# nodes_of GROUP: on how many nodes its pods are.
nodes_of() {
    kc get pods -l "cadre.dev/group=$1" -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l
}

image_is_small() {
    local bytes
    bytes=$(stat -c %s "$operator_tar")
    echo "$bytes bytes"
    [ "$bytes" -le "$max_image_bytes" ]
}

test_images() {
    check "the operator's image is at most $((max_image_bytes / 1000000)) MB" image_is_small
    check "it runs as a user that is not root" equals 65532:65532 \
        "$(tar -xOf "$operator_tar" "$(tar -xOf "$operator_tar" manifest.json | jq -r '.[0].Config')" | jq -r .config.User)"
}

# ---- the chart ---------------------------------------------------------------------------------------------------

test_helm() {
    kc create namespace cadre-system >/dev/null
    kc label namespace cadre-system pod-security.kubernetes.io/enforce=restricted >/dev/null
    check "helm install --wait, two replicas in a namespace of Pod Security restricted" \
        hl install cadre "$chart" -n cadre-system "${our_image[@]}" --set replicas=2 --wait --timeout 60s
    check "the replicas are on different nodes" equals 2 "$(kc -n cadre-system get pods -o wide --no-headers \
        -l app.kubernetes.io/component=operator | awk '{print $7}' | sort -u | wc -l)"
    check "helm test" hl test cadre -n cadre-system --logs --hide-notes
    check "one of them leads" says cadre-operator- kc -n cadre-system get lease cadre-operator
    check "the Service of the metrics answers" says "# TYPE " "$devcluster" exec -- \
        curl --silent --show-error --max-time 5 http://cadre-operator-metrics.cadre-system.svc:8080/metrics
}

test_groups() {
    check "kubectl apply -f examples/workergroup.yaml" kc apply -f "$root/examples/workergroup.yaml"
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=60s wg/rendezvous
    check "its ranks are on one node" equals 1 "$(nodes_of rendezvous)"
    check "its ranks find each other" eventually says "roll-call: 4 of 4 ranks" \
        kc logs --tail=-1 -l cadre.dev/group=rendezvous,cadre.dev/index=0
    check "kubectl apply -f examples/spread.yaml" kc apply -f "$root/examples/spread.yaml"
    check "the group becomes Ready" kc wait --for=condition=Ready --timeout=60s wg/spread
    check "its ranks are on both nodes" equals 2 "$(nodes_of spread)"
    check "its ranks find each other" eventually says "roll-call: 4 of 4 ranks" \
        kc logs --tail=-1 -l cadre.dev/group=spread,cadre.dev/index=0
    check "kubectl apply -f examples/too-big.yaml" kc apply -f "$root/examples/too-big.yaml"
    check "the group says why it cannot run" eventually says Infeasible kc get wg too-big
    check "... and has no pods" equals "" "$(kc get pods -l cadre.dev/group=too-big -o name)"
}

test_uninstall() {
    check "helm uninstall" hl uninstall cadre -n cadre-system --wait
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
    sed -E "s|image: \"cadre/operator:[^\"]*\"|image: $image:dev|" "$root/deploy/install.yaml" |
        kc apply -f - >/dev/null 2>&1 || true
    check "kubectl apply -f deploy/install.yaml brings up the operator" \
        kc -n cadre-system rollout status deployment/cadre-operator --timeout=60s
    kc delete pod rendezvous-1-0 >/dev/null
    check "... which takes care of groups that were there: a lost rank restarts them" eventually new_ranks_run
    kc delete wg/spread >/dev/null
    kc apply -f "$root/examples/spread.yaml" >/dev/null
    check "... and of new ones" kc wait --for=condition=Ready --timeout=60s wg/spread
    kc delete -f "$root/deploy/install.yaml" --timeout=60s >/dev/null
}

test_namespaced() {
    kc create namespace team-a >/dev/null
    check "helm install for one namespace" hl install team-a "$chart" -n team-a "${our_image[@]}" \
        --set watchNamespace=team-a --set rbac.userRoles=false --wait --timeout 60s
    check "helm test" hl test team-a -n team-a --logs --hide-notes
    kc apply -n default -f "$root/examples/spread.yaml" >/dev/null
    kc apply -n team-a -f "$root/examples/spread.yaml" >/dev/null
    check "a group of that namespace becomes Ready" kc -n team-a wait --for=condition=Ready --timeout=60s wg/spread
    check "a group of another one is not its business" equals "" "$(kc -n default get wg spread -o 'jsonpath={.status}')"
    check "the operator has logged no error" equals "" \
        "$(kc -n team-a logs deployment/team-a-cadre-operator | grep '"level":"error"' || true)"
}

start
test_images
test_helm
test_groups
test_uninstall
test_install_yaml
test_namespaced
echo "1..$((passed + failed))"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
