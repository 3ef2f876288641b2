#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to four placed ranks on a real Kubernetes, a group that cannot be placed, and calls to four workers. It
# kills one of the workers.
#   demo.sh          starts or uses a cluster (deploy/devcluster), installs Cadre, shows the groups; leaves it up
#   demo.sh stop     takes all of it away again
#   demo.sh shell    a shell in which kubectl, kubectl cadre and helm work on that cluster
#
# CADRE_CLUSTER=NAME   a cluster of our own of that name; else your kubeconfig's if it answers, kind's, or our own
# CADRE_IMAGES=PREFIX  use PREFIX/cadre-operator:dev and PREFIX/cadre-example:dev, which the cluster's nodes can pull,
#                      instead of building both and putting them onto the nodes
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
devcluster=deploy/devcluster/devcluster
namespace=cadre-system
images=${CADRE_IMAGES:-localhost}
tools=build/demo
export PATH=$PWD/$tools/cli:$PATH # kubectl finds "kubectl cadre" there

say() { printf '\n==> [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

die() {
    printf '\ndemo: error: %s\n' "$*" >&2
    exit 1
}

kubectl() { "$devcluster" kubectl "$@"; }
helm() { "$devcluster" helm "$@"; }

# show CMD...: prints the command as one would type it, then runs it.
show() {
    local word line=
    for word in "$@"; do
        case $word in
        --*=*[!A-Za-z0-9_./:=,@%+-]*) line+=" ${word%%=*}='${word#*=}'" ;;
        *[!A-Za-z0-9_./:=,@%+-]*) line+=" '$word'" ;;
        *) line+=" $word" ;;
        esac
    done
    printf '\n$%s\n' "$line"
    "$@"
}

# is_foreign [KIND]: the cluster is not one of our own, but a kubeconfig's or kind's.
is_foreign() { [[ $("$devcluster" status 2>/dev/null) == *" stands for ${1:-}"* ]]; }

# Prints details that help to find the cause of a failure.
explain() {
    {
        kubectl get wg -o wide
        kubectl get pods -o wide
        kubectl logs -l cadre.dev/group=accumulator --prefix --tail=5
        echo "The operator says:"
        kubectl -n $namespace logs -l app.kubernetes.io/component=operator --prefix --tail=20
    } >&2 || true
}

build_cli() {
    say "building kubectl-cadre, with which kubectl calls workers"
    { deploy/deps.sh build && cmake --preset release -B $tools -DCADRE_TESTS=OFF &&
        cmake --build $tools --target kubectl-cadre; } >"$output" 2>&1 || {
        tail -n 30 "$output" >&2
        die "kubectl-cadre cannot be built"
    }
}

