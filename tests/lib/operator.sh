# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Runs the operator under test as a program of this machine in the cluster's network. Several may run, each with a name.
# Needs suite.sh.

operator_program=$(readlink -f "${CADRE_OPERATOR:-$suite_root/build/ci/operator/cadre-operator}")
[[ -x $operator_program ]] || {
    echo "Bail out! $operator_program is not built: name the program in CADRE_OPERATOR"
    exit 1
}
declare -A operator_pid=() operator_port=() operator_begun=() # where the log of the last start begins, in bytes
operator_next_port=18080
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

operator_log() { # NAME
    cat "$suite_dir/operator-${1:-op}.log"
}

# operator_launch NAME ARGUMENTS...: starts it. Returns when the program runs, long before it is ready.
operator_launch() {
    local name=$1
    shift
    : "${operator_port[$name]:=$((operator_next_port++))}"
    echo "--- $(date +%T) start: $*" >>"$suite_dir/operator-$name.log"
    operator_begun[$name]=$(($(stat -c %s "$suite_dir/operator-$name.log") + 1))
    "$devcluster" exec -- "$operator_program" --http-address "127.0.0.1:${operator_port[$name]}" --log-level debug "$@" \
        </dev/null >>"$suite_dir/operator-$name.log" 2>&1 &
    operator_pid[$name]=$!
    until [[ $(readlink "/proc/$!/exe") == "$operator_program" || ! -e /proc/$!/exe ]]; do sleep 0.02; done
}

# operator_said NAME REGEX: since its last start.
operator_said() {
    grep -q "$2" < <(tail -c "+${operator_begun[$1]}" "$suite_dir/operator-$1.log")
}

operator_http() { # NAME PATH [CURL-ARGUMENTS...]
    local name=$1 path=$2
    shift 2
    inside curl --silent --show-error --max-time 60 "$@" "http://127.0.0.1:${operator_port[$name]}$path"
}

operator_lives() { # NAME
    kill -0 "${operator_pid[$1]}"
}

operator_ready() { # NAME
    eventually 20 operator_http "$1" /readyz --fail
}

operator_start() { # NAME ARGUMENTS...
    operator_launch "$@"
    operator_ready "$1"
}

# Fails and prints the report if a sanitizer has found wrong use of memory, undefined behaviour, or leaks at exit.
operator_clean() { # NAME
    ! grep -E -A 30 'ERROR: (Address|Leak)Sanitizer|runtime error:|AddressSanitizer:DEADLYSIGNAL' \
        "$suite_dir/operator-$1.log"
}

# operator_gone NAME STATUS [SECONDS]: it ends in time with that exit status, without a report of a sanitizer.
operator_gone() {
    local name=$1 want=$2 rc=0 pid=${operator_pid[$1]}
    eventually "${3:-30}" process_gone "$pid" || {
        echo "the operator does not end"
        kill -KILL "$pid"
    }
    wait "$pid" || rc=$?
    unset "operator_pid[$name]"
    operator_clean "$name" || return 1
    [[ $rc -eq $want ]] || {
        echo "exit status $rc instead of $want"
        return 1
    }
}

process_gone() { # PID: the process has ended; perhaps nobody has waited for it yet
    [[ ! -r /proc/$1/stat || $(awk '{ sub(/.*\) /, ""); print $1 }' "/proc/$1/stat") == Z ]]
}

# operator_stop NAME [SIGNAL]: stops it gracefully.
operator_stop() {
    kill "-${2:-TERM}" "${operator_pid[$1]}"
    operator_gone "$1" 0
}

# operator_wakeups NAME: how often it has woken up so far.
operator_wakeups() {
    awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/${operator_pid[$1]}/status"
}

# operator_kill NAME: kills it, as the kernel does when memory is short.
operator_kill() {
    local pid=${operator_pid[$1]}
    kill -KILL "$pid" 2>/dev/null || true
    { wait "$pid" || true; } 2>/dev/null
    unset "operator_pid[$1]"
    operator_clean "$1"
}

operator_stop_all() {
    local name
    for name in "${!operator_pid[@]}"; do operator_kill "$name" >/dev/null; done
}

operator_explain() {
    local log
    for log in "$suite_dir"/operator-*.log; do
        [[ -r $log ]] || continue
        echo "--- the end of ${log##*/}"
        grep -v 'mirror is complete' "$log" | tail -n 25
    done
}

suite_at_exit+=(operator_stop_all)
suite_explain+=(operator_explain)
