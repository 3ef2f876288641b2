#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs modules on the GPU of this machine, as in a cluster but without one: cadre-local is the proxy and starts a
# cadre-worker a rank, kubectl-cadre calls, all on this host. Then what the driver says of the GPUs, what the back end
# nccl adds to NCCL, and trouble on demand (trouble_methods.h).
#   test_gpu.sh [OPTION]...
#   --report FILE     writes what ran where, as Markdown, good or bad (report.py)
#   --part NAME       only these cases, each part in less than ten minutes: calls, tensors, models, nccl, trouble.
#                     May be there several times; default: all
#   --results FILE    keeps what was found, for report.py; what other parts have found stays in it
#   --build FOLDER    does not build: these programs, of pack.sh. Otherwise it builds the preset "cuda" first
#   --stand-ins       with --build FOLDER, which may be build/ci: an accumulator in host memory, and modules over stand-ins
#                     for the driver, NCCL and compute-sanitizer. Checks this script where there is no GPU.
#                     CADRE_STAND_IN_CONTROL has more lines for cuda_stand_in.c, CADRE_STAND_IN_GPUS the number of GPUs
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 there is no GPU, or no CUDA compiler.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
all_parts=(calls tensors models nccl trouble)
part_seconds=480
command_seconds=120
dir=$(mktemp -d)
report=
results=$dir/results
build=
parts=()
on_gpu=true
gpus=1
fill=67108864 # numbers in a tensor of 256 MiB
part=build
part_end=$((SECONDS + part_seconds))
declare -A verdicts=([passed]=0 [failed]=0 [skipped]=0)
nccl= # the folder of its library; empty = it is not here
sanitizer= # the folder of compute-sanitizer; empty = it is not here
module='' tensor='' trouble='' ddp=''

# shellcheck source=tests/gpu/tap.sh
. "$root/tests/gpu/tap.sh"

finish() {
    stop_local
    [[ -z $report || ! -s $results ]] || env -u LD_LIBRARY_PATH python3 "$root/tests/gpu/report.py" "$results" >"$report"
    rm -rf "$dir"
}

measured() { # NAME NUMBERS
    printf 'value\t%s\t%s\t%s\n' "$part" "$1" "$2" >>"$results"
}

note() { # VERDICT SECONDS NAME [REASON]
    verdicts[$1]=$((verdicts[$1] + 1))
    printf 'case\t%s\t%s\t%s\t%s\t%s\n' "$part" "$1" "$2" "$3" "${4:-}" >>"$results"
    [[ $1 == failed ]] || return 0
    sed 's/^/cadre-local: /' "$dir/local.log" >>"$dir/diag"
    tail -n 30 "$dir/diag" | tr '\t' ' ' | sed "s|^|said\t$part\t${3//[\\&|]/}\t|" >>"$results"
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

find_gpus() {
    { command -v nvidia-smi && nvidia-smi -L; } >"$dir/gpus" 2>&1 || true
    grep -q '^GPU ' "$dir/gpus" ||
        skip_all "there is no GPU on this machine (nvidia-smi lists none)"
    gpus=$(gpus_seen)
}

describe_machine() {
    local cpu compiler
    cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -n 1)
    compiler=$(cat "$build/compiler" 2>/dev/null || true)
    {
        sed 's/^/gpu\t/' "$dir/described"
        printf 'cpu\t%s, %s cores\ncompiler\t%s\n' "${cpu:-unknown}" "$(nproc)" "${compiler:-unknown}"
        printf 'version\t%s\ndate\t%s\n' "$(cat "$root/VERSION")" "$(date -u +%F)"
    } | sed 's/^/machine\t/' >>"$results"
}

build_preset() {
    local toolkit
    toolkit=$("$root/deploy/cuda.sh")
    cd "$root"
    cmake --preset cuda
    cmake --build --preset cuda
    "$toolkit/bin/nvcc" --version | sed -n 's/.*release [^,]*, V/nvcc /p' >"$build/compiler"
}

# The NCCL that came with torch.
nccl_of_torch() {
    local folder
    folder=$(python3 -c 'import importlib.util as u; print(u.find_spec("nvidia.nccl").submodule_search_locations[0])' 2>/dev/null) &&
        [[ -e $folder/lib/libnccl.so.2 ]] && echo "$folder"
}

