#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The program end to end: test_agent_run.sh CADRE-AGENT RENDEZVOUS. Prints TAP.
set -euo pipefail

agent=$(realpath "$1")
rendezvous=$(realpath "$2")
dir=$(mktemp -d)
# shellcheck source=tests/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/tap.sh"
tap_diag=$dir/check
unset CADRE_OPERATOR CADRE_CA RANK LOCAL_RANK WORLD_SIZE MASTER_ADDR MASTER_PORT CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES
export MARK=$((100000 + $$)) # so that only ours are looked for
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT

# runs CODE ARG...: runs the agent, which must end with that exit code. Its output is in $dir/out.
runs() {
    local want=$1 code=0
    shift
    "$agent" "$@" >"$dir/out" 2>&1 </dev/null || code=$?
    [ "$code" = "$want" ] || { echo "exit code $code, want $want"; cat "$dir/out"; return 1; }
}

# said TEXT...: each text must be part of a line of the output.
said() {
    local text
    for text in "$@"; do
        grep -qaF -- "$text" "$dir/out" || { echo "not said: $text"; cat "$dir/out"; return 1; }
    done
}

# begins ARG...: starts the agent in the background. Its output goes to $dir/out.
begins() {
    : >"$dir/out"
    "$agent" "$@" >"$dir/out" 2>&1 &
    pid=$!
}

# ends CODE: the agent in the background must end with that exit code.
ends() {
    local code=0
    wait "$pid" || code=$?
    [ "$code" = "$1" ] || { echo "exit code $code, want $1"; cat "$dir/out"; return 1; }
}

# until_said TEXT: waits until the agent in the background has printed the text.
until_said() {
    local i
    for ((i = 0; i < 600; i++)); do
        ! grep -qaF -- "$1" "$dir/out" || return 0
        sleep 0.1
    done
    echo "never said: $1"
    return 1
}

nobody_left() { # MARK: no process has it in its command line
    local i
    for ((i = 0; i < 100; i++)); do
        pgrep -f -- "$1" >/dev/null || return 0
        sleep 0.1
    done
    pgrep -af -- "$1"
    return 1
}

ranks_have_their_environment() {
    # shellcheck disable=SC2016
    runs 0 run --processes 3 --master-port 29511 -- sh -c \
        'echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $PET_NPROC_PER_NODE"' &&
        said "[rank 0] 0 0 3 3 127.0.0.1 29511 3" "[rank 2] 2 2 3 3 127.0.0.1 29511 3"
}

gpus_are_shared() {
    # shellcheck disable=SC2016
    NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b runs 0 run --processes 2 --gpu-visibility own -- sh -c \
        'echo "sees $CUDA_VISIBLE_DEVICES, device $CADRE_DEVICE"' &&
        said "[rank 0] sees 0, device 0" "[rank 1] sees 1, device 0" &&
        NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b runs 126 run --gpus 3 -- true &&
        said "each process should get 3 GPUs (spec.worker.gpus, or --gpus), but there are 2 here" &&
        CUDA_VISIBLE_DEVICES=5,7,8 runs 0 run --processes 3 --gpu-visibility own --process-gpus '1,2;-;0' -- sh -c \
            'echo "sees $CUDA_VISIBLE_DEVICES, device $CADRE_DEVICE"' &&
        said "[rank 0] sees 7,8, device 0" "[rank 1] sees , device -1" "[rank 2] sees 5, device 0" &&
        CUDA_VISIBLE_DEVICES=5 runs 1 run --process-gpus x -- true && said "rank 0: x is not a list of GPUs" &&
        CUDA_VISIBLE_DEVICES=5 runs 126 run --process-gpus 1 -- true && said "there is no GPU 1 here: there are 1 GPUs" &&
        CUDA_VISIBLE_DEVICES=5 runs 1 run --process-gpus '0;0' -- true && said "has more than 1 processes: 0"
}

ranks_find_each_other() {
    runs 0 run --processes 4 -- "$rendezvous" --exit && said "[rank 0] roll-call: 4 of 4 ranks" "[rank 3] "
}

