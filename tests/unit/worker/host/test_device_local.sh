#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tensors on the device between the ranks of a local run, over the stand-in for the driver. They stay there while
# references name them, go from rank to rank by handles, and come to clients. Their memory is freed with the reference. An
# error of the GPU fails the call, or restarts the ranks, and is reported. tests/gpu/test_gpu.sh does the same on a GPU.
# Arguments: the folder of the sources, cadre-local, cadre-agent, cadre-worker, kubectl-cadre, stand_in_tensor.so, the
# folder of the stand-in.
set -euo pipefail
root=$1 local=$2 agent=$3 worker=$4 cli=$5 module=$6 driver=$7
# shellcheck source=tests/lib/local.sh
. "$root/tests/lib/local.sh"

group() { # NAME RESOURCE
    cat >"$work/$1.yaml" <<YAML
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: $1, namespace: default}
spec:
  replicas: 2
  restartPolicy: Group
  maxRestarts: 3
  restartBackoff: {initialSeconds: 1}
  worker: {module: $module}
  template:
    spec:
      containers: [{name: worker, image: none, resources: {limits: {$2: 1}}}]
YAML
}

start() { # NAME
    rm -rf "$work/gpu"
    mkdir "$work/gpu"
    echo "memory 10000000" >"$work/gpu/control"
    GPU_STAND_IN=$work/gpu LD_LIBRARY_PATH=$driver local_start -f "$work/$1.yaml"
    until_true run call "$1" left
}

run() { # VERB GROUP ARGUMENT...
    "$cli" "$1" "${patient[@]}" "${@:2}" --server "unix:$work/socket" --token x
}

gives() { # ROW RESULT VERB GROUP ARGUMENT...
    local row=$1 want=$2 got
    shift 2
    got=$(run "$@" | tr -d ' \n')
    [[ $got == "$want" ]] || fail "$row: $got, not $want"
    echo "ok - $row: $got"
}

imports() {
    wc -l <"$work/gpu/imports"
}

memories() {
    find "$work/gpu" -name 'memory.*' | wc -l
}

is_free() {
    [[ $(memories) -eq 0 ]]
}

has_one() {
    [[ $(memories) -eq 1 ]]
}

group two nvidia.com/gpu
export CUDA_VISIBLE_DEVICES=0,1
start two
x=$(run call two ramp 1000 --rank 0 --keep)
until_true has_one # a result that is kept is one piece of memory of the device
gives "a reference on a device is the argument of all ranks" "[499500,499500]" call two sum "$x"
[[ $(imports) -eq 1 ]] || fail "the other rank opened $(imports) handles"
y=$(run call two twice "$x" --keep)
gives "results stay on each rank's device, and are used there" "[999000,999000]" call two sum "$y" --dispatch all-to-all
[[ $(imports) -eq 2 ]] || fail "after twice() on both ranks, $(imports) handles were opened"
run get two "$x" >"$work/got"
grep -q '"x"' "$work/got" || fail "a client gets $(cat "$work/got")"
echo "ok - a client gets the tensor"
run free two "$x" >/dev/null
run free two "$y" >/dev/null
until_true is_free
echo "ok - with the references, the memory of the device is freed"
run call two ramp 1000 >"$work/got"
grep -q '"x"' "$work/got" || fail "a client gets $(cat "$work/got")"
until_true is_free
echo "ok - a result that is not kept comes to the host, and leaves nothing on the device"

echo "import 201" >>"$work/gpu/control"
x=$(run call two ramp 1000 --rank 0 --keep)
gives "without handles it goes through the host" "[499500,499500]" call two sum "$x"
run free two "$x" >/dev/null

cli_says "out of memory of the device" "the GPU has no room for 40000000 bytes" call two ramp 10000000
gives "the ranks live on" "[10000000,10000000]" call two left

echo "exit-waits" >>"$work/gpu/control"
cli_says "an illegal address" "cudaErrorIllegalAddress" call two stray --rank 1
until_true grep -q 'Tensors.stray: the GPU: it is lost to this process: CUDA_ERROR_ILLEGAL_ADDRESS (700): only a new' "$work/err" "$work/out"
# The rank with the lost GPU ends by itself. The agent stops the other one, and kills it after the grace time.
until_true run call two left # a call before that fails with the rank that ends
gives "though the driver hangs in their end, the ranks are started again" "[10000000,10000000]" call two left
sed -i /exit-waits/d "$work/gpu/control"

echo "gpus -1" >"$work/gpu/control"
cli_says "no GPU behind the driver" "NVIDIA's driver sees no GPU here" call two ramp 10
unset CUDA_VISIBLE_DEVICES

# CADRE_DEVICE is -1 for GPUs of an unknown kind: the device layer uses host memory, and asks no driver.
group other amd.com/gpu
start other
x=$(run call other ramp 1000 --rank 0 --keep)
gives "ranks with GPUs of another kind have views in memory of the host" "[499500,499500]" call other sum "$x"
is_free || fail "the driver was asked"
