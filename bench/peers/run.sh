#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same groups of 8 pods by bare pods, LeaderWorkerSet, JobSet and Cadre, each beside bare pods that are pinned to
# their nodes, on a cluster of its own with 1,000 fake nodes of 8 GPUs. Prints a table of the managers that
# it ran. Merge it by hand into the table of docs/benchmarks/peers.md.
# Needs root, 4 GB of memory and a machine with nothing else to do; 100 groups take about ten minutes.
#   bench/peers/run.sh [OPTION]...
#   --groups N        groups at once (100); 1000 fill the cluster and take an hour
#   --rounds N        of that (2; 1 from 500 groups on)
#   --singles N       times that one group alone is created, in each round (4)
#   --restarts N      times that one group among all of them restarts (4)
#   --only LIST       of bare,lws,jobset,cadre; with commas
#   --source LIST     lws=DIR or jobset=DIR, with a comma between: built from a git checkout of its project, of any
#                     version, instead of the Go module of the version that bench/peers/go pins
# The other managers are built once, into ~/.cache/cadre/peers; one that cannot be had is left out, by name.
# BENCH_CLUSTER=NAME uses a cluster that is up, and leaves it up.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bench/lib/options.sh
. "$root/bench/lib/options.sh"
options_check "$@"
groups=100 rounds='' only=bare,lws,jobset,cadre options=()
declare -A sources=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --groups) groups=$2 ;;
    --rounds) rounds=$2 ;;
    --only) only=$2 ;;
    --source)
        for name in ${2//,/ }; do
            [[ $name =~ ^(lws|jobset)=(.+)$ ]] || options_refuse "--source takes lws=DIR or jobset=DIR, not \"$name\""
            sources[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
        done
        ;;
    *) options+=("$1" "$2") ;;
    esac
    shift 2
done
[[ $groups =~ ^[1-9][0-9]{0,3}$ && $groups -le 1000 ]] ||
    options_refuse "--groups takes 1 to 1000, not \"$groups\": the cluster has room for that"
for name in ${only//,/ }; do
    [[ $name =~ ^(bare|lws|jobset|cadre)$ ]] ||
        options_refuse "--only takes bare, lws, jobset and cadre, not \"$name\""
done
[[ -n $rounds ]] || rounds=$((groups < 500 ? 2 : 1))

# shellcheck source=bench/lib/cluster.sh
. "$root/bench/lib/cluster.sh"
work=$(mktemp -d)
# shellcheck source=bench/peers/managers.sh
. "$root/bench/peers/managers.sh"
child=

finish() {
    local code=$?
    trap - EXIT INT TERM
    if [[ -n $child ]] && kill "$child" 2>/dev/null; then
        wait "$child" 2>/dev/null || true
    fi
    [[ $code -eq 0 || ! -s $work/managers.log ]] || tail -n 20 "$work/managers.log" >&2
    cluster_down
    rm -rf "$work"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The paragraph under the table: what ran, on what.
describe() {
    local name version home module package title ns config_api webhook_port probe_port text=
    for name in "${measured[@]}"; do
        [[ -n ${MANAGERS[$name]:-} ]] || continue
        manager_read "$name"
        text+="$title $version, "
    done
    printf 'Taken on %s: Cadre %s, %sKubernetes %s; %s, %d CPUs, %d GiB, Linux %s.%s\n' "$(date -u +%F)" \
        "$(git -C "$root" describe --always --dirty 2>/dev/null || cat "$root/VERSION")" "$text" \
        "$("$devcluster" kubectl version -o json | jq -r .serverVersion.gitVersion)" \
        "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
        "$(awk '/^MemTotal/ { print int($2 / 1048576 + 0.5) }' /proc/meminfo)" "$(uname -r | cut -d- -f1)" \
        "${missing:+ Not here:$missing.}"
}

for name in "${!sources[@]}"; do
    manager_checkout "$name" "${sources[$name]}"
done
cluster_need_root
missing=
measured=()
for name in ${only//,/ }; do
    case $name in
    bare | cadre) measured+=("$name") ;;
    *) if manager_build "$name"; then measured+=("$name"); else missing+=" $name"; fi ;;
    esac
done
release_build cadre-operator bench-peers
cluster_up
cadre_install "$work/operator.conf"
cat >"$work/start-cadre" <<EOF
#!/bin/sh
exec '$build/operator/cadre-operator' --kubeconfig '$work/operator.conf' --leader-elect-namespace bench \
    --http-address 127.0.0.1:18080 --log-level warn
EOF
chmod +x "$work/start-cadre"
for name in "${measured[@]}"; do
    [[ -z ${MANAGERS[$name]:-} ]] || manager_install "$name"
    [[ $name == bare ]] && options+=(--system bare) || options+=(--system "$name=$work/start-$name")
done

"$devcluster" exec -- "$build/bench/peers/bench-peers" --kubeconfig "$state/kubeconfig" --log "$work/managers.log" \
    --components "$(cluster_components)" --groups "$groups" --rounds "$rounds" "${options[@]}" >"$work/table" &
child=$!
wait "$child"
child=
describe >>"$work/table"
cat "$work/table"
