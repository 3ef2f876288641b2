#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Secret with the operator's keys, with a real API server and the rights of the chart. The operator restores missing keys,
# leaves unusable keys alone, and uses keys that somebody else has written, with a message.
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.
# shellcheck disable=SC2154
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=/dev/null
. "$here/../lib/suite.sh"
# shellcheck source=/dev/null
. "$here/../lib/operator.sh"
# shellcheck source=/dev/null
. "$here/../lib/group.sh"

declare -A calls_port=([a]=19443 [b]=19444)
export POD_NAMESPACE=cadre-system

# Creates the ServiceAccount of the chart with its roles, without the Secret, and writes a kubeconfig for it.
install_account() {
    local config pki
    kc create namespace cadre-system
    "$devcluster" helm template cadre "$suite_root/charts/cadre" --namespace cadre-system --kube-version 1.30.0 \
        --set crds.install=false --show-only templates/serviceaccount.yaml --show-only templates/rbac.yaml |
        kc -n cadre-system apply -f - || return 1
    config=$("$devcluster" exec -- printenv KUBECONFIG)
    pki=$(dirname "$config")/pki
    cat >"$suite_dir/account.conf" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://172.30.0.1:6443", certificate-authority: "$pki/ca.crt"}}]
users: [{name: u, user: {token: "$(kc -n cadre-system create token cadre-operator --duration 2h)"}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: cadre-system}}]
current-context: x
YAML
}

replica_start() { # NAME
    POD_NAME=$1 operator_start "$1" --kubeconfig "$suite_dir/account.conf" --listen "127.0.0.1:${calls_port[$1]}"
}

ca_of() { # NAME: the CA that this replica tells clients to trust
    inside curl --silent --show-error --insecure --fail --max-time 60 "https://127.0.0.1:${calls_port[$1]}/v1/ca"
}

secret_data() {
    kc -n cadre-system get secret cadre-keys -o json | jq -cS .data
}

secret_whole() {
    [[ $(secret_data | jq -r 'keys | join(" ")') == "ca.crt ca.key install.key tls.crt tls.key" ]]
}

secret_change() { # JSON-PATCH
    kc -n cadre-system patch secret cadre-keys --type json -p "$1" >/dev/null
}

# serves NAME: the replica uses the keys of the Secret.
serves() {
    equals "$(secret_data | jq -r '."ca.crt"' | base64 -d)" "$(ca_of "$1")"
}

# says_once NAME TEXT SINCE: its log contains the text once for each minute that has begun since $SECONDS was SINCE.
says_once() {
    local n
    n=$(grep -cF "$2" "$suite_dir/operator-$1.log") || true
    echo "$n times in $((SECONDS - $3)) s"
    [[ $n -ge 1 && $n -le $((1 + (SECONDS - $3) / 60)) ]]
}

test_made() {
    check "an operator makes the Secret that is not there" replica_start a
    check "... with all keys" eventually 20 secret_whole
    check "... which it serves" eventually 20 serves a
    check "... and says so" says "the Secret cadre-system/cadre-keys had no keys: the operator made new keys" operator_log a
    kept=$(secret_data)
}

test_gone() {
    kc -n cadre-system annotate secret cadre-keys meta.helm.sh/release-name=cadre >/dev/null
    kc -n cadre-system label secret cadre-keys app.kubernetes.io/managed-by=Helm >/dev/null
    secret_change '[{"op": "remove", "path": "/data/install.key"}]'
    check "an entry that is removed comes back" eventually 20 is "$kept" secret_data # the annotations are read by then
    kc -n cadre-system delete secret cadre-keys >/dev/null
    check "a Secret that is deleted comes back with the keys in use" eventually 20 is "$kept" secret_data
    check "... and with what Helm knows it by" is "Helm cadre" kc -n cadre-system get secret cadre-keys \
        -o 'jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by} {.metadata.annotations.meta\.helm\.sh/release-name}'
    check "... which is said" eventually 10 says "somebody deleted the Secret cadre-system/cadre-keys: it is back" operator_log a
    secret_change '[{"op": "remove", "path": "/data/install.key"}, {"op": "remove", "path": "/data/ca.key"}]'
    check "entries that are removed come back" eventually 20 is "$kept" secret_data
    secret_change '[{"op": "remove", "path": "/data"}]'
    check "... all of them, too" eventually 20 is "$kept" secret_data
    check "the operator has used the same keys all the time" is 'cadre_keys_changed_total 0' metric_of a
}

metric_of() { # NAME: how often its keys have changed
    operator_http "$1" /metrics | grep '^cadre_keys_changed_total' | tr -d '{}'
}

# The operator gets SIGTERM right after the Secret was deleted.
test_end() {
    local i
    for i in 1 2 3; do
        kc -n cadre-system delete secret cadre-keys >/dev/null
        check "deleted, then the operator restarted at once ($i): it ends" operator_stop a
        check "... and has put the keys back before" is "$kept" secret_data
        replica_start a
        check "... which the next one uses" eventually 20 serves a
    done
}

