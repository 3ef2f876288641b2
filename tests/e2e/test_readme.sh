#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the README and docs/first-steps.md. make demo prints what the README shows, twice. Then every command of their console
# blocks runs on the demo's cluster, in the order of the page, and prints the lines of the page (ages and the width of columns
# may differ). The API server accepts their objects. make demo-stop ends the cluster.
#
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
devcluster=deploy/devcluster/devcluster
pages=(README.md docs/first-steps.md)
export CADRE_CLUSTER=readme-$$
export PATH=$PWD/build/demo/cli:$PATH # where the demo builds kubectl-cadre
work=$(mktemp -d)
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
tap_diag=$work/diag

if [[ $EUID -ne 0 ]]; then
    echo "1..0 # SKIP the demo's cluster needs root"
    exit 77
fi

cleanup() {
    "$devcluster" down >/dev/null 2>&1 || echo "# the cluster $CADRE_CLUSTER is left: devcluster down --name $CADRE_CLUSTER"
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# shows OUTPUT LINE: the output has the line. Blanks may be wider, and ages (2m, 1h5m) different.
shows() {
    local pattern
    pattern=$(sed -E 's/[][\.*^$+?(){}|]/\\&/g; s/\b[0-9]+[smhd]([0-9]+[smh])?\b/[0-9smhd]+/g; s/[[:space:]]+/[[:space:]]+/g' <<<"$2")
    grep -qE "^${pattern}[[:space:]]*\$" "$1" || {
        printf 'want: %s\ngot:\n' "$2"
        cat "$1"
        return 1
    }
}

# ---- the demo ----------------------------------------------------------------------------------------------------

pod_uids() { "$devcluster" kubectl get pods -l cadre.dev/group=rendezvous -o 'jsonpath={.items[*].metadata.uid}'; }

demo() { # OUTPUT
    local started=$SECONDS status=0
    make demo >"$1" 2>&1 || status=$?
    echo "# make demo took $((SECONDS - started)) s" >>"$work/times"
    [[ $status -eq 0 ]] || tail -n 40 "$1"
    return $status
}

test_demo() {
    local uids index
    check "make demo" demo "$work/first"
    if [[ $tap_failed -ne 0 ]]; then
        echo "Bail out! without the demo there is nothing to test"
        exit 1
    fi
    # shellcheck disable=SC2016
    check "it shows the commands that it runs" shows "$work/first" '$ kubectl get workergroups rendezvous'
    check "it shows the group, ready" shows "$work/first" "rendezvous Running 4 4 4 StrictPack 0 1s"
    for index in 0 1 2 3; do
        check "rank $index is placed on the same node" shows "$work/first" "rendezvous-$index-0 $index n1 Running"
        check "rank $index answers the roll-call" shows "$work/first" "  $index rendezvous-$index n1 0"
    done
    check "it says why the other group waits" grep -E \
        '^too-big +Infeasible .* needs 8 x 1 nvidia.com/gpu on one node, at most 4 fit on n1' "$work/first"
    check "a call with arguments for each rank reaches its rank" shows "$work/first" "[1, 2, 3, 4]"
    check "... with the same for all reaches all" shows "$work/first" "[11, 12, 13, 14]"
    check "a killed worker restarts the group" shows "$work/first" "accumulator Running 4 4 4 StrictPack 1 1s"
    for index in 0 1 2 3; do
        check "... in the same pods: $index" shows "$work/first" "accumulator-$index-0 1/1 Running 0 1s"
    done
    uids=$(pod_uids)
    check "make demo again" demo "$work/second"
    check "... leaves the ranks alone" test "$uids" = "$(pod_uids)"
    check "... and shows the same" shows "$work/second" "rendezvous Running 4 4 4 StrictPack 0 1s"
    cat "$work/times"
}

# ---- the pages ---------------------------------------------------------------------------------------------------

blocks() { awk -v fence="\`\`\`$2" '$0 == fence { on = 1; next } /^```/ { on = 0 } on' "$1"; } # PAGE LANGUAGE

run_shown() { # COMMAND OUTPUT
    "$devcluster" exec -- bash -c "$1" >"$2" 2>&1 || {
        cat "$2"
        return 1
    }
}

test_commands() { # PAGE
    local line command='' count=0
    while IFS= read -r line <&3; do
        case $line in
        "\$ "*)
            command=${line#"\$ "}
            count=$((count + 1))
            check "$1: $command" run_shown "$command" "$work/out"
            ;;
        *) check "$1: ... prints: ${line:0:60}" shows "$work/out" "$line" ;;
        esac
    done 3< <(blocks "$1" console)
    check "$1 has commands" test "$count" -gt 3
    commands=$((commands + count))
}

test_examples() { # PAGE
    awk '/^```yaml$/ { on = 1; print "---"; next } /^```/ { on = 0 } on' "$1" >"$work/example.yaml"
    check "the objects of $1 are accepted" "$devcluster" kubectl create --dry-run=server --validate=strict \
        -f "$work/example.yaml"
}

gone() { ! "$devcluster" status; }

test_demo
commands=0
for page in "${pages[@]}"; do test_examples "$page"; done
for page in "${pages[@]}"; do test_commands "$page"; done
check "the pages have commands" test "$commands" -gt 10
check "make demo-stop" make demo-stop
check "... ends the cluster" gone
tap_end
