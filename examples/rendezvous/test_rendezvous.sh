#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real processes on loopback, one a rank: test_rendezvous.sh PROGRAM. Prints TAP.
set -euo pipefail

program=$(realpath "$1")
dir=$(mktemp -d)
# shellcheck source=tests/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tests/lib/tap.sh"
tap_diag=$dir/check
export MASTER_ADDR=localhost
unset RANK LOCAL_RANK NODE_NAME WORLD_SIZE

stop_all() {
    local pid
    for pid in $(jobs -p); do kill -KILL "$pid" 2>/dev/null || true; done
}
trap 'stop_all; rm -rf "$dir"' EXIT

tap_explain() { cat "$dir"/rank-* 2>/dev/null || true; }

# start RANK ARGS...: in the background, output to $dir/rank-RANK, pid in pid[RANK].
declare -A pid
start() {
    local rank=$1
    shift
    : >"$dir/rank-$rank"
    RANK=$rank LOCAL_RANK=$((rank % 2)) NODE_NAME=n$((rank / 2)) "$program" --timeout 60 "$@" >"$dir/rank-$rank" 2>&1 &
    pid[$rank]=$!
}

# said RANK TEXT: waits until the rank has printed it.
said() {
    local i
    for ((i = 0; i < 600; i++)); do
        ! grep -qF -- "$2" "$dir/rank-$1" || return 0
        kill -0 "${pid[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    grep -qF -- "$2" "$dir/rank-$1" || { echo "rank $1 never said: $2"; return 1; }
}

# exits RANK CODE
exits() {
    local code=0
    wait "${pid[$1]}" || code=$?
    [ "$code" = "$2" ] || { echo "rank $1 exited with $code, want $2"; return 1; }
}

# start_leader ARGS...: rank 0 at a port that was free.
start_leader() {
    local try
    for try in 1 2 3 4 5 6 7 8 9 10; do
        export MASTER_PORT=$((20000 + RANDOM % 12000))
        start 0 "$@"
        if said 0 "waiting at port"; then return; fi
    done
    echo "no free port in $try tries"
    return 1
}

# stranger TEXT: sends it to rank 0 and prints the answer.
stranger() {
    local answer=""
    exec 7<>"/dev/tcp/localhost/$MASTER_PORT"
    printf '%s' "$1" >&7
    read -r -t 30 answer <&7 || true
    exec 7>&-
    echo "$answer"
}

equals() {
    [ "$1" = "$2" ] || { printf 'want: %s\ngot:  %s\n' "$1" "$2"; return 1; }
}

# refuses CODE TEXT ENV... -- ARGS...: the program exits at once with this code and the text.
refuses() {
    local want=$1 text=$2 code=0
    shift 2
    local env=()
    while [ "$1" != -- ]; do env+=("$1") && shift; done
    shift
    env "${env[@]}" "$program" "$@" >"$dir/refused" 2>&1 </dev/null || code=$?
    [ "$code" = "$want" ] && grep -qF -- "$text" "$dir/refused" && return
    echo "exit code $code, want $want and: $text"
    cat "$dir/refused"
    return 1
}

test_roll_call() {
    export WORLD_SIZE=4
    local rank host
    host=$(hostname)
    check "rank 0 listens" start_leader --exit
    for rank in 3 1 2; do start "$rank" --exit; done
    for rank in 0 1 2 3; do
        check "rank $rank is let go and exits with 0" exits "$rank" 0
        check "... and says where it is" said "$rank" \
            "rank $rank: go: $rank of 4 on host $host, node n$((rank / 2)), local rank $((rank % 2))"
    done
    check "rank 0 prints the roll-call in the order of ranks" equals "roll-call: 4 of 4 ranks
RANK HOST NODE LOCAL RANK
0 $host n0 0
1 $host n0 1
2 $host n1 0
3 $host n1 1" "$(sed -n '/^roll-call/,/^  3/p' "$dir/rank-0" | sed -E 's/ +/ /g; s/^ //; s/ $//')"
}

test_late_leader() {
    export WORLD_SIZE=2
    check "a leader finds a port" start_leader
    kill -TERM "${pid[0]}"
    check "told to stop before the roll-call, it exits with 143" exits 0 143
    start 1
    check "a rank waits for rank 0 and says so" said 1 "waiting for rank 0 at localhost:$MASTER_PORT: it does not listen"
    start 0
    check "rank 0 may come last" said 0 "roll-call: 2 of 2 ranks"
    check "the other one is let go" said 1 "go: 1 of 2"
    kill -TERM "${pid[0]}" "${pid[1]}"
    check "rank 0 stays until SIGTERM and exits with 0" exits 0 0
    check "rank 1 stays until SIGTERM and exits with 0" exits 1 0
}

