#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs examples/gpu_accumulator on the GPU of this machine, as in a cluster but without one: cadre-local is the proxy and
# starts a cadre-worker a rank, kubectl-cadre calls, all on this host.
#   test_gpu.sh [--report FILE]     builds the preset "cuda" first. FILE: what ran where, as Markdown, if all passed
#   test_gpu.sh --host BUILD MODULE
#                                   the same with the programs of that folder and an accumulator in host memory:
#                                   checks this script where there is no GPU
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 there is no GPU, or no CUDA compiler.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
report=
on_gpu=true
gpus=1
seconds=1
count=0
failed=0
local_pid=

stop_local() {
    [[ -n $local_pid ]] || return 0
    kill "$local_pid" 2>/dev/null || true
    wait "$local_pid" 2>/dev/null || true
    local_pid=
}

clean() {
    stop_local
    rm -rf "$dir"
}
trap clean EXIT

skip_all() { # REASON
    echo "1..0 # SKIP $1"
    exit 77
}

check() { # NAME COMMAND...: what it printed explains a failure
    local name=$1 status
    shift
    count=$((count + 1))
    set +e # within "if" or "||" the shell would go on after a command that fails in the middle
    (
        set -e
        "$@"
    ) >"$dir/diag" 2>&1
    status=$?
    set -e
    if [[ $status -eq 0 ]]; then
        echo "ok $count - $name"
    else
        failed=$((failed + 1))
        echo "not ok $count - $name"
        sed 's/^/# /' "$dir/diag"
        sed 's/^/# cadre-local: /' "$dir/local.log"
    fi
}

# How many CUDA will see, which is not always what nvidia-smi lists: a process sees one part of a GPU (MIG), and no GPU
# that it was not given.
gpus_seen() {
    if grep -q '^ *MIG ' "$dir/gpus"; then
        echo 1
    elif [[ -n ${CUDA_VISIBLE_DEVICES:-} ]]; then
        tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | wc -l
    else
        grep -c '^GPU ' "$dir/gpus"
    fi
}

build=
build_preset() {
    command -v nvidia-smi >/dev/null && nvidia-smi -L >"$dir/gpus" 2>&1 && grep -q '^GPU ' "$dir/gpus" ||
        skip_all "there is no GPU on this machine (nvidia-smi lists none)"
    gpus=$(gpus_seen)
    "$root/deploy/cuda.sh" >/dev/null || skip_all "there is a GPU, but no CUDA toolkit, and its wheels cannot be had"
    cd "$root"
    { cmake --preset cuda && cmake --build --preset cuda; } >"$dir/build.log" 2>&1 || {
        cat "$dir/build.log"
        echo "Bail out! the preset cuda does not build"
        exit 1
    }
    build=$root/build/cuda
    module=$build/examples/gpu_accumulator/gpu_accumulator.so
}

# start RANKS: a group of new objects. Rank r gets GPU r modulo their number, so that one GPU is enough.
start() {
    stop_local
    rm -f "$dir/socket"
    # shellcheck disable=SC2016 # the inner shell reads its own variables
    GPUS=$gpus "$build/operator/local/cadre-local" --listen "unix:$dir/socket" --group gpu --processes "$1" \
        --agent "$build/worker/agent/cadre-agent" -- \
        sh -c 'CADRE_DEVICE=$((RANK % GPUS)) exec "$@"' sh "$build/worker/host/cadre-worker" --module "$module" \
        >"$dir/local.log" 2>&1 &
    local_pid=$!
}

call() { # METHOD [ARGUMENT]...
    "$build/cli/kubectl-cadre" call gpu "$@" --server "unix:$dir/socket" --namespace default --token local
}

# gives RESULT METHOD [ARGUMENT]...
gives() {
    local want=$1 got
    shift
    got=$(call "$@" | tr -d ' \n')
    echo "$*: $got"
    [[ $got == "$want" ]]
}

# The constructor fails with the message of CUDA.
refuses_device() {
    local status=0
    CADRE_DEVICE=999 timeout 30 "$build/worker/host/cadre-worker" --module "$module" \
        --connect "unix:$dir/nobody" >"$dir/refused" 2>&1 || status=$?
    cat "$dir/refused"
    [[ $status -eq 66 ]]
    tail -n 1 "$dir/refused" | grep -q 'GPU 999: .*cudaErrorInvalidDevice'
}