build_images() {
    local archives
    if [[ $images != localhost ]]; then
        say "images: $images/cadre-operator:dev and $images/cadre-example:dev, as you said"
        build=none
        return
    fi
    ! is_foreign kubeconfig ||
        die "the cluster of your kubeconfig can only pull images: build both (deploy/images.sh shows how), push them, then
  make demo CADRE_IMAGES=registry.example/you
or have a cluster of its own for the demo: make demo CADRE_USE=own"
    say "building the images of the operator and of the example (minutes the first time)"
    mapfile -t archives < <(deploy/images.sh operator example)
    [[ ${#archives[@]} -eq 2 ]] || die "the images cannot be built"
    build=$(tar -xOf "${archives[0]}" manifest.json | sha256sum | cut -c1-12)
    say "putting the images onto the nodes"
    "$devcluster" load "${archives[@]}"
}

# The label with the image's digest makes helm roll the operator out again if only the image behind the tag has changed.
install_cadre() {
    say "installing the chart charts/cadre into namespace $namespace"
    show helm upgrade --install cadre charts/cadre --namespace $namespace --create-namespace --wait --timeout 10m \
        --set image.repository="$images/cadre-operator",image.tag=dev \
        --set-string "commonLabels.cadre\.dev/build=$build" >"$output" 2>&1 || {
        cat "$output" >&2
        explain
        die "the chart cannot be installed"
    }
    sed '/^[[:space:]]*$/d; /^NOTES:/,$d; /^Cadre /,$d; s/^\$/\n$/' "$output"
}

apply() { # FILE
    if [[ $images == localhost ]]; then
        show kubectl apply -f "$1"
    else
        sed "s,localhost/cadre-example:,$images/cadre-example:," "$1" | show kubectl apply -f -
    fi
}

# Every rank is up when the group is Ready; to join each other takes them a moment more.
wait_for_roll_call() {
    local end=$((SECONDS + 600))
    until kubectl logs -l "$rank0" --tail=-1 2>/dev/null | grep -q '^roll-call'; do
        [[ $SECONDS -lt $end ]] || { explain && die "rank 0 does not print its roll-call"; }
        sleep 0.3
    done
}

show_group_that_fits() {
    say "a group of four ranks with one GPU each, all on one node"
    apply examples/workergroup.yaml
    show kubectl wait --for=condition=Ready wg/rendezvous --timeout=600s || { explain && die "it is not Ready"; }
    show kubectl get workergroups rendezvous
    show kubectl get pods -l cadre.dev/group=rendezvous \
        -o 'custom-columns=POD:.metadata.name,RANK:.spec.containers[0].env[?(@.name=="RANK")].value,NODE:.spec.nodeName,STATUS:.status.phase'
    say "the ranks have found each other: what rank 0 says"
    wait_for_roll_call
    show kubectl logs -l "$rank0" --tail=-1
}

show_group_that_does_not() {
    say "a group that cannot fit: eight GPUs on one node"
    apply examples/too-big.yaml
    show kubectl wait --for='jsonpath={.status.conditions[?(@.type=="Ready")].reason}=Infeasible' \
        wg/too-big --timeout=600s || is_foreign || { explain && die "the group does not say that it cannot fit"; }
    show kubectl get wg too-big -o wide
}

show_calls() {
    say "four workers that take calls: each has a number, which begins as its rank"
    if [[ -n $(kubectl get wg accumulator --ignore-not-found -o name) ]]; then # of the last time, with other numbers
        show kubectl delete wg accumulator
        kubectl wait --for=delete pod -l cadre.dev/group=accumulator --timeout=600s >/dev/null
    fi
    apply examples/accumulator.yaml
    show kubectl wait --for=condition=Ready wg/accumulator --timeout=600s || { explain && die "it is not Ready"; }
    call '[1,2,3,4]' add --per-rank '[1,1,1,1]'
    call '[11,12,13,14]' add 10
}

# call WANT METHOD ARGUMENTS...
call() {
    local want=$1
    shift
    show kubectl cadre call accumulator "$@" | tee "$output" || { explain && die "the call failed"; }
    [[ $(tail -n 1 "$output" | tr -d ' ') == "$want" ]] || die "the workers should have answered $want"
}

show_restart() {
    local workers=cadre.dev/group=accumulator pod
    say "one worker dies: all are started again, in the same pods"
    pod=$(kubectl get pods -l "$workers,cadre.dev/index=2" -o 'jsonpath={.items[0].metadata.name}')
    show kubectl exec "$pod" -c worker -- killall -KILL cadre-worker || { explain && die "the worker cannot be killed"; }
    show kubectl wait --for=jsonpath='{.status.restarts}'=1 wg/accumulator --timeout=600s &&
        show kubectl wait --for=condition=Ready wg/accumulator --timeout=600s ||
        { explain && die "the group does not come back"; }
    show kubectl get wg accumulator
    show kubectl get pods -l $workers
    call '[1,2,3,4]' add 1
}

demo() {
    output=$(mktemp)
    trap 'rm -f "$output"' EXIT
    rank0=cadre.dev/group=rendezvous,cadre.dev/index=0
    say "a cluster: 2 nodes with 4 GPUs each (fake ones), unless there is one already"
    "$devcluster" ensure --nodes 2 --gpus 4
    build_images
    build_cli
    install_cadre
    show_group_that_fits
    show_group_that_does_not
    show_calls
    show_restart
    say "done. The cluster stays up."
    cat <<'END'

To play on:
  make shell                                            opens a shell in which kubectl works on this cluster
  kubectl get wg -w                                     watches the groups
  kubectl scale wg/rendezvous --replicas=2              a new attempt with two ranks
  kubectl delete pod -l cadre.dev/group=rendezvous,cadre.dev/index=1
                                                        one rank dies, the whole group starts again
  kubectl describe wg too-big                           conditions and events
  kubectl cadre call accumulator add 10                 calls a method on four workers
  kubectl cadre info accumulator                        which workers are connected, and what they can
To stop it all:
  make demo-stop
END
}

stop() {
    if is_foreign; then
        kubectl delete wg rendezvous too-big accumulator --ignore-not-found
        helm uninstall cadre --namespace $namespace --ignore-not-found --wait
    fi
    "$devcluster" down
}

case ${1:-} in
"") demo ;;
stop) stop ;;
shell) exec "$devcluster" exec -- env PS1='cadre$ ' bash --norc ;;
*)
    echo "usage: demo.sh [stop|shell]" >&2
    exit 2
    ;;
esac
