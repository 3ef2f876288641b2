# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The cases of test_gpu.sh, in functions that its check() runs in a subshell. Each command in them ends in time.

: "${root:?}" "${dir:?}" "${gpus:?}" "${on_gpu:?}" "${part_end:?}" "${command_seconds:?}"
: "${build?}" "${module?}" "${tensor?}" "${ddp?}" "${nccl?}"
local_pid=
socket=$dir/socket
wrapper=() # around each worker
class= # of the module; empty = its only one

# The time that a command has: of its part, but never more than command_seconds.
limited() {
    local left=$((part_end - SECONDS))
    [[ $left -gt 0 ]] || {
        echo "the part has had its time"
        return 1
    }
    timeout -k 5 $((left < command_seconds ? left : command_seconds)) "$@"
}

stop_local() {
    [[ -n $local_pid ]] || return 0
    kill "$local_pid" 2>/dev/null || true
    eventually local_has_ended || true
    kill -KILL "$local_pid" 2>/dev/null || true
    wait "$local_pid" 2>/dev/null || true
    local_pid=
}

local_has_ended() {
    ! kill -0 "$local_pid"
}

# start RANKS [DEVICE]: a group of new objects. Rank r gets GPU r modulo their number, so that one GPU is enough.
start() {
    stop_local
    rm -f "$socket"
    # shellcheck disable=SC2016 # the inner shell reads its own variables
    GPUS=$gpus DEVICE=${2:-} "$build/operator/local/cadre-local" --listen "unix:$socket" --group gpu \
        --processes "$1" --agent "$build/worker/agent/cadre-agent" -- \
        sh -c 'export CADRE_DEVICE=${DEVICE:-$((RANK % GPUS))}; exec "$@"' sh "${wrapper[@]}" \
        "$build/worker/host/cadre-worker" --module "$module" ${class:+--class "$class"} >"$dir/local.log" 2>&1 &
    local_pid=$!
}