# The one of this machine first: it is as old as the driver.
find_sanitizer() { # [--find]
    if command -v compute-sanitizer >/dev/null; then
        dirname "$(command -v compute-sanitizer)"
    elif "$root/deploy/cuda.sh" "$@" sanitizer >"$dir/sanitizer" 2>/dev/null; then
        echo "$(cat "$dir/sanitizer")/bin"
    else
        [[ -x $build/sanitizer/compute-sanitizer ]] && echo "$build/sanitizer"
    fi
}

# A driver in a place that the loader does not know.
find_driver() {
    local folder
    ! ldconfig -p | grep -q 'libcuda\.so\.1' || return 0
    for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib; do
        [[ ! -e $folder/libcuda.so.1 ]] || LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    done
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
}

end_unbuilt() {
    skip "the preset cuda builds" "there is a GPU, but no CUDA toolkit, and its wheels cannot be had"
    describe_machine
    echo "1..$count"
    exit 77
}

set_up_gpu() {
    local find=--find
    find_gpus
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader >"$dir/described"
    [[ -n $build ]] || {
        find=
        "$root/deploy/cuda.sh" >/dev/null || end_unbuilt
    }
    # shellcheck disable=SC2086 # it may be empty
    nccl=$("$root/deploy/cuda.sh" $find nccl 2>/dev/null) || nccl=$(nccl_of_torch) || nccl=
    sanitizer=$(find_sanitizer $find) || sanitizer=
    find_driver
    [[ -n $build ]] || {
        build=$root/build/cuda
        check "the preset cuda builds" build_preset
    }
    module=$build/examples/gpu_accumulator/gpu_accumulator.so
    tensor=$build/examples/gpu_tensor/gpu_tensor.so
    trouble=$build/tests/gpu/trouble.so
    ddp=$build/examples/ddp/gpu_ddp.so
}

set_up_stand_ins() {
    local stand_ins=$build/tests/unit/worker/device
    on_gpu=false
    module=$build/examples/accumulator/accumulator.so
    tensor=$build/tests/unit/modules/stand_in_tensor.so
    trouble=$build/tests/unit/modules/stand_in_trouble.so
    ddp=$build/examples/ddp/ddp.so
    nccl=$stand_ins/gpu
    sanitizer=$dir/bin
    part_seconds=5400 command_seconds=1200 # with sanitizers, on a machine that may be busy
    gpus=${CADRE_STAND_IN_GPUS:-1}
    fill=1000000
    export NVML_STAND_IN=$dir/driver GPU_STAND_IN=$dir/exchange ASAN_OPTIONS=detect_leaks=0
    export LD_LIBRARY_PATH=$stand_ins/gpu:$stand_ins/nvml_stand_in
    mkdir "$GPU_STAND_IN" "$dir/bin"
    printf '%s\n' "memory 20000000" "gpus $gpus" ${CADRE_STAND_IN_CONTROL:+"$CADRE_STAND_IN_CONTROL"} >"$GPU_STAND_IN/control"
    [[ $gpus -gt 1 ]] || echo "one-gpu" >>"$GPU_STAND_IN/control"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nlog=$6\nshift 6\n"$@"\necho "ERROR SUMMARY: 0 errors" >"$log"\n' >"$dir/bin/compute-sanitizer"
    chmod +x "$dir/bin/compute-sanitizer"
    echo "GPU 0: H200 (UUID: GPU-a)" >"$dir/gpus"
    echo "gpu GPU-a H200 0 40 0 0 ok" >"$NVML_STAND_IN"
    echo "stand-in, none, none" >"$dir/described"
}

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

run_calls() {
    local begin before=${verdicts[failed]}
    begin=$(now_ms)
    start 2
    check "a group of two: each value begins as its rank (S0-7)" gives '[0,1]' get_value
    [[ ${verdicts[failed]} -eq $before ]] || { # the others would wait in vain, each for its while
        skip "the other calls of the accumulator" "the group does not answer"
        return 0
    }
    measured first $(($(now_ms) - begin))
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
    sanitized "compute-sanitizer finds nothing in gpu_accumulator" sanitizes_accumulator
}

sanitized() { # NAME COMMAND...
    if [[ -n $sanitizer ]]; then
        check "$@"
    else
        skip "$1" "there is no compute-sanitizer, and its wheel cannot be had"
    fi
}

