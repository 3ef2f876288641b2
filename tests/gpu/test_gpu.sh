#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs examples/gpu_accumulator on the GPU of this machine, as in a cluster but without one: cadre-local is the proxy and
# starts a cadre-worker a rank, kubectl-cadre calls, all on this host.
#   test_gpu.sh [--report FILE]     builds the preset "cuda" first. FILE: what ran where, as Markdown
#   test_gpu.sh --host WORKER LOCAL CLI MODULE
#                                   the same with these programs and an accumulator in host memory: checks this script
#                                   where there is no GPU
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 there is no GPU, or no CUDA compiler.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
report=
on_gpu=true
gpus=1
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

build() {
    command -v nvidia-smi >/dev/null && nvidia-smi -L >"$dir/gpus" 2>&1 && grep -q '^GPU ' "$dir/gpus" ||
        skip_all "there is no GPU on this machine (nvidia-smi lists none)"
    gpus=$(grep -c '^GPU ' "$dir/gpus")
    "$root/deploy/cuda.sh" >/dev/null || skip_all "there is a GPU, but no CUDA toolkit, and its wheels cannot be had"
    cd "$root"
    cmake --preset cuda >"$dir/build.log" && cmake --build --preset cuda >>"$dir/build.log" || {
        cat "$dir/build.log"
        echo "Bail out! the preset cuda does not build"
        exit 1
    }
    worker=$root/build/cuda/worker/host/cadre-worker
    local=$root/build/cuda/operator/local/cadre-local
    cli=$root/build/cuda/cli/kubectl-cadre
    module=$root/build/cuda/examples/gpu_accumulator/gpu_accumulator.so
}

# start RANKS: a group of new objects. Rank r gets GPU r modulo their number, so that one GPU is enough.
start() {
    stop_local
    rm -f "$dir/socket"
    # shellcheck disable=SC2016 # the inner shell reads its own variables
    GPUS=$gpus "$local" --listen "unix:$dir/socket" --group gpu --processes "$1" -- \
        sh -c 'CADRE_DEVICE=$((RANK % GPUS)) exec "$@"' sh "$worker" --module "$module" --class Accumulator \
        >"$dir/local.log" 2>&1 &
    local_pid=$!
}

call() { # METHOD [ARGUMENT]...
    "$cli" call --server "unix:$dir/socket" gpu "$@"
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
    CADRE_DEVICE=999 "$worker" --module "$module" --connect "unix:$dir/nobody" >"$dir/refused" 2>&1 || status=$?
    cat "$dir/refused"
    [[ $status -eq 66 ]]
    tail -n 1 "$dir/refused" | grep -q 'GPU 999: .*cudaErrorInvalidDevice'
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
    check "add with one argument a rank (S0-8)" gives '[1,4]' add --per-rank '[1,3]'
    check "the values stay on the device between calls" gives '[1,4]' get_value
    check "rank 0 alone (S1-11)" gives 4 foo_rank_zero 1 2
    start 2
    check "add with the same argument for all (S0-9)" gives '[10,11]' add 10
    start 4
    check "four ranks (S1-3)" gives '[1,2,3,4]' add --per-rank '[1,1,1,1]'
    stop_local
    [[ $on_gpu == false ]] || check "a GPU that there is not is refused by its number" refuses_device
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
        echo "Compiler: $("$(deploy/cuda.sh)/bin/nvcc" --version | sed -n 's/.*release [^,]*, V/nvcc /p')."
        echo
        echo "$((count - failed)) of $count tests passed. From the start of a group of two to its first answer, with the"
        echo "creation of both CUDA contexts: $until_first ms."
    } >"$report"
}

case ${1:-} in
--host)
    [[ $# -eq 5 ]] || {
        echo "usage: test_gpu.sh --host WORKER LOCAL CLI MODULE" >&2
        exit 2
    }
    on_gpu=false
    worker=$2 local=$3 cli=$4 module=$5
    ;;
--report) report=$(realpath -m "$2") ;;
"") ;;
*)
    echo "usage: test_gpu.sh [--report FILE | --host WORKER LOCAL CLI MODULE]" >&2
    exit 2
    ;;
esac
[[ $on_gpu == false ]] || build
run
[[ -z $report ]] || write_report
echo "1..$count"
[[ $failed -eq 0 ]]
