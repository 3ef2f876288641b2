# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Other managers of groups: built from Go modules, or from checkouts of their projects, into a cache that is keyed by what
# pins them, and run as plain processes beside the control plane. Their objects in the cluster come from their own sources:
# the module in Go's module cache, or the checkout. Set root, work and devcluster before you read this file.

: "${root:?}" "${work:?}" "${devcluster:?}"
managers_cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/peers

# NAME: MODULE PACKAGE TITLE NAMESPACE CONFIG-API WEBHOOK-PORT PROBE-PORT. go/NAME/go.mod has the version.
declare -A MANAGERS=(
    [lws]="sigs.k8s.io/lws sigs.k8s.io/lws/cmd LeaderWorkerSet lws-system config.lws.x-k8s.io/v1alpha1 19442 18082"
    [jobset]="sigs.k8s.io/jobset sigs.k8s.io/jobset JobSet jobset-system config.jobset.x-k8s.io/v1alpha1 19441 18081"
)

declare -A checkouts=() # of the project NAME, instead of its module

# manager_checkout NAME DIR: the sources that the caller names. Ends the script where they are none.
manager_checkout() {
    local module=${MANAGERS[$1]%% *} why
    if ! grep -qsxF "module $module" "$2/go.mod"; then
        options_refuse "--source $1=$2: there is no go.mod of $module"
    elif ! why=$(git -C "$2" describe --tags --always 2>&1); then
        options_refuse "--source $1=$2: its version cannot be told: git: $why"
    fi
    checkouts[$1]=$(cd "$2" && pwd)
}

# manager_read NAME: sets module, package, title, ns, config_api, webhook_port, probe_port, version and home.
manager_read() {
    local dir=$root/bench/peers/go/$1 key
    read -r module package title ns config_api webhook_port probe_port <<<"${MANAGERS[$1]}"
    if [[ -n ${checkouts[$1]:-} ]]; then
        version=$(git -C "${checkouts[$1]}" describe --tags --always --dirty)
        key="${checkouts[$1]} $version"
    else
        version=$(sed -n "s,^\(require\)\?[[:space:]]*$module \(v[0-9][^ ]*\).*,\2,p" "$dir/go.mod")
        key=$(cat "$dir"/go.*)
    fi
    home=$managers_cache/$1-$(sha256sum <<<"$key" | cut -c1-12)
}

# manager_sources NAME: goes where it can be built, and says in $home/source where its sources are. Nothing changes in a
# checkout.
manager_sources() {
    if [[ -n ${checkouts[$1]:-} ]]; then
        cd "${checkouts[$1]}" && pwd >"$home/source"
        return
    fi
    mkdir -p "$home/build" && cp "$root/bench/peers/go/$1"/go.* "$home/build/" && cd "$home/build" || return
    export GOFLAGS="-mod=mod $GOFLAGS"
    "$go" mod download "$module" && "$go" list -m -f '{{.Dir}}' "$module" >"$home/source"
}

# In a subshell, because these files are written for a script that ends when something fails.
go_find() (
    HERE=$root/deploy/devcluster
    # shellcheck source=/dev/null
    . "$HERE/lib/common.sh" && . "$HERE/lib/go.sh" && . "$HERE/deps.sh"
    go_ensure >&2
    echo "$GO"
)

# manager_build NAME: fails, having said why, where the module or its tools cannot be had.
manager_build() {
    local go log=$work/$1-build.log started=$SECONDS
    local module package title ns config_api webhook_port probe_port version home
    manager_read "$1"
    [[ $version == *-dirty || ! -x $home/manager || ! -d $(cat "$home/source") ]] || return 0
    go=$(go_find) || return 1
    mkdir -p "$home"
    printf 'bench: building %s %s, once ... ' "$title" "$version" >&2
    if ! (
        export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOROOT='' GOFLAGS="-buildvcs=false ${GOFLAGS:-}"
        manager_sources "$1" &&
            nice -n 10 "$go" build -trimpath -ldflags '-s -w' -o "$home/.manager" "$package" &&
            mv "$home/.manager" "$home/manager"
    ) >"$log" 2>&1; then
        printf 'failed\nbench: without %s: %s\n' "$title" "$(tail -n 1 "$log")" >&2
        return 1
    fi
    printf '%d s\n' $((SECONDS - started)) >&2
}

# manager_certificate: for 127.0.0.1, where the API server, in the same network namespace, calls the webhooks.
manager_certificate() {
    [[ -s $work/webhooks/tls.crt ]] && return 0
    mkdir -p "$work/webhooks"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=webhooks \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$work/webhooks/tls.key" -out "$work/webhooks/tls.crt" 2>/dev/null
}

# manager_objects NAME: what its own config/default makes, as JSON, but for the Deployment and what only that needs. All
# of its webhooks stay: they are called by address instead of through a Service, which would need a pod.
manager_objects() {
    "$devcluster" kubectl kustomize "$(cat "$home/source")/config/default" 2>/dev/null |
        "$devcluster" kubectl create --dry-run=client --validate=false -o json -f - |
        jq --arg url "https://127.0.0.1:$webhook_port" --arg ca "$(base64 -w0 "$work/webhooks/tls.crt")" '
            def at_address: {url: ($url + (.service.path // "/convert")), caBundle: $ca};
            (if .kind == "List" then .items[] else . end)
            | select(.kind | IN("Deployment", "ConfigMap", "Secret", "Service") | not)
            | if .webhooks then .webhooks[].clientConfig |= at_address else . end
            | if .spec.conversion.webhook then .spec.conversion.webhook.clientConfig |= at_address else . end' |
        jq -s '{apiVersion: "v1", kind: "List", items: .}'
}

# manager_install NAME: into the cluster; writes $work/start-NAME, which runs the manager.
manager_install() {
    local module package title ns config_api webhook_port probe_port version home
    manager_read "$1"
    manager_certificate
    manager_objects >"$work/$1.json"
    "$devcluster" kubectl apply --server-side -f "$work/$1.json" >/dev/null
    account_config "$ns" "${ns%-system}-controller-manager" >"$work/$1.conf"
    cat >"$work/$1-config.yaml" <<EOF
apiVersion: $config_api
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {host: 127.0.0.1, port: $webhook_port, certDir: "$work/webhooks"}
health: {healthProbeBindAddress: "127.0.0.1:$probe_port"}
metrics: {bindAddress: "0"}
clientConnection: {qps: 5000, burst: 10000}
EOF
    cat >"$work/start-$1" <<EOF
#!/bin/sh
KUBECONFIG='$work/$1.conf' exec '$home/manager' --config '$work/$1-config.yaml' --zap-log-level error
EOF
    chmod +x "$work/start-$1"
}
