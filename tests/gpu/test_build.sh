#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CUDA modules of examples/ compile, by the command in their first lines and by the preset "cuda", and load into
# cadre-worker, which without a GPU says what is missing.
#   test_build.sh CADRE-WORKER BUILD-FOLDER STAND-IN-FOLDER CADRE-LOCAL CADRE-AGENT KUBECTL-CADRE
# STAND-IN-FOLDER has a stand-in for the driver, which says that it is of an old version.
#
# Prints TAP. Exit status: 0 all passed, 1 a test failed, 77 there is no CUDA compiler and none can be had.
set -euo pipefail

worker=$1
build=$2
driver=$3
local=$4
agent=$5
cli=$6
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/gpu/tap.sh
. "$root/tests/gpu/tap.sh"

declare -A folder=([gpu_ddp]=ddp) # in examples/, where it has another name

# The first lines of the source say how to build it alone; a user who copies it has the SDK's header installed. They
# leave out what compilers before 12.8 do not know.
compile_by_comment() { # NAME
    local command sources=$root/examples/${folder[$1]:-$1}
    command=$(sed -n '/^   nvcc /,/\.cu$/p' "$sources/$1.cu")
    [[ -n $command ]]
    cd "$sources"
    find . '(' -name '*.c' -o -name '*.cu' -o -name '*.h' ')' -exec cp -t "$dir" {} +
    cd "$dir"
    PATH=$toolkit/bin:$PATH
    CPATH=$root/sdk/c/include eval "$command" -Xcompiler=-Wall,-Wextra -Werror=all-warnings "$newest"
}

describes() { # NAME CLASS METHOD...
    local method
    "$worker" --module "$dir/$1.so" --class "$2" --describe | tee "$dir/description"
    for method in "${@:3}"; do
        grep -q "\"name\":\"$method\"" "$dir/description"
    done
}

# is_fat MODULE KINDS
is_fat() {
    local got
    objcopy -O binary --only-section=.nv_fatbin "$1" "$dir/fatbin"
    got=$("$root/tests/gpu/fatbin.py" "$dir/fatbin")
    echo "holds $got"
    [[ $got == "$2" ]]
}

preset_is_fat() {
    is_fat "$build/examples/gpu_accumulator/gpu_accumulator.so" "$kinds"
    is_fat "$build/examples/gpu_tensor/gpu_tensor.so" "$kinds"
    is_fat "$build/examples/ddp/gpu_ddp.so" "$kinds"
}

is_small() { # NAME
    local size
    size=$(stat -c %s "$dir/$1.so")
    echo "$size bytes"
    [[ $size -lt 1000000 ]]
}

# Neither CUDA's nor C++'s: the image of a worker needs none.
needs_no_library() { # NAME
    ldd "$dir/$1.so" | tee "$dir/needs"
    ! grep -Ev 'linux-vdso|libc\.so|libm\.so|ld-linux|libpthread|libdl|librt' "$dir/needs"
}

exports_one_function() { # NAME
    [[ $(nm -D --defined-only "$dir/$1.so" | tee /dev/stderr | awk '{print $3}') == cadre_module ]]
}

# fails_with CODE TEXT [NAME=VALUE]...: the worker ends with that code, and its last line says the text.
fails_with() {
    fails_as gpu_accumulator Accumulator "$@"
}

fails_as() { # MODULE CLASS CODE TEXT [NAME=VALUE]...
    local module=$1 class=$2 want=$3 text=$4 got=0 last
    shift 4
    env --unset=CADRE_DEVICE RANK=1 WORLD_SIZE=2 "$@" "$worker" --module "$dir/$module.so" --class "$class" \
        --connect "unix:$dir/nobody" 2>"$dir/stderr" || got=$?
    last=$(tail -n 1 "$dir/stderr")
    echo "exit status $got: $last"
    [[ $got -eq $want && $last == "cadre-worker: rank 1: $class: "*"$text"* ]]
}

call() { # METHOD ARGUMENT...
    "$cli" call --timeout 20m tensors "$@" --server "unix:$dir/socket" --namespace default --token local
}

runs_on_host() {
    local x pid
    "$local" --listen "unix:$dir/socket" --group tensors --processes 2 --agent "$agent" -- \
        env CADRE_DEVICE=-1 "$worker" --module "$dir/gpu_tensor.so" &
    pid=$!
    # shellcheck disable=SC2064 # the pid of now
    trap "kill $pid; wait $pid" EXIT # of the subshell of check
    until [[ -S $dir/socket ]]; do sleep 0.1; done
    x=$(call ramp '[1000]' --rank 0 --keep)
    call sum "$x" | tee "$dir/sum"
    [[ $(tr -d ' \n' <"$dir/sum") == "[499500,499500]" ]]
    call sum "$(call twice "$x" --rank 1 --keep)" | tee "$dir/sum"
    [[ $(tr -d ' \n' <"$dir/sum") == "[999000,999000]" ]]
}

# The one of docs/modules.md, with the command that stands there.
compiles_document() {
    awk '$0 == "```cuda" {on = 1; next} on && $0 == "```" {exit} on' "$root/docs/modules.md" >"$dir/scale.cu"
    cd "$dir"
    PATH=$toolkit/bin:$PATH
    CPATH=$root/sdk/c/include eval "$(grep -m 1 '^nvcc .* -shared ' "$root/docs/modules.md") -Werror=all-warnings"
    "$worker" --module ./scale.so --describe | grep '"name":"scale"'
}

