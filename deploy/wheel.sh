#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds dist/cadre_sdk-*.whl, one for each machine: the Python package with its C library, the programs of local runs,
# and kubectl-cadre.
#   wheel.sh [BUILD [DEST]]     BUILD: a folder to build in (build/wheel)
# Exit code 69: no index of packages can be reached, so there is nothing to build with.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/wheel}
dest=${2:-dist}

[[ $# -gt 0 ]] || deploy/deps.sh wheel
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rm -f "$dest"/cadre_sdk-*.whl
for machine in x86_64 aarch64; do
    libraries=$(deploy/wheel/libraries.sh "$machine")
    cmake -G Ninja -S . -B "$build/$machine" -DCMAKE_TOOLCHAIN_FILE="$libraries/toolchain.cmake" \
        -DCMAKE_BUILD_TYPE=Release -DCADRE_PORTABLE=ON -DCADRE_TESTS=OFF -DCADRE_CUDA=OFF >"$folder/log" 2>&1 ||
        { cat "$folder/log" >&2 && exit 1; }
    cmake --build "$build/$machine" --target cadre cadre-agent cadre-local kubectl-cadre >"$folder/log" 2>&1 ||
        { cat "$folder/log" >&2 && exit 1; }
    deploy/package.sh "$folder/$machine"
    python3 deploy/wheel/write.py "$machine" "$build/$machine" "$libraries" "$folder/$machine" "$dest"
done