run_tensors() {
    check "tensors stay on the GPU, go to another rank, and are freed" lends
    check "the GPU is full: the call fails, the worker lives" fills "$fill"
    check "weights move between two groups on one GPU" moves_weights "$build/worker/host"
    check "copies are measured" measures_memory
    check "calls with a tensor on the GPU are measured" measures_views
    sanitized "compute-sanitizer finds nothing in gpu_tensor" sanitizes_tensors
    sanitized "compute-sanitizer finds nothing while weights move" sanitizes_weights
}

run_models() {
    local model why=
    [[ -n $nccl ]] || why="there is no NCCL, and its wheel cannot be had"
    [[ -e $build/worker/host/libcadre_gloo.so ]] || why="it was built without gloo (deploy/deps.sh cuda)"
    for model in MLP Attention; do
        if [[ -n $why ]]; then
            skip "$model: a step on the GPU is that on the CPU (S2-5, S2-9)" "$why"
            skip "compute-sanitizer finds nothing in $model" "$why"
            continue
        fi
        check "$model: a step on the GPU is that on the CPU (S2-5, S2-9)" trains "$model"
        sanitized "compute-sanitizer finds nothing in $model" sanitizes_model "$model"
    done
}

run_nccl() {
    local name
    [[ -n $nccl ]] || {
        for name in "NCCL is measured with one rank" "NCCL between two ranks, or its refusal on one GPU" \
            "weights move by NCCL, or by connections on one GPU" \
            "an all_reduce that hangs on a stream is aborted at the limit"; do
            skip "$name" "there is no NCCL, and its wheel cannot be had"
        done
        return 0
    }
    check "NCCL is measured with one rank" measures_nccl
    check "NCCL between two ranks, or its refusal on one GPU" reduces "$trouble"
    check "weights move by NCCL, or by connections on one GPU" moves_by_nccl
    check "an all_reduce that hangs on a stream is aborted at the limit" aborts "$trouble"
}

run_trouble() {
    [[ $on_gpu == false ]] || check "gpu_accumulator refuses a GPU that there is not by its number" refuses_device "$module"
    check "trouble refuses a GPU that there is not by its number" refuses_device "$trouble"
    check "an illegal address: the call says so, and the next process has the GPU" goes_astray "$trouble"
    check "out of device memory: the call fails, the worker lives" takes_too_much "$trouble"
}

# Forgets the results of an earlier run in these parts.
begin_results() {
    touch "$results"
    awk -F '\t' -v parts="build $*" 'BEGIN {n = split(parts, p, " "); for (i = 1; i <= n; i++) again[p[i]] = 1}
        !($1 != "machine" && $2 in again)' "$results" >"$dir/kept-results"
    cp "$dir/kept-results" "$results"
}

run() {
    for part in "${parts[@]}"; do
        part_end=$((SECONDS + part_seconds))
        : >"$dir/local.log"
        "run_$part"
    done
}

usage() {
    sed -n 's/^#   //p' "${BASH_SOURCE[0]}"
}

refuse() {
    usage >&2
    exit 2
}

stand_ins=false
while [[ $# -gt 0 ]]; do
    case $1 in
    --stand-ins) stand_ins=true ;;
    --build) build=$(realpath -e "${2:?}") && shift ;;
    --results) results=$(realpath -m "${2:?}") && shift ;;
    --report) report=$(realpath -m "${2:?}") && shift ;;
    --part)
        [[ " ${all_parts[*]} " == *" ${2:-none} "* ]] || refuse
        parts+=("$2") && shift
        ;;
    --help) usage && exit ;;
    *) refuse ;;
    esac
    shift
done
[[ ${#parts[@]} -gt 0 ]] || parts=("${all_parts[@]}")
[[ $stand_ins == false || -n $build ]] || refuse
: >"$dir/local.log"
begin_results "${parts[@]}"
# shellcheck source=tests/gpu/cases.sh
. "$root/tests/gpu/cases.sh"
trap finish EXIT
if [[ $stand_ins == true ]]; then set_up_stand_ins; else set_up_gpu; fi
describe_machine
PATH=$PATH${sanitizer:+:$sanitizer}
if [[ -d $build/lib ]]; then # what pack.sh has put there
    export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    cd "$build"
fi
[[ ${verdicts[failed]} -gt 0 ]] || run
echo "# ${verdicts[passed]} passed, ${verdicts[failed]} failed, ${verdicts[skipped]} skipped"
echo "1..$count"
[[ ${verdicts[failed]} -eq 0 ]]
