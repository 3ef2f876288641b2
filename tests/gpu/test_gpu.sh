#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs modules on the GPU of this machine, as in a cluster but without one: cadre-local is the proxy and starts a
# cadre-worker a rank, kubectl-cadre calls, all on this host. Then what the driver says of the GPUs, what the back end
# nccl adds to NCCL, and trouble on demand (trouble.cu).
#   test_gpu.sh [--report FILE]     builds the preset "cuda" first. FILE: what ran where, as Markdown, if all passed
#   test_gpu.sh --host BUILD MODULE TENSOR
#                                   the same with the programs of that folder, an accumulator in host memory, and a module
#                                   like gpu_tensor: checks this script where there is no GPU. CADRE_TEST_NVML and
#                                   CADRE_TEST_GPU: folders of stand-ins for the libraries of the driver and for NCCL
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 there is no GPU, or no CUDA compiler.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
report=
on_gpu=true
gpus=1
seconds=1
fill=67108864 # numbers in a tensor of 256 MiB
count=0
failed=0
local_pid=
socket=$dir/socket
nccl= # the folder of its library; empty = it is not here
driver= # the folder of the driver's library, if the loader does not find it
wrapper=() # around each worker
class= # of the module; empty = its only one

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

skip() { # NAME REASON
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
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
    { command -v nvidia-smi && nvidia-smi -L; } >"$dir/gpus" 2>&1 || true
    grep -q '^GPU ' "$dir/gpus" ||
        skip_all "there is no GPU on this machine (nvidia-smi lists none)"
    gpus=$(gpus_seen)
    "$root/deploy/cuda.sh" >/dev/null || skip_all "there is a GPU, but no CUDA toolkit, and its wheels cannot be had"
    if "$root/deploy/cuda.sh" nccl >"$dir/nccl-setup" 2>&1; then nccl=$("$root/deploy/cuda.sh" --find nccl); fi
    cd "$root"
    { cmake --preset cuda && cmake --build --preset cuda; } >"$dir/build.log" 2>&1 || {
        cat "$dir/build.log"
        echo "Bail out! the preset cuda does not build"
        exit 1
    }
    build=$root/build/cuda
    module=$build/examples/gpu_accumulator/gpu_accumulator.so
    tensor=$build/examples/gpu_tensor/gpu_tensor.so
    trouble=$build/tests/gpu/trouble.so
    ddp=$build/examples/ddp/gpu_ddp.so
    local toolkit
    toolkit=$("$root/deploy/cuda.sh")
    PATH=$PATH:$toolkit/bin
}

# start RANKS [DEVICE]: a group of new objects. Rank r gets GPU r modulo their number, so that one GPU is enough.
start() {
    stop_local
    rm -f "$socket"
    # shellcheck disable=SC2016 # the inner shell reads its own variables
    GPUS=$gpus DEVICE=${2:-} DRIVER=$driver "$build/operator/local/cadre-local" --listen "unix:$socket" --group gpu \
        --processes "$1" --agent "$build/worker/agent/cadre-agent" -- \
        sh -c 'export CADRE_DEVICE=${DEVICE:-$((RANK % GPUS))} LD_LIBRARY_PATH=$DRIVER${DRIVER:+:}$LD_LIBRARY_PATH
            exec "$@"' sh "${wrapper[@]}" "$build/worker/host/cadre-worker" --module "$module" ${class:+--class "$class"} \
        >"$dir/local.log" 2>&1 &
    local_pid=$!
}

cadre() { # VERB ARGUMENT...
    "$build/cli/kubectl-cadre" "$1" gpu "${@:2}" --server "unix:$socket" --namespace default --token local
}