# measures NAME MODULE: "calls/s median-us" of add on a group of two, one at a time and 1,000 in flight.
measures() {
    trap stop_local EXIT # of the subshell of check
    module=$2 start 2
    local add=(--server "unix:$dir/socket" --group gpu --method add --args '[1]' --seconds "$seconds")
    "$build/bench/calls/bench-calls" "${add[@]}" >"$dir/$1-sync"
    "$build/bench/calls/bench-calls" "${add[@]}" --in-flight 1000 >"$dir/$1-many"
    stop_local
    trap - EXIT
    cat "$dir/$1-sync" "$dir/$1-many"
    [[ $(cut -d ' ' -f 1 "$dir/$1-sync") -gt 0 && $(cut -d ' ' -f 1 "$dir/$1-many") -gt 0 ]]
}

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

run() {
    local begin
    begin=$(now_ms)
    start 2
    check "a group of two: each value begins as its rank (S0-7)" gives '[0,1]' get_value
    until_first=$(($(now_ms) - begin))
    [[ $failed -eq 0 ]] || { # the others would wait in vain, each for its while
        echo "Bail out! the group does not answer"
        exit 1
    }
    check "add with one argument a rank (S0-8)" gives '[1,4]' add --per-rank '[1,3]'
    check "the values stay on the device between calls" gives '[1,4]' get_value
    check "rank 0 alone (S1-11)" gives 4 foo_rank_zero '[1, 2]'
    start 2
    check "add with the same argument for all (S0-9)" gives '[10,11]' add 10
    start 4
    check "four ranks (S1-3)" gives '[1,2,3,4]' add --per-rank '[1,1,1,1]'
    stop_local
    check "calls are measured" measures gpu "$module"
    [[ $on_gpu == false ]] || check "calls of the accumulator in host memory are measured" \
        measures host "$build/examples/accumulator/accumulator.so"
    [[ $on_gpu == false ]] || check "a GPU that there is not is refused by its number" refuses_device
}

row() { # NAME KIND
    local gpu host
    read -r -a gpu <"$dir/gpu-$2"
    read -r -a host <"$dir/host-$2"
    echo "| $1 | ${gpu[0]} | ${gpu[1]} us | ${host[0]} | ${host[1]} us |"
}

write_report() {
    {
        echo "# On a GPU"
        echo
        echo "Written by \`make test-gpu\` on $(date -u +%F), version $(cat "$root/VERSION"): examples/gpu_accumulator through"
        echo "worker host and proxy on loopback, without Kubernetes."
        echo
        echo "| GPU | memory | driver |"
        echo "|---|---|---|"
        nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader |
            awk -F ', ' '{print "| " $1 " | " $2 " | " $3 " |"}'
        echo
        echo "CPU: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -n 1), $(nproc) cores."
        echo "Compiler: $("$("$root/deploy/cuda.sh")/bin/nvcc" --version | sed -n 's/.*release [^,]*, V/nvcc /p')."
        echo
        echo "All $count tests passed. From the start of a group of two to its first answer, with the"
        echo "creation of both CUDA contexts: $until_first ms."
        echo
        echo "\`add\` on both ranks, which starts a kernel and reads its result back; beside it the accumulator in host memory:"
        echo
        echo "| | calls/s on the GPU | median | calls/s in host memory | median |"
        echo "|---|---:|---:|---:|---:|"
        row "one at a time" sync
        row "1,000 in flight" many
    } >"$report"
}

case ${1:-} in
--host)
    on_gpu=false
    seconds=0.1
    build=$2
    module=$3
    ;;
--report) report=$(realpath -m "$2") ;;
"") ;;
*)
    echo "usage: test_gpu.sh [--report FILE | --host BUILD MODULE]" >&2
    exit 2
    ;;
esac
[[ $on_gpu == false ]] || build_preset
run
[[ -z $report || $failed -gt 0 ]] || write_report
echo "1..$count"
[[ $failed -eq 0 ]]
