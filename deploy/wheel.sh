#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds dist/cadre_sdk-*.whl: the Python package with its C library, the programs of local runs, and kubectl-cadre.
#   wheel.sh [BUILD [DEST]]     BUILD: a folder of the preset release that is built already; else this builds it
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/wheel}
dest=${2:-dist}

if [[ $# -eq 0 ]]; then
    deploy/deps.sh wheel
    cmake --preset release -B "$build" -DCADRE_TESTS=OFF >/dev/null
    cmake --build "$build" --target cadre cadre-agent cadre-local kubectl-cadre
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
deploy/package.sh "$folder"
python3 deploy/wheel.py "$build" "$folder" "$dest"