test_strangers() {
    export WORLD_SIZE=2
    check "rank 0 listens" start_leader --exit
    check "a stranger is sent away" equals "no this is a rendezvous, say hello" "$(stranger $'GET / HTTP/1.1\r\n\r\n')"
    check "a line that is too long is refused" equals "no the line is too long" \
        "$(stranger "$(printf '%1024s' x)")"
    check "another group is refused" equals "no this is the rendezvous of another group" \
        "$(stranger $'hello other 2 1 0 host node\n')"
    check "another WORLD_SIZE is refused" equals "no the group has another WORLD_SIZE" \
        "$(stranger $'hello localhost 3 1 0 host node\n')"
    check "a rank beyond WORLD_SIZE is refused" equals "no no such rank" \
        "$(stranger $'hello localhost 2 2 0 host node\n')"
    check "a second rank 0 is refused" equals "no this rank is here already" \
        "$(stranger $'hello localhost 2 0 0 host node\n')"
    check "a name with control characters is refused" equals "no not a name" \
        "$(stranger $'hello localhost 2 1 0 ho\x1b[2Jst node\n')"
    exec 8<>"/dev/tcp/localhost/$MASTER_PORT" # says nothing
    exec 9<>"/dev/tcp/localhost/$MASTER_PORT"
    printf 'hello localhost 2 1 0 host node\n' >&9
    check "the last rank makes it complete, with strangers there" exits 0 0
    check "... and is let go" equals go "$(head -n1 <&9)"
    exec 8>&- 9>&-
}

test_rank_that_leaves() {
    export WORLD_SIZE=3
    check "rank 0 listens" start_leader --exit
    start 1 --exit
    check "rank 1 joins" said 0 "rank 1 joined, 2 of 3 are here"
    kill -KILL "${pid[1]}"
    check "rank 0 sees it leave" said 0 "rank 1 left again, 1 of 3 are here"
    wait "${pid[1]}" || true
    start 1 --exit
    start 2 --exit
    check "the one that came back counts" exits 0 0
    check "... and is let go" exits 1 0
    check "... with the others" exits 2 0
}

test_failures() {
    export WORLD_SIZE=2
    check "rank 0 listens" start_leader --exit --fail-rank 1 --exit-code 42
    start 1 --exit --fail-rank 1 --exit-code 42
    check "the rank that is to fail fails with its code" exits 1 42
    check "the others do not" exits 0 0
    local full=(MASTER_ADDR=localhost MASTER_PORT="$MASTER_PORT" WORLD_SIZE=2)
    check "who misses a rank is named at the deadline" refuses 1 "1 of 2 are here after 1 s, missing: 1" \
        "${full[@]}" RANK=0 -- --timeout 1
    check "a rank without rank 0 gives up at the deadline" refuses 1 "gave up on rank 0 at localhost:$MASTER_PORT" \
        "${full[@]}" RANK=1 -- --timeout 1
    check "RANK has to be set" refuses 2 "RANK is not set" "${full[@]}" -- --exit
    check "RANK has to be below WORLD_SIZE" refuses 2 'RANK is "2", it has to be a number from 0 to 1' \
        "${full[@]}" RANK=2 -- --exit
    check "WORLD_SIZE has to be a number" refuses 2 'WORLD_SIZE is "two"' "${full[@]}" WORLD_SIZE=two RANK=0 -- --exit
    check "MASTER_ADDR has to be set" refuses 2 "MASTER_ADDR is not set" -u MASTER_ADDR WORLD_SIZE=2 RANK=0 -- --exit
    check "MASTER_PORT has to be a port" refuses 2 'MASTER_PORT is "0"' \
        "${full[@]}" MASTER_PORT=0 RANK=0 -- --exit
    check "an unknown option is refused" refuses 2 "rendezvous --help lists the options" "${full[@]}" RANK=0 -- --what
    check "an exit code of 256 is refused" refuses 2 '"256" is not a number that this option takes' \
        "${full[@]}" RANK=0 -- --exit-code 256
    check "an argument without an option is refused" refuses 2 '"what" is too much' "${full[@]}" RANK=0 -- what
}

test_roll_call
test_late_leader
test_strangers
test_rank_that_leaves
test_failures
tap_end
