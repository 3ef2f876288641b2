#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what test_gpu.sh runs, for a machine with a GPU that has neither a compiler nor a network: a folder with the
# programs, stripped, and the shared libraries that they need, but not the ones of C, C++, the driver and NCCL; and
# compute-sanitizer, if it can be had.
#   pack.sh FOLDER                     builds the preset "cuda". FOLDER is made, and must not be there
#   pack.sh --stand-ins BUILD FOLDER   out of that build, with the stand-ins instead of the CUDA modules: a rehearsal
# There: FOLDER/tests/gpu/test_gpu.sh --build FOLDER [OPTION]...
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
MOST=$((64 << 20)) # bytes
build=
to_gpu=true
if [[ ${1:-} == --stand-ins ]]; then
    to_gpu=false
    build=$(realpath -e "${2:?}")
    shift 2
fi
[[ $# -eq 1 ]] || {
    sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2
    exit 2
}
to=$(realpath -m "$1")
[[ ! -e $to ]] || {
    echo "pack: $to is there already; name another folder, or remove it" >&2
    exit 1
}

files=(worker/host/{cadre-worker,libcadre_nccl.so,libcadre_gloo.so} worker/agent/{cadre-agent,cadre-gpus}
    operator/local/cadre-local cli/kubectl-cadre bench/gpu/{bench-gpu,bench-gpu-memory,bench-gpu-views}
    bench/calls/bench-calls examples/accumulator/accumulator.so examples/ddp/ddp.so examples/weights/transfer
    tests/gpu/device_weights.so)
if [[ $to_gpu == true ]]; then
    toolkit=$("$root/deploy/cuda.sh")
    build=$root/build/cuda
    (cd "$root" && cmake --preset cuda && cmake --build --preset cuda) >&2
    "$toolkit/bin/nvcc" --version | sed -n 's/.*release [^,]*, V/nvcc /p' >"$build/compiler"
    files+=(compiler examples/gpu_accumulator/gpu_accumulator.so examples/gpu_tensor/gpu_tensor.so
        examples/ddp/gpu_ddp.so tests/gpu/trouble.so)
else
    files+=(tests/unit/modules/stand_in_{tensor,trouble}.so tests/unit/worker/device/gpu/lib{cuda.so.1,nccl.so.2}
        tests/unit/worker/device/nvml_stand_in/libnvidia-ml.so.1)
fi

# Not libraries that every system has, in its own version.
needed_libraries() {
    (
        cd "$build"
        LD_LIBRARY_PATH=$build/tests/unit/worker/device/gpu ldd "${files[@]}" 2>/dev/null || true
    ) | awk '/not found/ {print "pack: there is no " $1 >"/dev/stderr"} $2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
        grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*|libstdc\+\+|libgcc_s|libcuda|libnccl)\.so\.[0-9]+$'
}

# libwebsockets looks for its plugin in one folder, which was compiled in. The copy looks in "lib" of the folder that it is
# started in.
copy_websockets() { # LIBRARY
    local home
    home=$(dirname "$(compgen -G '/usr/lib/*/libwebsockets-evlib_uv.so' || compgen -G '/usr/lib/libwebsockets-evlib_uv.so')")
    cp "$home/libwebsockets-evlib_uv.so" "$to/lib"
    python3 -c '
import sys
data, home = open(sys.argv[1], "rb").read(), sys.argv[3].encode() + b"\0"
assert data.count(home) == 1, "libwebsockets names the folder of its plugins otherwise"
open(sys.argv[2], "wb").write(data.replace(home, b"lib".ljust(len(home), b"\0")))
' "$1" "$to/lib/$(basename "$1")" "$home"
}

mkdir -p "$to/lib"
for file in "${files[@]}"; do
    install -D "$build/$file" "$to/$file"
    [[ $file == compiler ]] || strip --strip-unneeded "$to/$file"
done
for library in $(needed_libraries); do
    if [[ $library == */libwebsockets.so.* ]]; then
        copy_websockets "$library"
    else
        cp --dereference "$library" "$to/lib"
    fi
done
strip --strip-unneeded "$to"/lib/*
(cd "$root" && cp --parents VERSION tests/gpu/{test_gpu.sh,tap.sh,cases.sh,memcheck.sh,report.py} deploy/cuda.sh \
    deploy/cuda/{toolkit,nccl,sanitizer}.txt "$to")
if [[ $to_gpu == true ]] && sanitizer=$("$root/deploy/cuda.sh" sanitizer); then
    cp -r "$(dirname "$(readlink -f "$sanitizer/bin/compute-sanitizer")")/../compute-sanitizer" "$to/sanitizer"
fi
size=$(du -sb "$to" | cut -f 1)
echo "pack: $to: $((size >> 20)) MiB" >&2
[[ $size -le $MOST || $to_gpu == false ]] || {
    echo "pack: that is more than $((MOST >> 20)) MiB" >&2
    exit 1
}