call() { # METHOD [ARGUMENT]...
    cadre call "$@"
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

# fails TEXT METHOD: so says the call.
fails() {
    local text=$1 got
    shift
    if got=$(call "$@" 2>&1); then
        echo "$*: $got"
        return 1
    fi
    echo "$got"
    grep -qF "$text" <<<"$got"
}

# Two groups with objects of their own, on the same GPUs at the same time.
shares() {
    start 2
    gives '[0,1]' get_value
    first=$local_pid local_pid=
    trap 'stop_local; local_pid=$first; stop_local' EXIT # of the subshell of check
    socket=$dir/second start 2
    socket=$dir/second gives '[0,1]' get_value
    gives '[5,6]' add 5 &
    socket=$dir/second gives '[7,8]' add 7
    wait $!
    gives '[5,6]' get_value
    socket=$dir/second gives '[7,8]' get_value
}

# eventually COMMAND...: within two minutes it succeeds.
eventually() {
    for _ in $(seq 1200); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    echo "never: $*"
    return 1
}

# A reference to a tensor on the GPU of rank 0, as the argument of both ranks; results that stay on both.
lends() {
    local x y
    trap stop_local EXIT # of the subshell of check
    module=$tensor start 2
    x=$(call ramp '[1000]' --rank 0 --keep)
    gives '[499500,499500]' sum "$x"
    y=$(call twice "$x" --keep)
    gives '[999000,999000]' sum "$y" --dispatch all-to-all
    cadre get "$x" | grep -q '"x"'
    cadre free "$x"
    fails "it was freed" sum "$x"
    gives '[999000,999000]' sum "$y" --dispatch all-to-all
}

# has_left BYTES: of the GPU's memory.
has_left() {
    [[ $(call left --rank 0) -ge $1 ]]
}

# Until the GPU is full: the call fails, the worker lives, and what is freed can be used again.
fills() {
    local before x
    trap stop_local EXIT
    module=$tensor start 1
    call ramp '[1000]' >"$dir/first" # and what the first one sets up
    before=$(call left --rank 0)
    while x=$(call ramp "[$1]" --rank 0 --keep 2>"$dir/full"); do
        echo "$x" >>"$dir/kept"
    done
    cat "$dir/full"
    grep -q "the GPU has no room for $((4 * $1)) bytes" "$dir/full"
    while read -r x; do cadre free "$x"; done <"$dir/kept"
    rm "$dir/kept"
    eventually has_left "$before"
    x=$(call ramp "[$1]" --rank 0 --keep)
    cadre free "$x"
}

# The call fails, and the process ends, because it cannot use its GPU any more; the next one can.
goes_astray() { # MODULE METHOD [ARGUMENT]...
    trap stop_local EXIT
    module=$1 start 1
    fails cudaErrorIllegalAddress stray
    eventually grep -q 'the GPU: it is lost to this process: CUDA_ERROR_ILLEGAL_ADDRESS (700): only a new' "$dir/local.log"
    eventually call "${@:2}"
}

# made NAME CLASS: a group of two ranks, on the first GPU.
made() {
    local spec
    spec="{\"replicas\":2,\"worker\":{\"module\":\"$build/tests/gpu/device_weights.so\",\"class\":\"$2\"},
        \"template\":{\"spec\":{\"containers\":[{\"name\":\"worker\",\"image\":\"none\"}]}}}"
    curl -sS -m 60 --unix-socket "$socket" -H 'Authorization: Bearer local' -H 'Content-Type: application/json' \
        "http://x/v1/namespaces/default/workergroups/$1" -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.create\",
        \"params\":{\"lifetime\":\"Detached\",\"workerGroup\":{\"metadata\":{\"name\":\"$1\"},\"spec\":$spec}}}" | tee "$dir/made"
    grep -q '"result"' "$dir/made"
}

# Weights in memory of one GPU, from two ranks that have rows to two that have columns, three times: CUDA IPC.
moves_weights() {
    local visible=${CUDA_VISIBLE_DEVICES:-0}
    trap stop_local EXIT
    stop_local
    rm -f "$socket"
    CUDA_VISIBLE_DEVICES=${visible%%,*} LD_LIBRARY_PATH=$driver${driver:+:}${LD_LIBRARY_PATH:-} PATH=$build/worker/host:$PATH \
        "$build/operator/local/cadre-local" --serve --listen "unix:$socket" --agent "$build/worker/agent/cadre-agent" \
        >"$dir/local.log" 2>&1 &
    local_pid=$!
    eventually test -S "$socket"
    made trainer Trainer
    made server Server
    "$build/examples/weights/transfer" "unix:$socket" default trainer server | tee "$dir/moved"
    [[ $(grep -c '^1048576 bytes have moved, 1048576 of them from memory to memory$' "$dir/moved") -eq 3 ]]
    [[ $(tail -n 1 "$dir/moved") == "total of server: [393216,393216]" ]]
}

# Under compute-sanitizer, which looks at each access of each kernel.
sanitizes() {
    local x
    trap stop_local EXIT
    wrapper=(compute-sanitizer --tool memcheck --leak-check no)
    module=$tensor start 1
    x=$(call ramp '[100000]' --keep)
    gives '[4999950000]' sum "$x"
    gives '[9999900000]' sum "$(call twice "$x" --keep)"
    stop_local
    grep -q 'ERROR SUMMARY: 0 errors' "$dir/local.log"
}

# The same for the kernels of a model.
sanitizes_model() { # CLASS
    trap stop_local EXIT
    export LD_LIBRARY_PATH=$nccl/lib:$nccl:${LD_LIBRARY_PATH:-}
    wrapper=(compute-sanitizer --tool memcheck --leak-check no)
    step "$ddp" "$1" 1 gpu
    grep -q 'ERROR SUMMARY: 0 errors' "$dir/local.log"
}

# step MODULE CLASS RANKS NAME: the numbers of a step on four rows, into that file.
step() {
    class=$2 module=$1 start "$3"
    {
        call train_step '[1, 4]'
        call sample_grads 16
        call norm
    } >"$dir/$4"
    cat "$dir/$4"
    stop_local
}

# The kernels compute what the same functions compute on the CPU, but for rounding. With several GPUs, NCCL averages.
trains() { # CLASS
    local ranks=$gpus
    [[ $gpus -lt 4 ]] || ranks=4
    [[ $gpus -ne 3 ]] || ranks=2 # the rows are four
    trap stop_local EXIT
    export LD_LIBRARY_PATH=$nccl/lib:$nccl:${LD_LIBRARY_PATH:-}
    step "$build/examples/ddp/ddp.so" "$1" 1 host
    step "$ddp" "$1" "$ranks" gpu
    python3 -c '
import json, sys
def lines(path):
    decode = json.JSONDecoder().raw_decode
    text, at = open(path).read().strip(), 0
    while at < len(text):
        value, at = decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        yield [rank if isinstance(rank, list) else [rank] for rank in value]
for want, got in zip(lines(sys.argv[1]), lines(sys.argv[2]), strict=True):
    bound = 1e-4 * max(map(abs, want[0]))
    assert bound and all(abs(x - y) <= bound for rank in got for x, y in zip(want[0], rank, strict=True)), (want, got)
' "$dir/host" "$dir/gpu"
}

# "NAME cadre driver ratio" a line.
measures_memory() {
    local few=()
    [[ $on_gpu == true ]] || few=(--bytes 1048576 --rounds 2)
    LD_LIBRARY_PATH=$driver:${LD_LIBRARY_PATH:-} "$build/bench/gpu/bench-gpu-memory" "${few[@]}" >"$dir/memory"
    cat "$dir/memory"
    [[ $(grep -Ec '^(pinned|pageable)-(up|down) [0-9.]+ [0-9.]+ [0-9.]+$|^ipc [0-9.]+ [0-9.]+ [0-9.]+$|^copy-us [0-9.]+$' \
        "$dir/memory") -eq 6 ]]
}

# "device host kept" in microseconds: a run with a GPU, and one without.
measures_views() {
    local few=()
    [[ $on_gpu == true ]] || few=(--calls 5)
    module=$tensor start 1
    first=$local_pid local_pid=
    trap 'stop_local; local_pid=$first; stop_local' EXIT
    socket=$dir/second module=$tensor start 1 -1
    socket=$dir/second eventually call left
    "$build/bench/gpu/bench-gpu-views" "unix:$dir/socket" "unix:$dir/second" gpu "${few[@]}" >"$dir/views"
    cat "$dir/views"
    grep -Eq '^[0-9.]+ [0-9.]+ [0-9.]+$' "$dir/views"
}

# cadre-gpus tells of the GPUs that nvidia-smi lists.
watches() {
    sed -n 's/^GPU .*(UUID: \(.*\))$/\1/p' "$dir/gpus" | sort >"$dir/listed"
    LD_LIBRARY_PATH=${CADRE_TEST_NVML:-} timeout 60 "$build/worker/agent/cadre-gpus" >"$dir/watched" &
    until [[ -s $dir/watched ]] || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
    kill $! 2>/dev/null || true
    cat "$dir/watched"
    grep -o '"uuid":"[^"]*"' "$dir/watched" | cut -d '"' -f 4 | sort -u | diff "$dir/listed" -
}

# The call fails, the worker lives.
takes_too_much() {
    trap stop_local EXIT
    module=$1 start 1
    gives '[1]' get_one
    fails cudaErrorMemoryAllocation take_all
    gives '[1]' get_one
}

# With a GPU for each of two ranks they reduce; with one it is refused at once.
reduces() {
    trap stop_local EXIT
    export LD_LIBRARY_PATH=$nccl/lib:${LD_LIBRARY_PATH:-}
    module=$1 start 2
    if [[ $gpus -gt 1 ]]; then
        gives '[3,3]' reduce
    else
        fails "rank 0 and rank 1 have the same GPU" reduce
    fi
}

# An all_reduce that hangs on the stream of one rank: the call returns, the wait ends at the limit, the communicator is
# aborted, and the next one works on the same GPU.
aborts() { # MODULE
    trap stop_local EXIT
    export LD_LIBRARY_PATH=$nccl/lib:${LD_LIBRARY_PATH:-}
    module=$1 start 1
    gives '[1]' reduce
    fails "wait: collective 1 waited too long; all ranks have called it" hang
    gives '[1]' reduce
}

# "raw cadre difference" in microseconds.
measures_nccl() {
    local few=()
    [[ $on_gpu == true ]] || few=(--calls 5 --pairs 2)
    LD_LIBRARY_PATH=$nccl/lib:$nccl:${LD_LIBRARY_PATH:-} "$build/bench/gpu/bench-gpu" \
        "$build/worker/host/libcadre_nccl.so" "${few[@]}" >"$dir/nccl"
    cat "$dir/nccl"
    grep -Eq '^[0-9.]+ [0-9.]+ -?[0-9.]+$' "$dir/nccl"
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
    check "a group of four: each value begins as its rank (S0-7)" gives '[0,1,2,3]' get_value
    check "four ranks: add with one argument a rank (S0-8, S1-3)" gives '[1,2,3,4]' add --per-rank '[1,1,1,1]'
    check "... with the same argument for all (S0-9)" gives '[11,12,13,14]' add 10
    stop_local
    check "calls are measured" measures gpu "$module"
    [[ $on_gpu == false ]] || check "calls of the accumulator in host memory are measured" \
        measures host "$build/examples/accumulator/accumulator.so"
    check "two groups share the GPUs" shares
    check "cadre-gpus tells of the GPUs that nvidia-smi lists" watches
    run_tensors
    run_models
    if [[ -n $nccl ]]; then
        check "NCCL is measured with one rank" measures_nccl
    else
        skip "NCCL is measured with one rank" "its wheel cannot be had"
    fi
    [[ $on_gpu == false ]] || run_trouble "$trouble"
}

run_tensors() {
    check "tensors stay on the GPU, go to another rank, and are freed" lends
    check "the GPU is full: the call fails, the worker lives" fills "$fill"
    check "weights move between two groups on one GPU" moves_weights
    check "copies are measured" measures_memory
    check "calls with a tensor on the GPU are measured" measures_views
    if command -v compute-sanitizer >/dev/null; then
        check "compute-sanitizer finds nothing in gpu_tensor" sanitizes
    else
        skip "compute-sanitizer finds nothing in gpu_tensor" "it is not here"
    fi
}

run_models() {
    local model
    for model in MLP Attention; do
        if [[ -z $nccl || ! -e $build/worker/host/libcadre_gloo.so ]]; then
            skip "$model: a step on the GPU is that on the CPU (S2-5, S2-9)" "the wheel of NCCL cannot be had, or there is no gloo"
            continue
        fi
        check "$model: a step on the GPU is that on the CPU (S2-5, S2-9)" trains "$model"
        if command -v compute-sanitizer >/dev/null; then
            check "... and compute-sanitizer finds nothing in it" sanitizes_model "$model"
        else
            skip "... and compute-sanitizer finds nothing in it" "it is not here"
        fi
    done
}

run_trouble() {
    check "a GPU that there is not is refused by its number" refuses_device
    check "an illegal address: the call says so, and the next process has the GPU" goes_astray "$1" get_one
    check "out of device memory: the call fails, the worker lives" takes_too_much "$1"
    [[ -n $nccl ]] || return 0
    check "NCCL between two ranks, or its refusal on one GPU" reduces "$1"
    check "an all_reduce that hangs on a stream is aborted at the limit" aborts "$1"
}

row() { # NAME KIND
    local gpu host
    read -r -a gpu <"$dir/gpu-$2"
    read -r -a host <"$dir/host-$2"
    echo "| $1 | ${gpu[0]} | ${gpu[1]} us | ${host[0]} | ${host[1]} us |"
}

write_nccl() {
    local times
    [[ -s $dir/nccl ]] || return 0
    read -r -a times <"$dir/nccl"
    echo
    echo "An all_reduce of 4 bytes on the device with one rank, in turns, each waited for: NCCL itself ${times[0]} us, Cadre's"
    echo "back end ${times[1]} us; the median of the differences is ${times[2]} us."
}

write_memory() {
    local copy device host kept
    copy=$(sed -n 's/^copy-us //p' "$dir/memory")
    read -r device host kept <"$dir/views"
    echo
    echo "Copies of 256 MiB, in turns with the driver's own on the same memory; the median of Cadre, and the driver's best:"
    echo
    echo "| | Cadre | driver | ratio |"
    echo "|---|---:|---:|---:|"
    sed -n 's/^\([a-z-]*\) \([0-9.]*\) \([0-9.]*\) \([0-9.]*\)$/| \1 | \2 GB\/s | \3 GB\/s | \4 |/p' "$dir/memory"
    echo
    echo "\`pageable\` goes through Cadre's pinned buffers. \`ipc\` copies from memory of another process, against a copy within"
    echo "one process."
    echo
    echo "A call whose method takes a tensor of 1 MiB and waits for it, one at a time, in turns: on the GPU $device us, in host"
    echo "memory $host us; the copy alone $copy us; so the GPU's call takes $(ratio "$device" "$host" "$copy") times the host's and the copy."
    echo "With a reference to a tensor that is on the GPU already: $kept us."
}

ratio() { # DEVICE HOST COPY
    awk -v device="$1" -v host="$2" -v copy="$3" 'BEGIN {printf "%.2f", device / (host + copy)}'
}

write_report() {
    {
        echo "# On a GPU"
        echo
        echo "Written by \`make test-gpu\` on $(date -u +%F), version $(cat "$root/VERSION"): modules through worker host and"
        echo "proxy on loopback, without Kubernetes."
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
        write_memory
        write_nccl
    } >"$report"
}

case ${1:-} in
--host)
    on_gpu=false
    seconds=0.1
    build=$2
    module=$3
    tensor=$4
    ddp=$build/examples/ddp/ddp.so
    nccl=${CADRE_TEST_GPU:-}
    driver=$nccl
    fill=1000000
    export NVML_STAND_IN=$dir/driver GPU_STAND_IN=$dir/exchange ASAN_OPTIONS=detect_leaks=0
    mkdir "$GPU_STAND_IN" "$dir/bin"
    echo "memory 20000000" >"$GPU_STAND_IN/control"
    printf '#!/bin/sh\nshift 4\ntrap "kill \$!; wait \$!" TERM\n"$@" &\nwait $!\necho "ERROR SUMMARY: 0 errors"\n' \
        >"$dir/bin/compute-sanitizer"
    chmod +x "$dir/bin/compute-sanitizer"
    PATH=$dir/bin:$PATH
    echo "GPU 0: H200 (UUID: GPU-a)" >"$dir/gpus"
    echo "gpu GPU-a H200 0 40 0 0 ok" >"$NVML_STAND_IN"
    ;;
--report) report=$(realpath -m "$2") ;;
"") ;;
*)
    echo "usage: test_gpu.sh [--report FILE | --host BUILD MODULE TENSOR]" >&2
    exit 2
    ;;
esac
[[ $on_gpu == false ]] || build_preset
run
[[ -z $report || $failed -gt 0 ]] || write_report
echo "1..$count"
[[ $failed -eq 0 ]]
