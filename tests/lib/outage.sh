# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Outages: a suite takes something away and gives it back, while groups run and clients call all the time. Afterwards, nothing
# was restarted, and every call has an answer or an error with a name.
# Needs suite.sh, group.sh, calls.sh and clients.sh. Checks all groups of the namespace; their pods are on $outage_node.

outage_node=n3
states_pids=()
outage_shown=0    # lines of the states' log
outage_lives=     # of the groups, after the outage before
outage_states=    # states besides Running that are true in this outage: "|False/Silent"
outage_unplaced=  # a PlacementGroup that no node is large enough for
outage_errors=    # errors besides the ones of any replica's end: ", \"FORBIDDEN\""
outage_ended=0    # seconds of the epoch, with a fraction
outage_edits=1000 # maxRestarts of the groups. An edit of it causes a decision

now() {
    date +%s.%3N
}

# calls_accounted: no call was lost or ran twice. The only errors are a lost connection and a deadline that is over.
calls_accounted() { # REPORT-ARGUMENTS...
    is '[0,0,[]]' report "[.lost, .wrong, (.names | keys) - [\"TIMEOUT\", \"UNAVAILABLE\"$outage_errors]]" "$@" || {
        report . "$@"
        grep -E '"outcome": "(lost|wrong)"' "$suite_dir/calls" | tail -n 5
        return 1
    }
}

# states_watch: records all states that kubectl get would show for the groups, also after outages of the API server.
states_watch() {
    local kind
    for kind in wg plg; do
        while true; do
            kc -n "$ns" get "$kind" --watch -o 'jsonpath={.metadata.name} {range .status.conditions[?(@.type=="Ready")]}{.status}/{.reason} {.message}{end}{"\n"}' \
                2>/dev/null >>"$suite_dir/states" || true
            sleep 0.3
        done &
        states_pids+=("$!")
    done
}

states_stop() {
    kill "${states_pids[@]}" 2>/dev/null || true
}

# Prints the states since the begin of the outage that are wrong for a running group.
states_untrue() {
    tail -n "+$((outage_shown + 1))" "$suite_dir/states" | grep -Ev "${outage_unplaced:+^$outage_unplaced |} (True/Running$outage_states) " | uniq
}

# group_lives: the ids, start times and counts that change when a pod or a process starts again, one per line.
group_lives() {
    kc -n "$ns" get pods -l cadre.dev/group -o json | jq -r '.items[] | [.metadata.name, .metadata.uid, .status.phase,
        (.status.containerStatuses[]? | "\(.name)=\(.restartCount),\(.state.running.startedAt)")] | join(" ")'
    kc -n "$ns" get wg,plg -o json | jq -r '.items[] | "\(.kind)/\(.metadata.name) \(.status | {attempt, incarnation,
        restarts, readyReplicas, readyWorkers})"'
    rank_processes
}

# Agents, workers and plain ranks, with their ids and start times on this machine.
rank_processes() {
    local pid
    # The cgroups of other pods may end meanwhile, which is an error for find.
    { find /sys/fs/cgroup -path "*/cadre-$CADRE_CLUSTER-*/$outage_node/*" -name cgroup.procs -exec cat {} + 2>/dev/null || true; } |
        sort -un | while read -r pid; do
        awk '$2 ~ /^\((cadre-agent|cadre-worker|sleep)\)$/ { print $2, "process", $1, "start", $22 }' "/proc/$pid/stat" \
            2>/dev/null || true
    done
}

group_lives_are() { # WANT
    group_lives | diff <(echo "$1") -
}

# decide: lets the operator decide about each group, by an edit that changes nothing that runs. decided: the operator has
# decided, and all groups run.
decide() {
    local names
    outage_edits=$((outage_edits + 1))
    names=$(kc -n "$ns" get wg -o 'jsonpath={.items[*].metadata.name}')
    # shellcheck disable=SC2086
    kc -n "$ns" patch wg $names --type merge -p "{\"spec\": {\"maxRestarts\": $outage_edits}}" >/dev/null
}

decided() {
    is "" groups_behind
}

groups_behind() {
    kc -n "$ns" get wg,plg -o json | jq -r --arg unplaced "$outage_unplaced" '.items[] | select(.metadata.name != $unplaced)
        | .metadata.generation as $g
        | (.status.conditions[] | select(.type == "Ready")) as $ready
        | select(.status.observedGeneration != $g or $ready.observedGeneration != $g or $ready.status != "True"
                 or $ready.reason != "Running")
        | "\(.kind)/\(.metadata.name): generation \($g) of \(.status.observedGeneration): \($ready.status)/\($ready.reason): \($ready.message)"'
}

# outage_over: an outage calls it when its cause has ended. Else, the cause ends with its function.
outage_over() {
    outage_ended=$(now)
}

seconds_since() { # SECONDS
    awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f s\n", to - from }'
}

