# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# For the suite of the chart: checks, functions that render the chart, and a cluster without nodes if this machine can run
# one. A suite sources this file and calls start_cluster. $has_cluster says whether there is a cluster.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
devcluster=$root/deploy/devcluster/devcluster
# shellcheck source=/dev/null
. "$root/tests/lib/inside.sh"
chart=$root/charts/cadre
version=$(<"$root/VERSION")
export CADRE_CLUSTER=chart-$$ CADRE_USE=own
work=$(mktemp -d)
diag=$work/diag
export HELM_CACHE_HOME=$work/helm HELM_CONFIG_HOME=$work/helm HELM_DATA_HOME=$work/helm
has_cluster=false

passed=0
failed=0
skipped=0

ok() {
    passed=$((passed + 1))
    echo "ok $((passed + failed + skipped)) - $1"
}

not_ok() {
    failed=$((failed + 1))
    echo "not ok $((passed + failed + skipped)) - $1"
    sed 's/^/# /' "$diag"
}

skip() {
    skipped=$((skipped + 1))
    echo "ok $((passed + failed + skipped)) - $1 # SKIP a dev cluster needs root"
}

# check NAME COMMAND...: the command succeeds; if not, its output explains why.
check() {
    local name=$1
    shift
    if "$@" >"$diag" 2>&1; then ok "$name"; else not_ok "$name"; fi
}

equals() {
    [ "$1" = "$2" ] || { printf 'want: %s\ngot:  %s\n' "$1" "$2"; return 1; }
}

# has TEXT STRING and lacks TEXT STRING
has() {
    case $2 in *"$1"*) ;; *) printf 'want: ...%s...\ngot:  %s\n' "$1" "$2"; return 1 ;; esac
}

lacks() {
    case $2 in *"$1"*) printf 'unwanted: ...%s...\ngot:  %s\n' "$1" "$2"; return 1 ;; esac
}

helm_run() {
    if [ "$has_cluster" = true ]; then inside helm "$@"; else helm "$@"; fi
}

# render ARGS...: prints the manifests of a release "cadre" in namespace cadre-system.
render() {
    helm_run template cadre "$chart" --namespace cadre-system --kube-version 1.30.0 "$@"
}

# object KIND [NAME]: prints that manifest out of those on standard input, or nothing.
object() {
    awk -v RS='\n---\n' -v kind="kind: $1" -v name="  name: ${2:-}" -v any="${2:+no}" '
        { n = split($0, line, "\n"); k = 0; m = any == ""; top = ""
          for (i = 1; i <= n; i++) {
              if (line[i] ~ /^[a-z]/) top = line[i]
              if (line[i] == kind) k = 1
              if (top == "metadata:" && line[i] == name) m = 1
          }
          if (k && m) print }'
}

cleanup() {
    local rc=$?
    trap - EXIT INT TERM
    [ "$has_cluster" = false ] || "$devcluster" down >/dev/null 2>&1 ||
        echo "# dev cluster $CADRE_CLUSTER is left: devcluster down --name $CADRE_CLUSTER"
    rm -rf "$work"
    exit "$rc"
}

start_cluster() {
    trap cleanup EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [ "$(id -u)" = 0 ]; then
        has_cluster=true
        "$devcluster" up --nodes 0 >"$diag" 2>&1 && inside_enter && return
        echo "Bail out! the dev cluster does not start"
        sed 's/^/# /' "$diag"
        exit 1
    elif ! command -v helm >/dev/null; then
        echo "1..0 # SKIP test_chart: a dev cluster needs root, and there is no helm"
        exit 77
    fi
}
