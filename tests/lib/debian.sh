#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates the root folder of another Debian release with its Python, from the mirror of this machine's apt, and prints the
# path of the folder. Uses an existing folder again.
#   debian.sh SUITE    such as trixie, which is Debian 13
# The folder is in ~/.cache/cadre/debian. Exit code 77: it cannot be created; the last line says why.
set -euo pipefail

suite=${1:?usage: debian.sh SUITE}
packages=python3-minimal,python3-venv
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/debian
folder=$cache/$suite-$(sha256sum <<<"$packages" | cut -c 1-12)

cannot() {
    echo "debian: $*" >&2
    exit 77
}

# Prints the Debian repository of this machine's apt, if there is one.
mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' |
        awk '$1 == "Packages" && $2 == "Debian" && $4 !~ /-/ && $5 == "main" { print $3; exit }'
}

[[ $EUID -eq 0 ]] || cannot "a root folder of Debian $suite needs root"
command -v mmdebstrap >/dev/null || cannot "a root folder of Debian $suite needs mmdebstrap"
mkdir -p "$cache"
exec 9>"$folder.lock"
flock 9
if [[ ! -e $folder/complete ]]; then
    from=$(mirror)
    [[ -n $from ]] || { apt-get update -qq >&2 && from=$(mirror); } || true
    [[ -n $from ]] || cannot "apt of this machine has no repository of Debian to make $suite from"
    rm -rf "$folder"
    mkdir "$folder"
    echo "debian: making Debian $suite by mmdebstrap" >&2
    mmdebstrap --quiet --mode=root --variant=apt --include="$packages" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --aptopt='Acquire::Languages "none"' \
        "$suite" "$folder/root" "$from" >"$cache/mmdebstrap.log" 2>&1 || {
        rm -rf "$folder"
        cannot "mmdebstrap cannot make Debian $suite: $(grep -m 1 "^E:" "$cache/mmdebstrap.log")"
    }
    touch "$folder/complete"
fi
echo "$folder/root"
