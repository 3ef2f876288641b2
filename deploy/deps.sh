#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and testing need, those that are missing only.
# (What a cluster on this machine needs besides: deploy/devcluster/deps.sh.)
#   deps.sh [PART]...     build (default), test, wheel, format, tidy, fuzz or cuda (for deploy/cuda.sh and
#                         make test-gpu); each includes build
#   deps.sh --check ...   installs nothing and fails when something is missing
set -euo pipefail

# shellcheck source=/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/devcluster/deps.sh" # for deps_install

# COMMAND-OR-FILE PACKAGE; X.pc is a module of pkg-config, X.so a library that is loaded at run time, X.a one of clang, /X a file or folder.
declare -A PARTS=(
    [build]="
cmake cmake
ninja ninja-build
cc gcc
gcc gcc
pkg-config pkg-config
libuv.pc libuv1-dev
libcurl.pc libcurl4-openssl-dev
libcjson.pc libcjson-dev
openssl.pc libssl-dev
yaml-0.1.pc libyaml-dev
libwebsockets.pc libwebsockets-dev
libwebsockets-evlib_uv.so libwebsockets-evlib-uv
libcap.pc libcap-dev
cmocka.pc libcmocka-dev
python3 python3
"
    [test]="
shellcheck shellcheck
clang-format clang-format
ccache ccache
g++ g++
libgloo.so libgloo-dev
"
    [wheel]="
pip3 python3-pip
readelf binutils
dpkg-source dpkg-dev
/usr/lib/python3*/ensurepip python3-venv
"
    [format]="
clang-format clang-format
"
    [tidy]="
clang-tidy clang-tidy
"
    [fuzz]="
clang clang
libclang_rt.fuzzer-*.a libclang-rt-dev
"
    [cuda]="
g++ g++
pip3 python3-pip
libgloo.so libgloo-dev
"
)

have() { # COMMAND-OR-FILE
    case $1 in
    /*) compgen -G "$1" >/dev/null ;;
    *.so) compgen -G "/usr/lib/$1" >/dev/null || compgen -G "/usr/lib/*/$1" >/dev/null ;;
    *.a) compgen -G "/usr/lib/llvm-*/lib/clang/*/lib/linux/$1" >/dev/null ;;
    *.pc) pkg-config --exists "${1%.pc}" 2>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

check=false
parts=(build)
for part in "$@"; do
    if [[ $part == --check ]]; then
        check=true
    elif [[ -n ${PARTS[$part]:-} ]]; then
        parts+=("$part")
    else
        echo "deps: no part \"$part\"; there are build, test, wheel, format, tidy, fuzz and cuda" >&2
        exit 2
    fi
done

missing=()
for part in "${parts[@]}"; do
    while read -r need package; do
        [[ -z $need || " ${missing[*]} " == *" $package "* ]] || have "$need" || missing+=("$package")
    done <<<"${PARTS[$part]}"
done
# gcc alone has no headers of the C library.
[[ -e /usr/include/stdio.h ]] || missing+=(libc6-dev)

[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $check == true ]]; then
    echo "deps: missing: ${missing[*]}" >&2
    exit 1
fi
deps_install "${missing[@]}"
