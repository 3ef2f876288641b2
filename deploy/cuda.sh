#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds a CUDA toolkit, and sets one up from Python wheels where there is none (100 MB, no root, no driver needed).
# Prints its folder, the one with bin/nvcc in it. Uses parts again that are there already.
#   cuda.sh [PART]...          toolkit (default): compiler and runtime; nccl: the collectives library, 300 MB;
#                              sanitizer: compute-sanitizer, 30 MB. One line for each part
#   cuda.sh --find [PART]...   installs nothing; fails where one is missing
# Looked at, in this order: $CUDA_HOME, $CUDA_PATH, nvcc on the PATH, /usr/local/cuda, ~/.cache/cadre/cuda; for the
# sanitizer, first compute-sanitizer on the PATH.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/cuda

fail() {
    echo "cuda: $*" >&2
    exit 1
}

# Where the wheels of a part lie: another list of versions is another folder.
wheels_of() { # PART
    echo "$cache/$1-$(sha256sum "$here/cuda/$1.txt" | cut -c 1-12)"
}

find_toolkit() {
    local root nvcc
    nvcc=$(command -v nvcc) || nvcc=
    for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "${nvcc:+$(dirname "$(dirname "$(readlink -f "$nvcc")")")}" \
        /usr/local/cuda "$(wheels_of toolkit)/nvidia/cu13"; do
        if [[ -n $root && -x $root/bin/nvcc ]]; then
            echo "$root"
            return 0
        fi
    done
    return 1
}

find_nccl() {
    local root
    for root in "$(find_toolkit)" /usr "$(wheels_of nccl)/nvidia/nccl"; do
        if [[ -n $root && -e $root/include/nccl.h ]]; then
            echo "$root"
            return 0
        fi
    done
    return 1
}

# The folder above the bin/ with compute-sanitizer in it.
find_sanitizer() {
    local root program
    program=$(command -v compute-sanitizer) || program=
    for root in "${program:+$(dirname "$(dirname "$(readlink -f "$program")")")}" "$(find_toolkit)" \
        "$(wheels_of sanitizer)/nvidia/cu13"; do
        if [[ -n $root && -x $root/bin/compute-sanitizer ]]; then
            echo "$root"
            return 0
        fi
    done
    return 1
}

# The names that linkers look for, which wheels leave out.
finish_toolkit() { # FOLDER
    local root=$1/nvidia/cu13
    ln -s lib "$root/lib64"
    ln -s libcudart.so.13 "$root/lib/libcudart.so"
    printf '__global__ void add(double *v) { *v += 1; }\nvoid f(double *v) { add<<<1, 1>>>(v); }\n' >"$1/probe.cu"
    "$root/bin/nvcc" -arch=sm_90 -shared -Xcompiler -fPIC -o "$1/probe.so" "$1/probe.cu" >&2 ||
        fail "the toolkit is downloaded, but its nvcc cannot compile; is there a g++? (deploy/deps.sh cuda)"
    rm "$1/probe.cu" "$1/probe.so"
}

finish_nccl() { # FOLDER
    ln -s libnccl.so.2 "$1/nvidia/nccl/lib/libnccl.so"
}

# Removes its documents and the files for 32-bit programs. The sanitizer needs a driver to run, but not to print its version.
finish_sanitizer() { # FOLDER
    local root=$1/nvidia/cu13
    rm -r "$root/compute-sanitizer/docs"
    rm -rf "$root/compute-sanitizer/x86"
    chmod +x "$root/bin/compute-sanitizer" "$root/compute-sanitizer/"{compute-sanitizer,TreeLauncher*}
    "$root/bin/compute-sanitizer" --version >&2 || fail "compute-sanitizer is downloaded, but does not start"
}

# Complete or not there at all: it is made beside its place, by one process at a time.
install_part() { # PART
    local folder new
    python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip; run deploy/deps.sh cuda"
    folder=$(wheels_of "$1")
    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock 9
    if [[ ! -d $folder ]]; then
        new=$folder.new
        rm -rf "$new"
        echo "cuda: installing the $1 into $folder" >&2
        python3 -m pip --disable-pip-version-check install --quiet --root-user-action=ignore --retries 1 --timeout 20 \
            --no-deps --only-binary=:all: --require-hashes --no-compile --no-cache-dir --target "$new" \
            --requirement "$here/cuda/$1.txt" >&2 || {
            rm -rf "$new"
            fail "the wheels of deploy/cuda/$1.txt cannot be had (pip's reason is above)"
        }
        "finish_$1" "$new"
        mv "$new" "$folder"
    fi
    exec 9>&-
}

install=true
if [[ ${1:-} == --find ]]; then
    install=false
    shift
fi
[[ $# -gt 0 ]] || set -- toolkit
for part in "$@"; do
    [[ $part =~ ^(toolkit|nccl|sanitizer)$ ]] || fail "no part \"$part\"; there are toolkit, nccl and sanitizer"
    if ! "find_$part"; then
        [[ $install == true ]] || fail "no $part here; deploy/cuda.sh $part sets it up"
        install_part "$part"
        "find_$part"
    fi
done
