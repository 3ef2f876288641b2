# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# One cgroup tree for each cluster. Every process of a cluster starts in it and cannot leave it. So the tree is the reliable
# list of the processes to kill: a crash may lose pids, but not the membership.

readonly GONE_S=180 # the kernel ends killed processes in this time, also on a machine that others keep busy

# Prints all mounted hierarchies: one with cgroup v2, one for each controller with v1, or both.
cgroup_hierarchies() { awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts | sort -u; }

# cgroup_create PATH: in every hierarchy, level by level. v1's cpuset starts empty, and takes no process then. v2 passes
# controllers on only if the parent says so.
cgroup_create() {
    local root dir level controller file
    while read -r root; do
        dir=$root
        for level in ${1//\// }; do
            if [[ -e $dir/cgroup.subtree_control ]]; then
                for controller in $(<"$dir/cgroup.controllers"); do
                    echo "+$controller" 2>/dev/null >"$dir/cgroup.subtree_control" || true
                done
            fi
            mkdir -p "$dir/$level"
            for file in cpuset.cpus cpuset.mems; do
                [[ ! -e $dir/cgroup.subtree_control && -e $dir/$level/$file ]] || continue
                [[ -n $(<"$dir/$level/$file") ]] || cat "$dir/$file" >"$dir/$level/$file"
            done
            dir+=/$level
        done
    done < <(cgroup_hierarchies)
}

# cgroup_join PATH PID: fails if no hierarchy takes the process.
cgroup_join() {
    local root joined=1
    while read -r root; do
        echo "$2" 2>/dev/null >"$root/$1/cgroup.procs" && joined=0
    done < <(cgroup_hierarchies)
    return $joined
}

cgroup_dirs() { # PATH
    local root
    while read -r root; do
        [[ ! -d $root/$1 ]] || printf '%s\n' "$root/$1"
    done < <(cgroup_hierarchies)
}

cgroup_pids() { # PATH
    local dirs
    mapfile -t dirs < <(cgroup_dirs "$1")
    [[ ${#dirs[@]} -gt 0 ]] || return 0
    find "${dirs[@]}" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}

# cgroup_kill PATH: kills until no process is left. A process may fork between the look and the kill, so this is a loop.
cgroup_kill() {
    local pids end=$((SECONDS + GONE_S))
    [[ -n $1 ]] || die "cgroup_kill without a path"
    while pids=$(cgroup_pids "$1") && [[ -n $pids ]]; do
        # shellcheck disable=SC2086
        kill -KILL $pids 2>/dev/null || true
        [[ $SECONDS -lt $end ]] || die "processes of cgroup $1 survive SIGKILL: ${pids//$'\n'/ }"
        sleep 0.02
    done
}

# cgroup_freeze PATH on|off: no process of it runs until it is off. Processes that are killed meanwhile die together, and none
# sees another one die. A v1 freezer needs a moment, and waits for long system calls; this function waits two seconds for it.
cgroup_freeze() {
    local dir tries
    while read -r dir; do
        if [[ -e $dir/freezer.state ]]; then
            [[ $2 == on ]] || { echo THAWED >"$dir/freezer.state"; continue; }
            for ((tries = 0; tries < 100; tries++)); do
                echo FROZEN >"$dir/freezer.state"
                [[ $(<"$dir/freezer.state") != FROZEN ]] || break
                sleep 0.02
            done
        elif [[ -e $dir/cgroup.freeze ]]; then
            if [[ $2 == on ]]; then echo 1; else echo 0; fi >"$dir/cgroup.freeze"
        fi
    done < <(cgroup_dirs "$1")
}

# cgroup_remove PATH: for a tree whose processes were killed. The kernel refuses to remove a cgroup until the last thread in it
# has ended, and a process may have entered after the last look of cgroup_kill, so this kills again.
cgroup_remove() {
    local dirs pids pause=0.02 end=$((SECONDS + GONE_S))
    [[ -n $1 ]] || die "cgroup_remove without a path"
    while mapfile -t dirs < <(cgroup_dirs "$1") && [[ ${#dirs[@]} -gt 0 ]]; do
        find "${dirs[@]}" -depth -type d -exec rmdir {} + 2>/dev/null || true
        [[ $SECONDS -lt $end ]] || die "cgroup $1 cannot be removed: $(cgroup_rest "$1")"
        pids=$(cgroup_pids "$1")
        # shellcheck disable=SC2086
        [[ -z $pids ]] || kill -KILL $pids 2>/dev/null || true
        sleep "$pause"
        pause=0.2
    done
}

cgroup_rest() { # PATH: prints the groups that are left below it, and their threads
    local dir tasks
    while read -r dir; do
        tasks=$(cat "$dir/tasks" "$dir/cgroup.threads" 2>/dev/null | tr '\n' ' ') || true
        printf '%s (threads: %s); ' "$dir" "${tasks:-none}"
    done < <(cgroup_dirs "$1" | xargs -r -I{} find {} -type d)
}
