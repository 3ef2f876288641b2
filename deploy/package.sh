#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies the Python package to DEST/cadre, together with the package cloudpickle, which it brings along; pip fetches that
# the first time.
#   package.sh DEST
#   package.sh --fetch    puts cloudpickle beside this script, for an image build that can reach no package index
set -euo pipefail

version=3.1.2
hash=9acb47f6afd73f60dc1df93bb801b472f05ff42fa6c84167d25cb206be1fbf4a
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
beside=$root/deploy/cloudpickle
cached=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/cloudpickle-$version

fetch() {
    local new
    mkdir -p "$(dirname "$cached")"
    new=$(mktemp -d "$cached.XXXXXX")
    echo "cloudpickle==$version --hash=sha256:$hash" >"$new/requirements.txt"
    if ! python3 -m pip --disable-pip-version-check install --quiet --root-user-action ignore --no-deps --no-compile \
        --require-hashes --only-binary :all: --target "$new/package" -r "$new/requirements.txt" >&2; then
        rm -rf "$new"
        echo "package: error: pip cannot fetch cloudpickle $version; is python3-pip installed, and can it reach a" \
            "package index?" >&2
        exit 1
    fi
    mv -T "$new/package" "$cached" 2>/dev/null || [[ -e $cached/cloudpickle ]] # another one was faster
    rm -rf "$new"
}

[[ ! -e $beside/cloudpickle-$version.dist-info ]] || cached=$beside
[[ -e $cached/cloudpickle ]] || fetch
if [[ $1 == --fetch ]]; then
    [[ $cached == "$beside" ]] || { rm -rf "$beside" && cp -r "$cached" "$beside"; }
    exit 0
fi
dest=$1
mkdir -p "$dest"
cp -r "$root/sdk/python/cadre" "$dest/"
rm -f "$dest"/cadre/*.so* # left there by somebody
mkdir "$dest/cadre/_vendor"
touch "$dest/cadre/_vendor/__init__.py"
cp -r "$cached/cloudpickle" "$dest/cadre/_vendor/"
cp "$cached"/cloudpickle-*.dist-info/licenses/LICENSE "$dest/cadre/_vendor/cloudpickle/"
find "$dest" -name __pycache__ -prune -exec rm -r {} +
