#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints a folder that has the Python package cloudpickle, in the version that Cadre's own package brings along; fetches
# it the first time, by pip.
#   cloudpickle.sh
set -euo pipefail

version=3.1.2
hash=9acb47f6afd73f60dc1df93bb801b472f05ff42fa6c84167d25cb206be1fbf4a
folder=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/cloudpickle-$version

if [[ ! -e $folder/cloudpickle ]]; then
    mkdir -p "$(dirname "$folder")"
    new=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    echo "cloudpickle==$version --hash=sha256:$hash" >"$new/requirements.txt"
    if ! python3 -m pip --disable-pip-version-check install --quiet --root-user-action ignore --no-deps --no-compile --require-hashes \
        --only-binary :all: --target "$new/package" -r "$new/requirements.txt" >&2; then
        echo "cloudpickle: error: pip cannot fetch cloudpickle $version; is python3-pip installed, and can it reach a" \
            "package index?" >&2
        exit 1
    fi
    mv -T "$new/package" "$folder" 2>/dev/null || [[ -e $folder/cloudpickle ]] # another one was faster
fi
echo "$folder"