first_failure_ends_all() {
    # shellcheck disable=SC2016
    runs 3 run --processes 3 -- sh -c '[ "$RANK" != 1 ] || { echo about to fail; exit 3; }; exec sleep $MARK.1' &&
        said "[rank 1] about to fail" "[agent] rank 1: exit code 3" && nobody_left "sleep $MARK.1"
}

death_by_signal() {
    # shellcheck disable=SC2016
    runs 139 run -- sh -c 'kill -SEGV $$' && said "[agent] rank 0: ended by signal 11 (Segmentation fault)"
}

missing_command() {
    runs 127 run --processes 2 -- no-such-program &&
        said ": cannot start no-such-program: no such file or directory in PATH: is it in the image?"
}

deaf_process_is_killed() {
    begins run --grace 1 -- sh -c 'trap "" TERM; echo deaf; while :; do sleep $MARK.2; done'
    until_said "[rank 0] deaf" && kill -TERM "$pid" && ends 137 &&
        said "[agent] signal 15: stopping" "ended by signal 9" && nobody_left "sleep $MARK.2"
}

second_signal_kills() {
    begins run --grace 600 -- sh -c 'trap "" TERM; echo deaf; while :; do sleep $MARK.3; done'
    until_said "[rank 0] deaf" && kill -TERM "$pid" && until_said "signal 15: stopping" && kill -TERM "$pid" &&
        ends 137 && nobody_left "sleep $MARK.3"
}

graceful_stop() {
    begins run --processes 2 -- sh -c 'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    until_said "[rank 0] ready" && until_said "[rank 1] ready" && kill -TERM "$pid" && ends 0 &&
        said "[rank 0] saved" "[rank 1] saved"
}

killed_agent_takes_all_along() {
    begins run -- sh -c 'echo ready; exec sleep $MARK.4'
    until_said "[rank 0] ready" && kill -KILL "$pid" && ends 137 && nobody_left "sleep $MARK.4"
}

orphans_end_too() {
    runs 0 run -- sh -c 'setsid sh -c "sleep $MARK.5 & sleep $MARK.5" & sleep $MARK.5 & setsid sleep $MARK.5 & exit 0' &&
        nobody_left "sleep $MARK.5"
}

long_line() { # 10 MB without a newline: every byte comes out, in lines of at most 64 KiB
    runs 0 run -- sh -c 'head -c 10000000 /dev/zero | tr "\0" x' || return 1
    local bytes lines
    bytes=$(tr -dc x <"$dir/out" | wc -c)
    lines=$(grep -c '^\[rank 0\] x*$' "$dir/out")
    # A busy machine makes pauses of a second, after which a part of a line is shown.
    [ "$bytes" = 10000000 ] && [ "$lines" -gt 152 ] && [ "$lines" -lt 200 ] || { echo "$bytes in $lines lines"; return 1; }
}

lines_stay_whole() { # of many ranks, over both streams into one pipe
    # shellcheck disable=SC2016
    "$agent" run --processes 8 -- sh -c \
        'i=0; while [ $i -lt 2000 ]; do echo "line $i of $RANK end"; echo "err $i of $RANK end" >&2; i=$((i + 1)); done' \
        2>&1 | cat >"$dir/out"
    local whole
    whole=$(grep -cE '^\[rank ([0-7])\] (line|err) [0-9]+ of \1 end$' "$dir/out")
    [ "$whole" = 32000 ] && [ "$(wc -l <"$dir/out")" = 32000 ] || { echo "$whole whole lines"; return 1; }
}

slow_reader() { # nothing is lost, and the agent can be stopped meanwhile
    # shellcheck disable=SC2016
    "$agent" run -- sh -c 'i=0; while [ $i -lt 100000 ]; do echo "$i"; i=$((i + 1)); done' |
        { sleep 1; cat; } >"$dir/out" && [ "$(tail -n 1 "$dir/out")" = "[rank 0] 99999" ] &&
        [ "$(wc -l <"$dir/out")" = 100000 ]
}