cadre() { # VERB ARGUMENT...
    limited "$build/cli/kubectl-cadre" "$1" gpu "${@:2}" --timeout "${command_seconds}s" --server "unix:$socket" \
        --namespace default --token local
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
refuses_device() { # MODULE
    local status=0
    CADRE_DEVICE=999 limited "$build/worker/host/cadre-worker" --module "$1" \
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

# eventually COMMAND...: within the time that a command has, it succeeds.
eventually() {
    local end=$((SECONDS + command_seconds))
    while [[ $SECONDS -lt $end && $SECONDS -lt $part_end ]]; do
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

# The call fails, and the process ends, because it cannot use its GPU any more; one of the next run can.
goes_astray() { # MODULE
    trap stop_local EXIT
    module=$1 start 1
    fails cudaErrorIllegalAddress stray
    eventually grep -q 'the GPU: it is lost to this process: CUDA_ERROR_ILLEGAL_ADDRESS (700): only a new' "$dir/local.log"
    module=$1 start 1
    gives '[1]' get_one
}

# made NAME CLASS RANKS NAME=VALUE...: a group with these variables.
made() {
    limited env -u LD_LIBRARY_PATH python3 - "$socket" "$build/tests/gpu/device_weights.so" "$@" <<'PYTHON'
import json, socket, sys
path, module, name, cls, ranks, *env = sys.argv[1:]
worker = {"module": module, "class": cls, "env": [dict(zip(("name", "value"), x.split("=", 1))) for x in env]}
spec = {"replicas": int(ranks), "worker": worker,
        "template": {"spec": {"containers": [{"name": "worker", "image": "none"}]}}}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "group.create",
                   "params": {"lifetime": "Detached", "workerGroup": {"metadata": {"name": name}, "spec": spec}}})
head = (f"POST /v1/namespaces/default/workergroups/{name} HTTP/1.1", "Host: x", "Authorization: Bearer local",
        "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close", "", "")
with socket.socket(socket.AF_UNIX) as s:
    s.connect(path)
    s.sendall(("\r\n".join(head) + body).encode())
    answer = b"".join(iter(lambda: s.recv(65536), b"")).decode()
print(answer)
sys.exit('"result"' not in answer)
PYTHON
}

# serves FOLDER: a local run without a group. The folder has the program cadre-worker.
serves() {
    stop_local
    rm -f "$socket"
    : >"$dir/local.log"
    PATH=$1:$PATH "$build/operator/local/cadre-local" --serve --listen "unix:$socket" \
        --agent "$build/worker/agent/cadre-agent" >"$dir/local.log" 2>&1 &
    local_pid=$!
    eventually grep -q "taking calls at unix:" "$dir/local.log"
}

# has_moved DIRECT TOTAL: three times, so many bytes of 1 MiB from memory to memory.
has_moved() {
    limited "$build/examples/weights/transfer" "unix:$socket" default trainer server | tee "$dir/moved"
    [[ $(grep -c "^1048576 bytes have moved, $1 of them from memory to memory$" "$dir/moved") -eq 3 ]]
    [[ $(tail -n 1 "$dir/moved") == "total of server: $2" ]]
}

# Weights in memory of one GPU, from two ranks that have rows to two that have columns, three times: CUDA IPC.
moves_weights() { # FOLDER: has the program cadre-worker
    local visible=${CUDA_VISIBLE_DEVICES:-0}
    trap stop_local EXIT
    CUDA_VISIBLE_DEVICES=${visible%%,*} serves "$1"
    made trainer Trainer 2
    made server Server 2
    has_moved 1048576 '[393216,393216]'
}

# From a rank on the first GPU to one on the last, as if they were in two pods: by NCCL. On one GPU, by connections.
moves_by_nccl() {
    local visible last=$((gpus - 1))
    visible=${CUDA_VISIBLE_DEVICES:-$(seq -s , 0 "$last")}
    trap stop_local EXIT
    with_nccl
    rm -f "${GPU_STAND_IN:-$dir}/inits"
    serves "$build/worker/host"
    made trainer Trainer 1 CADRE_TRANSFER_DIRECT=0 NCCL_DEBUG=INFO "CUDA_VISIBLE_DEVICES=${visible%%,*}"
    made server Server 1 CADRE_TRANSFER_DIRECT=0 NCCL_DEBUG=INFO "CUDA_VISIBLE_DEVICES=${visible##*,}"
    has_moved 0 '[786432]'
    if [[ $on_gpu == true && $gpus -gt 1 ]]; then
        grep -q 'NCCL INFO.*Init COMPLETE' "$dir/local.log"
    elif [[ $gpus -gt 1 ]]; then # one communicator, with two members
        [[ $(wc -l <"$GPU_STAND_IN/inits") -eq 2 ]]
    fi
}

# under_memcheck PROCESSES: so many have run under compute-sanitizer, which has looked at each access of each kernel.
under_memcheck() {
    local log clean=0
    eventually has_summaries "$1" || true # a summary may come after the end of its group
    for log in "$dir"/memcheck.*; do
        tail -n 20 "$log"
        ! grep -q 'ERROR SUMMARY: 0 errors' "$log" || clean=$((clean + 1))
    done
    [[ $clean -eq $1 ]]
}

has_summaries() {
    [[ $(cat "$dir"/memcheck.* | grep -c 'ERROR SUMMARY') -ge $1 ]]
}

begin_memcheck() {
    trap stop_local EXIT
    rm -f "$dir"/memcheck.*
    wrapper=("$root/tests/gpu/memcheck.sh" "$dir/memcheck")
}

sanitizes_accumulator() {
    begin_memcheck
    start 1
    gives '[0]' get_value
    gives '[5]' add 5
    gives 8 foo_rank_zero '[1, 2]'
    stop_local
    under_memcheck 1
}

sanitizes_tensors() {
    local x
    begin_memcheck
    module=$tensor start 1
    x=$(call ramp '[100000]' --keep)
    gives '[4999950000]' sum "$x"
    gives '[9999900000]' sum "$(call twice "$x" --keep)"
    stop_local
    under_memcheck 1
}

sanitizes_weights() {
    begin_memcheck
    mkdir -p "$dir/wrapped"
    printf '#!/bin/sh\nexec "%s" "%s" "%s" "$@"\n' "${wrapper[@]}" "$build/worker/host/cadre-worker" >"$dir/wrapped/cadre-worker"
    chmod +x "$dir/wrapped/cadre-worker"
    moves_weights "$dir/wrapped"
    stop_local
    under_memcheck 4
}

# The same for the kernels of a model.
sanitizes_model() { # CLASS
    begin_memcheck
    with_nccl
    step "$ddp" "$1" 1 gpu
    under_memcheck 1
}

with_nccl() {
    export LD_LIBRARY_PATH=$nccl/lib:$nccl:${LD_LIBRARY_PATH:-}
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
    with_nccl
    step "$build/examples/ddp/ddp.so" "$1" 1 host
    step "$ddp" "$1" "$ranks" gpu
    env -u LD_LIBRARY_PATH python3 -c '
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
    limited "$build/bench/gpu/bench-gpu-memory" "${few[@]}" >"$dir/memory"
    cat "$dir/memory"
    while read -r name numbers; do measured "$name" "$numbers"; done <"$dir/memory"
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
    limited "$build/bench/gpu/bench-gpu-views" "unix:$dir/socket" "unix:$dir/second" gpu "${few[@]}" >"$dir/views"
    cat "$dir/views"
    grep -Eq '^[0-9.]+ [0-9.]+ [0-9.]+$' "$dir/views"
    measured views "$(cat "$dir/views")"
}

# cadre-gpus tells of the GPUs that nvidia-smi lists.
watches() {
    sed -n 's/^GPU .*(UUID: \(.*\))$/\1/p' "$dir/gpus" | sort >"$dir/listed"
    limited "$build/worker/agent/cadre-gpus" >"$dir/watched" &
    until [[ -s $dir/watched ]] || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
    kill $! 2>/dev/null || true
    cat "$dir/watched"
    grep -o '"uuid":"[^"]*"' "$dir/watched" | cut -d '"' -f 4 | sort -u | diff "$dir/listed" -
}

# The call fails, the worker lives.
takes_too_much() { # MODULE
    trap stop_local EXIT
    module=$1 start 1
    gives '[1]' get_one
    fails cudaErrorMemoryAllocation take_all
    gives '[1]' get_one
}

# With a GPU for each of two ranks they reduce; with one it is refused at once.
reduces() { # MODULE
    trap stop_local EXIT
    with_nccl
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
    with_nccl
    module=$1 start 1
    gives '[1]' reduce
    fails "wait: collective 1 waited too long; all ranks have called it" hang
    gives '[1]' reduce
}

# "raw cadre difference" in microseconds.
measures_nccl() {
    local few=()
    [[ $on_gpu == true ]] || few=(--calls 5 --pairs 2)
    with_nccl
    limited "$build/bench/gpu/bench-gpu" "$build/worker/host/libcadre_nccl.so" "${few[@]}" >"$dir/nccl"
    cat "$dir/nccl"
    grep -Eq '^[0-9.]+ [0-9.]+ -?[0-9.]+$' "$dir/nccl"
    measured nccl "$(cat "$dir/nccl")"
}

# measures NAME MODULE: "calls/s median-us" of add on a group of two, one at a time and 1,000 in flight.
measures() {
    local seconds=1 kind
    [[ $on_gpu == true ]] || seconds=0.1
    trap stop_local EXIT # of the subshell of check
    module=$2 start 2
    local add=(--server "unix:$dir/socket" --group gpu --method add --args '[1]' --seconds "$seconds")
    limited "$build/bench/calls/bench-calls" "${add[@]}" >"$dir/sync"
    limited "$build/bench/calls/bench-calls" "${add[@]}" --in-flight 1000 >"$dir/many"
    cat "$dir/sync" "$dir/many"
    grep -Eqx '[0-9]+ [1-9][0-9]*' "$dir/sync" # "0 ...": a call took longer than two seconds
    grep -Eqx '[0-9]+ [1-9][0-9]*' "$dir/many"
    for kind in sync many; do measured "$1-$kind" "$(cat "$dir/$kind")"; done
}
