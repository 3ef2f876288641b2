#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pools and groups of a program in Python, with a real API server on fake nodes. The program finds the operator by its
# kubeconfig, reserves PlacementGroups, asks where they are, restarts a group, and leaves nothing behind.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"

export POD_NAMESPACE=cadre-system
address=172.30.0.3
library=${CADRE_BUILD_DIR:-$suite_root/build/ci}/worker/host/libcadre.so

# Creates the Service of the operator, and the account that may call it. The API server forwards requests only to addresses
# of pods, so the operator's address gets a pod.
install_service() {
    kc create namespace cadre-system
    kc -n cadre-system create secret generic cadre-keys
    kc -n cadre-system create serviceaccount cadre-cli
    kc create clusterrolebinding cadre-cli --clusterrole=cluster-admin --serviceaccount=cadre-system:cadre-cli
    "$devcluster" exec -- ip address add "$address/16" dev br0 || return 1
    kc -n cadre-system apply -f - <<YAML
apiVersion: v1
kind: Service
metadata: {name: cadre-operator}
spec: {clusterIP: None, ports: [{name: calls, port: 9443}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: cadre-operator}
subsets:
- addresses: [{ip: $address, targetRef: {kind: Pod, namespace: cadre-system, name: operator}}]
  ports: [{name: calls, port: 9443}]
---
apiVersion: v1
kind: Pod
metadata: {name: operator, labels: {provider: test}}
spec: {nodeName: kwok-0000, containers: [{name: operator, image: none}]}
YAML
    kc -n cadre-system wait --for=jsonpath='{.status.phase}'=Running pod/operator --timeout=600s || return 1
    kc -n cadre-system patch pod operator --subresource=status --type merge --patch \
        "{\"status\": {\"podIP\": \"$address\", \"podIPs\": [{\"ip\": \"$address\"}]}}"
}

# python STEP: runs one step of the program. The library may be built with a sanitizer.
python() {
    "$devcluster" exec -- env "PYTHONPATH=$suite_root/sdk/python" "CADRE_CLIENT_LIBRARY=$library" ASAN_OPTIONS=detect_leaks=0 \
        "LD_PRELOAD=$(ldd "$library" | awk '/libasan/ { print $3 }')" python3 "$here/python_pools.py" "$1"
}

none_left() {
    is "" kc get wg,plg,pods -l '!provider' -o name
}

restarted_at() {
    kc get wg stays -o 'jsonpath={.spec.worker.restartedAt}'
}

suite_start itest-pools --nodes 0 --kwok 3 --gpus 4
install_service >"$tap_diag" 2>&1 || bail_out "the Service of the operator cannot be made"
operator_start op --leader-elect=false --listen "$address:9443"
check "a program reserves bundles, and knows where they are" \
    is "world 6 local [0, 1, 2, 3, 0, 1] nodes 2 same True True" python pool
check "... which are PlacementGroups that go with it" eventually 60 none_left
check "a group on a pool waits for its pods" matches "on mine-0\[0-3\]\+mine-1\[0-1\]: [0-9]+ of 6" python group
check "a name that is taken is refused" is "Exists" python taken
check "what is detached stays" is "found 2" python detached
check "... and a group of it is restarted" python restart
check "... by another text in its worker" matches '^20[0-9-]+T' restarted_at
check "... and is deleted" python remove
check "nothing is left" eventually 60 none_left
check "the operator ends with 0 and without a leak" operator_stop op
suite_end