# A replica that starts without a Secret lets the replica restore it that remembers the keys.
test_two() {
    group_apply trusting '.spec.replicas = 1' 'del(.spec.template.spec.containers[0].resources.limits)' >/dev/null
    check "a group has a pod" eventually 30 says trusting kc get pods -o name
    kc -n cadre-system delete secret cadre-keys >/dev/null
    check "a second replica starts while the Secret is away" replica_start b
    check "the keys of the first come back" eventually 20 is "$kept" secret_data
    check "... and are the second's" eventually 20 serves b
    kc -n cadre-system delete secret cadre-keys >/dev/null
    check "with two replicas it comes back as well" eventually 20 is "$kept" secret_data
}

test_unusable() {
    local what
    for what in install.key tls.crt ca.crt; do
        secret_change "[{\"op\": \"replace\", \"path\": \"/data/$what\", \"value\": \"eA==\"}]"
        [[ $what == tls.crt ]] || check "$what that cannot be used is said" eventually 20 says "the Secret cadre-system/cadre-keys: $what" operator_log a
        check "... and does not take the place of the one in use" is "$(jq -r '."ca.crt"' <<<"$kept" | base64 -d)" ca_of a
        secret_change "[{\"op\": \"remove\", \"path\": \"/data/$what\"}]"
        check "... which is back when it is removed" eventually 20 kept_but_leaf
    done
}

# The keys are the same, apart from the certificate, which the operator creates again if it is broken.
kept_but_leaf() {
    equals "$(jq -c 'del(."tls.crt", ."tls.key")' <<<"$kept")" "$(secret_data | jq -c 'del(."tls.crt", ."tls.key")')" && secret_whole
}

test_others() {
    local before
    before=$(secret_data)
    kc -n cadre-system get secret cadre-keys -o json | jq --arg key "$(head -c 32 /dev/urandom | base64 -w0)" \
        '.data."install.key" = $key' | kc replace -f - >/dev/null
    check "an install key of somebody else is used, and counted" eventually 20 is 'cadre_keys_changed_total 1' metric_of a
    check "... and said" says "the keys in the Secret have changed" operator_log a
    check "... by the other replica, too" eventually 20 is 'cadre_keys_changed_total 1' metric_of b
    kc -n cadre-system patch secret cadre-keys --type merge -p "{\"data\": $before}" >/dev/null
    check "the keys of before are used when they are back" eventually 20 is 'cadre_keys_changed_total 2' metric_of a
}

test_rights() {
    local began=$SECONDS
    kept=$(secret_data)
    kc -n cadre-system patch role cadre-operator-keys --type json \
        -p '[{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "watch", "patch"]}]' >/dev/null
    kc -n cadre-system delete secret cadre-keys >/dev/null
    check "who may not create the Secret says what is missing" eventually 20 says \
        "may not create the Secret cadre-system/cadre-keys, and continues with the keys that it remembers: its Role there needs get, list, watch, patch and create" \
        operator_log a
    check "... and goes on" is "$(jq -r '."ca.crt"' <<<"$kept" | base64 -d)" ca_of a
    check "... to its end, which it comes to" operator_stop b
    check "... as does --check" says "FAIL  the Secret with the keys can be created again" check_rights
    kc -n cadre-system create secret generic cadre-keys >/dev/null
    check "... and fills the one that the administrator creates" eventually 20 is "$kept" secret_data
    check "... after having said it once" says_once a "may not create the Secret" "$began"
    kc -n cadre-system patch role cadre-operator-keys --type json \
        -p '[{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "watch", "patch", "create"]}]' >/dev/null
    check "with the right --check passes" eventually 20 check_rights
}

check_rights() {
    "$devcluster" exec -- "$operator_program" --check --http-address 127.0.0.1:18999 --kubeconfig "$suite_dir/account.conf"
}

# No replica remembers the keys. The operator creates new ones, but only after a wait and with a message.
test_lost() {
    operator_kill a
    kc -n cadre-system delete secret cadre-keys >/dev/null
    check "all operators and the Secret lost: one starts" replica_start a
    check "... says what it waits for" eventually 20 says "pods may trust former keys" operator_log a
    check "... and makes new keys" eventually 40 secret_whole
    check "... which are other ones" test "$kept" != "$(secret_data)"
    check "it ends" operator_stop a
}

# An operator takes calls only when it knows all groups. Else it would answer that there is no such group.
test_early() {
    kc delete crd placementgroups.cadre.dev >/dev/null
    POD_NAME=a operator_launch a --kubeconfig "$suite_dir/account.conf" --listen "127.0.0.1:${calls_port[a]}"
    check "an operator that cannot list all objects yet" eventually 40 watch_failed_again a
    check "... takes no calls, though it has keys" exits 7 ca_of a
    kc apply -f "$suite_root/crds/" >/dev/null
    check "... before it knows what there is" eventually 60 serves a
    check "... and ends" operator_stop a
}

watch_failed_again() { # NAME
    [[ $(tail -c "+${operator_begun[$1]}" "$suite_dir/operator-$1.log" | grep -c "a watch failed") -ge 3 ]]
}

suite_start keys --nodes 0 --kwok 1
install_account >"$tap_diag" 2>&1 || bail_out "the chart's account cannot be made"
test_made
test_gone
test_end
test_two
test_unusable
test_others
test_rights
test_lost
test_early
suite_end
