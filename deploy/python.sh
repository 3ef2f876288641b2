#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Brings packages of Python that tests and benchmarks compare with or build on, and prints the interpreter that has them.
# Packages that are there already are used again. Exit code 77: pip cannot bring them.
#   python.sh small    numpy, cloudpickle and safetensors
#   python.sh large    torch, Ray and verl as well: 6 GB
# They lie in ~/.cache/cadre/python: another list of versions (deploy/python/*.txt) is another folder. CADRE_PYTHON3 names
# the interpreter that they are for (python3).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
list=$here/python/${1:-}.txt
if [[ $# -ne 1 || ! -f $list ]]; then
    sed -n '5,6s/^# *//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
python=${CADRE_PYTHON3:-python3}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/python
tag=$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
folder=$cache/$1-$tag-$(sha256sum "$list" | cut -c 1-12)

# By one process at a time; the mark says that it is complete. Scripts of an environment name its path, so it cannot be
# made elsewhere and moved.
mkdir -p "$cache"
exec 9>"$folder.lock"
flock 9
if [[ ! -e $folder/complete ]]; then
    echo "python: bringing $(grep -cv '^#' "$list") packages of deploy/python/$1.txt into $folder" >&2
    rm -rf "$folder"
    if ! { "$python" -m venv "$folder" &&
        "$folder/bin/python" -m pip --disable-pip-version-check --retries 1 --timeout 20 install --quiet --no-cache-dir \
            --requirement "$list"; } >&2; then
        rm -rf "$folder"
        echo "python: the packages of deploy/python/$1.txt cannot be had (the reason is above)" >&2
        exit 77
    fi
    touch "$folder/complete"
fi
echo "$folder/bin/python"