# outage NAME FUNCTION...: runs the function, which takes something away and gives it back, and checks everything afterwards.
outage() {
    local name=$1 began
    shift
    [[ -n $outage_lives ]] || outage_lives=$(group_lives)
    clients_since=$(wc -l <"$suite_dir/calls")
    outage_shown=$(wc -l <"$suite_dir/states")
    outage_ended=0
    outage_states=''
    outage_errors=''
    began=$(now)
    "$@" || true
    [[ $outage_ended != 0 ]] || outage_over
    eventually 60 decide || true
    check "$name: decisions are made again, and the state of every group is true" eventually 90 decided
    echo "# the outage took $(awk -v from="$began" -v to="$outage_ended" 'BEGIN { printf "%.0f s", to - from }')," \
        "decisions and states were back $(seconds_since "$outage_ended") after it"
    check "... calls are answered" eventually 60 calls_answered "$outage_ended"
    echo "# calls: $(report 'del(.answering)' --since "$clients_since")"
    check "... every call was answered once, or failed by name" calls_accounted --since "$clients_since"
    check "... no pod was made again, and no rank restarted" eventually 20 group_lives_are "$outage_lives"
    check "... every state that was shown was true" is "" states_untrue
    outage_lives=$(group_lives)
    operators_fresh
}

# Replaces operators that have been killed, because the kubelet would delay their next start.
operators_fresh() {
    local pods
    mapfile -t pods < <(kc -n cadre-system get pods -l app.kubernetes.io/component=operator -o json |
        jq -r '.items[] | select(any(.status.containerStatuses[]?; .restartCount > 0)) | .metadata.name')
    [[ ${#pods[@]} -eq 0 ]] || kc -n cadre-system delete pod --wait=false "${pods[@]}" >/dev/null
    eventually 120 is "" operators_worn || bail_out "the operator does not come back"
}

# Prints what is missing until there are two new replicas, and one of them leads.
operators_worn() {
    kc -n cadre-system get lease,pods -o json | jq -r '
        [.items[] | select(.kind == "Pod" and .metadata.labels["app.kubernetes.io/component"] == "operator")] as $pods
        | ([.items[] | select(.kind == "Lease" and .metadata.name == "cadre-operator") | .spec.holderIdentity] | first // "") as $leader
        | ($pods[] | select(any(.status.containerStatuses[]?; .restartCount > 0 or (.ready | not)) or .metadata.deletionTimestamp)
            | .metadata.name),
          (if ($pods | length) != 2 then "\($pods | length) pods" else empty end),
          (if any($pods[]; .metadata.name as $name | $leader | startswith($name)) then empty else "led by \($leader)" end)'
}

outage_explain() {
    echo "--- the latest calls that failed"
    grep '"failed"' "$suite_dir/calls" | tail -n 5
    groups_behind
    tail -n 3 "$suite_dir/clients"
}

suite_at_exit+=(states_stop)
suite_explain+=(outage_explain)

# ---- causes of outages -----------------------------------------------------------------------------------------------

operator_leader() { # the pod of the Lease's holder
    operator_pods | sed -n '1s/ .*//p'
}

operator_other() {
    operator_pods | sed -n '2s/ .*//p'
}

operator_node() { # POD
    kc -n cadre-system get pod "$1" -o 'jsonpath={.spec.nodeName}'
}

# operator_process POD: the id of its operator process on this machine; nothing if it does not run.
operator_process() {
    local id
    id=$(kc -n cadre-system get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}' 2>/dev/null) || return 0
    "$devcluster" exec --node "$(operator_node "$1")" -- ctr -n k8s.io tasks ls 2>/dev/null |
        awk -v id="${id#containerd://}" '$1 == id && $3 == "RUNNING" { print $2 }'
}

operators_ready() {
    kc -n cadre-system rollout status deployment/cadre-operator --timeout=600s >/dev/null
}

operators_log() {
    kc -n cadre-system logs -l app.kubernetes.io/component=operator --tail=-1
}

# cpu_quota PERCENT|max: sets the CPU quota of every pod of the operator.
cpu_quota() {
    local pod pid path root
    for pod in $(operator_pods | cut -d ' ' -f 1); do
        pid=$(operator_process "$pod")
        [[ -n $pid ]] || continue
        path=$(sed -n 's/^0:://p; s/^[0-9]*:[^:]*\bcpu\b[^:]*://p' "/proc/$pid/cgroup" | tail -n 1)
        for root in /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup; do
            if [[ -w $root$path/cpu.cfs_quota_us ]]; then
                [[ $1 == max ]] && echo -1 >"$root$path/cpu.cfs_quota_us" || echo "$(($1 * 1000))" >"$root$path/cpu.cfs_quota_us"
                break
            elif [[ -w $root$path/cpu.max ]]; then
                [[ $1 == max ]] && echo max >"$root$path/cpu.max" || echo "$(($1 * 1000)) 100000" >"$root$path/cpu.max"
                break
            fi
        done
    done
}
