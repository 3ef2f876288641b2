# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Long-lived processes. $STATE/run/NAME.pid contains "pid start-time" of each. The start time shows whether another process
# has got the same pid later.

process_start_time() { # PID
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # The name in field 2 may contain blanks and parentheses. Field 3 is the first one after the last parenthesis.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [[ $1 != Z && $1 != X ]] && echo "${20}"
}

# process_pid NAME: prints the pid while the recorded process lives.
process_pid() {
    local pid start
    { read -r pid start <"$STATE/run/$1.pid"; } 2>/dev/null || return 1
    [[ -n $start && $(process_start_time "$pid") == "$start" ]] && echo "$pid"
}

process_alive() { process_pid "$1" >/dev/null; }

# process_start NAME CGROUP HOLDER CMD...: the process gets the namespaces of the process HOLDER ("-": of the host).
# It first enters its cgroup, and only then closes the locks. So the next process that takes a lock finds it in the
# cgroup, or it has never started.
process_start() {
    local name=$1 group=$2 holder=$3 pid enter=()
    shift 3
    process_alive "$name" && return 0
    if [[ $holder != - ]]; then
        pid=$(process_pid "$holder") || die "cannot start $name: $holder does not run"
        enter=(nsenter "--net=/proc/$pid/ns/net" "--mount=/proc/$pid/ns/mnt" "--uts=/proc/$pid/ns/uts")
    fi
    (
        cgroup_join "$group" "$BASHPID" || { echo "cannot enter cgroup $group"; exit 1; }
        exec 8>&- 9>&-
        # A background job of a shell ignores SIGINT and SIGQUIT, and containers would inherit that.
        # GOGC=300 costs 100 MB of memory, and saves a tenth of the CPU time of a cluster.
        exec env --default-signal=INT,QUIT GOGC=300 setsid "${enter[@]}" "$@"
    ) </dev/null >>"$STATE/logs/$name.log" 2>&1 &
    pid=$!
    printf '%s %s\n' "$pid" "$(process_start_time "$pid")" >"$STATE/run/.$name.pid"
    mv "$STATE/run/.$name.pid" "$STATE/run/$name.pid"
}

# process_kill NAME: kills it at once, as a fault would. Returns when its last thread has ended, because until then its ports
# are taken.
process_kill() {
    local pid
    pid=$(process_pid "$1") || return 0
    kill -KILL "$pid" 2>/dev/null || true
    while process_alive "$1" || [[ -n $(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 ! -name "$pid" 2>/dev/null) ]]; do
        sleep 0.02
    done
}

process_signal() { # NAME SIGNAL
    local pid
    pid=$(process_pid "$1") || die "$1 does not run"
    kill "-$2" "$pid"
}

# process_must_live NAME: exits with an error if the process has ended. For loops that wait for it.
process_must_live() {
    process_alive "$1" && return 0
    tail -n 5 "$STATE/logs/$1.log" >&2 || true
    die "$1 has ended; its log: $STATE/logs/$1.log"
}

# holder_start NAME CGROUP: starts a sleeping process that keeps a network, a mount and a host name namespace alive. No file
# pins them, so the kernel removes the interfaces, nftables and mounts of a node with its last process, also after a crash.
# The mount namespace still gets unmounts of the host (slave), and the processes of the node share it. It has its own /run and
# /var/lib/kubelet (where device plugins meet the kubelet, whatever its root), so sockets and state have their usual paths.
holder_start() {
    local name=$1 group=$2 ready="$STATE/run/$1.ready"
    process_alive "$name" && return 0
    rm -f "$ready"
    # shellcheck disable=SC2016
    process_start "$name" "$group" - unshare --net --uts --mount --propagation slave -- sh -c '
        set -e
        mount --make-rshared /
        mount -t tmpfs -o mode=755 tmpfs /run
        mkdir -p /run/lock /run/netns /var/lib/kubelet
        mount -t tmpfs -o mode=755 tmpfs /var/lib/kubelet
        echo "$1" >/proc/sys/kernel/hostname
        : >"$2"
        exec sleep infinity' sh "${name#holder-}" "$ready"
    wait_until 30 "$name" --alive "$name" test -e "$ready"
}

# holder_exec NAME CMD...: runs CMD in the holder's network namespace (and, for a node, mount namespace).
holder_exec() {
    local pid name=$1
    shift
    pid=$(process_pid "$name") || return 1
    nsenter "--net=/proc/$pid/ns/net" "--mount=/proc/$pid/ns/mnt" -- "$@"
}

holder_net() { # like holder_exec, but only in the network namespace; it sees the files of the host
    local pid name=$1
    shift
    pid=$(process_pid "$name") || return 1
    nsenter "--net=/proc/$pid/ns/net" -- "$@"
}