builds_preset() {
    cd "$root"
    cmake --preset cuda -B "$build" -DCADRE_WERROR=ON
    cmake --build "$build" --target module_gpu_accumulator module_gpu_tensor module_gpu_ddp module_trouble
    "$worker" --module "$build/examples/gpu_accumulator/gpu_accumulator.so" --describe
    "$worker" --module "$build/examples/gpu_tensor/gpu_tensor.so" --describe
    "$worker" --module "$build/examples/ddp/gpu_ddp.so" --class MLP --describe
}

# The CPU's side of test_gpu.sh reduces with gloo.
has_gloo() {
    grep -E '^CADRE_GLOO_LIBRARY:FILEPATH=/' "$build/CMakeCache.txt"
}

starts_sanitizer() {
    "$("$root/deploy/cuda.sh" --find sanitizer)/bin/compute-sanitizer" --version | grep 'Compute Sanitizer'
}

links_nccl() {
    cmake --build "$build" --target nccl_version
    "$build/tests/gpu/nccl_version"
}

: >"$dir/diag"
"$root/deploy/deps.sh" --check cuda 2>"$dir/diag" || skip_all "no C++ compiler or no pip for CUDA: deploy/deps.sh cuda"
toolkit=$(timeout 240 "$root/deploy/cuda.sh" 2>"$dir/diag") || skip_all "no CUDA toolkit, and its wheels cannot be had"

check "deploy/cuda.sh finds again what it has set up" "$root/deploy/cuda.sh" --find
kinds="compute_90 sm_80 sm_90" # compute_90 is PTX
newest=
"$toolkit/bin/nvcc" --list-gpu-arch >"$dir/known"
if grep -qx compute_100 "$dir/known"; then
    kinds="compute_90 sm_100 sm_80 sm_90"
    newest="-gencode arch=compute_100,code=sm_100"
else
    skip "modules compile for sm_100" "this CUDA compiler is older than 12.8 and does not know it"
fi
for name in gpu_accumulator gpu_tensor gpu_ddp; do
    check "$name compiles by the command in its first lines, without a warning" compile_by_comment "$name"
    check "... has code for the GPUs that its first lines name, and newer ones: $kinds" is_fat "$dir/$name.so" "$kinds"
    check "... is small" is_small "$name"
    check "... needs no library beside libc" needs_no_library "$name"
    check "... exports one function" exports_one_function "$name"
done
check "the modules describe themselves without a GPU" describes gpu_accumulator Accumulator add get_value foo_rank_zero
check "... the second" describes gpu_tensor Tensors ramp twice sum
check "... the third" describes gpu_ddp Attention train_step sample_grads norm
check "a worker that was given no GPU says so" fails_with 66 "this worker was given no GPU (CADRE_DEVICE is not set)"
check "... a model, too, and names the module that needs none" \
    fails_as gpu_ddp MLP 66 "this worker was given no GPU (CADRE_DEVICE is not set): let the pod ask for nvidia.com/gpu, or use the module ddp"
if [[ -e /dev/nvidiactl || -e /dev/dxg ]] || ldconfig -p | grep -q 'libcuda\.so\.1'; then
    skip "a node without a driver is named" "this machine has one"
    skip "... by a model, too" "this machine has one"
else
    check "a node without a driver is named" fails_with 66 "there is no CUDA driver (libcuda.so.1)" CADRE_DEVICE=0
    check "... by a model, too" fails_as gpu_ddp MLP 66 "there is no CUDA driver (libcuda.so.1)" CADRE_DEVICE=0
fi
mkdir "$dir/gpu"
echo "version 11000" >"$dir/gpu/control"
check "a driver that is older than the runtime of the module is named" \
    fails_with 66 "CUDA driver version is insufficient for CUDA runtime version (cudaErrorInsufficientDriver)" \
    CADRE_DEVICE=0 "LD_LIBRARY_PATH=$driver" "GPU_STAND_IN=$dir/gpu"
check "... by a model, too" \
    fails_as gpu_ddp Attention 66 "GPU 0: CUDA driver version is insufficient for CUDA runtime version (cudaErrorInsufficientDriver)" \
    CADRE_DEVICE=0 "LD_LIBRARY_PATH=$driver" "GPU_STAND_IN=$dir/gpu"
check "gpu_tensor runs in memory of the host" runs_on_host
check "the module of docs/modules.md compiles and loads" compiles_document
# Before the preset, which looks for it.
nccl=true
timeout 120 "$root/deploy/cuda.sh" nccl >"$dir/nccl" 2>&1 || nccl=false
check "the preset cuda configures and builds it, without a warning" builds_preset
check "... with code for $kinds" preset_is_fat
check "... with gloo, which deploy/deps.sh cuda installs" has_gloo
if [[ $nccl == true ]]; then
    check "NCCL is found and linked, and the library is the one of the header" links_nccl
else
    sed 's/^/# /' "$dir/nccl"
    skip "NCCL is found and linked" "its wheel cannot be had"
fi
if timeout 120 "$root/deploy/cuda.sh" sanitizer >"$dir/sanitizer" 2>&1; then
    check "deploy/cuda.sh has a compute-sanitizer that starts" starts_sanitizer
else
    sed 's/^/# /' "$dir/sanitizer"
    skip "deploy/cuda.sh has a compute-sanitizer that starts" "its wheel cannot be had"
fi
echo "1..$count"
[[ $failed -eq 0 ]]