waits_for_its_operator() { # which is not there; and ends when it is told to
    begins --operator ws://127.0.0.1:9 --token-file= -- true
    until_said "operator at 127.0.0.1:9: not reached, trying again: cannot connect" && kill -TERM "$pid" && ends 0
}

installs_itself() {
    mkdir -p "$dir/bin" && runs 0 install "$dir/bin" && cmp "$agent" "$dir/bin/cadre-agent" &&
        "$dir/bin/cadre-agent" run -- true && runs 0 install "$dir/bin" && [ "$(ls "$dir/bin")" = cadre-agent ] &&
        runs 1 install "$dir/none" && said "cannot install into $dir/none: No such file or directory"
}

brings_what_python_needs() { # from beside itself, and workers in Python find it
    mkdir -p "$dir/image/bin" "$dir/image/lib/cadre" "$dir/pod" && cp "$agent" "$dir/image/bin" &&
        touch "$dir/image/lib/cadre/"{cadre.zip,libcadre.so,libuv.so.1,other} &&
        "$dir/image/bin/cadre-agent" install "$dir/pod" &&
        [ "$(ls "$dir/pod" | tr '\n' ' ')" = "cadre-agent cadre.zip libcadre.so libuv.so.1 " ] &&
        [ "$(CADRE_PYTHON=a PYTHONPATH=/b "$dir/pod/cadre-agent" run -- sh -c 'echo $PYTHONPATH $CADRE_CLIENT_LIBRARY')" = \
            "[rank 0] $dir/pod/cadre.zip:/b $dir/pod/libcadre.so" ]
}

watches_gpus() { # by the program that lies beside it, or where an image that has both has it
    local agent
    mkdir -p "$dir/both/bin" "$dir/both/lib/cadre" "$dir/installed" && cp "$1" "$dir/both/bin" &&
        printf '#!/bin/sh\necho "{\\"error\\":\\"$0 looks\\"}"\n' >"$dir/both/lib/cadre/cadre-gpus" &&
        chmod +x "$dir/both/lib/cadre/cadre-gpus" && "$dir/both/bin/cadre-agent" install "$dir/installed" || return 1
    for agent in "$dir/both/bin/cadre-agent" "$dir/installed/cadre-agent"; do
        NVIDIA_VISIBLE_DEVICES=all begins --operator ws://127.0.0.1:9 --token-file= -- true
        until_said "GPUs: not watched: $(dirname "$agent")/" && kill -TERM "$pid" && ends 0 || return 1
    done
}

wrong_command_lines() {
    runs 2 run && said "run needs a command" && runs 2 run --processes 0 -- true && said "from 1 to 1024" &&
        runs 2 --operator ws://x:1 start && said "unknown subcommand" && runs 2 -- true && said "no operator" &&
        runs 1 --operator x:1 && said "must be wss://HOST:PORT" && runs 2 install && runs 2 run --no-such -- true &&
        runs 0 --help && said "Usage: cadre-agent" && runs 0 --version && said "cadre-agent "
}

check "ranks have their environment" ranks_have_their_environment
check "GPUs are shared" gpus_are_shared
check "four ranks find each other" ranks_find_each_other
check "the first failure ends all, and is the exit code" first_failure_ends_all
check "death by a signal is 128 and its number" death_by_signal
check "a missing command is named" missing_command
check "a process that ignores SIGTERM is killed after the grace time" deaf_process_is_killed
check "a second SIGTERM kills at once" second_signal_kills
check "a process that ends in good order on SIGTERM makes exit code 0" graceful_stop
check "an agent that is killed takes its processes along" killed_agent_takes_all_along
check "orphans in sessions of their own end with the last process" orphans_end_too
check "10 MB without a newline come out whole" long_line
check "lines of eight ranks stay whole" lines_stay_whole
check "a slow reader loses nothing" slow_reader
check "without its operator it waits, and ends on SIGTERM" waits_for_its_operator
check "it installs itself" installs_itself
check "it brings what workers in Python need" brings_what_python_needs
check "it watches GPUs by a program of its own" watches_gpus "$agent"
check "wrong command lines are refused" wrong_command_lines
tap_end
