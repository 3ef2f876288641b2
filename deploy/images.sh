#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the images localhost/cadre-{operator,worker,example,python}:dev and prints the path of a docker archive of each, for
# "devcluster load". On Debian 12 no registry is needed; elsewhere docker builds them.
#   images.sh [operator|worker|example|python]...     default: the first three
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/images

is_debian_12() {
    # shellcheck source=/dev/null
    [[ -r /etc/os-release ]] && [[ $(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}") == "debian 12" ]]
}

docker_build() { # TARGET
    local archive=$folder/docker-$1.tar
    mkdir -p "$folder"
    docker build --quiet --target "$1" --tag "localhost/cadre-$1:dev" --file "$root/Containerfile" "$root" >/dev/null
    docker save --output "$archive" "localhost/cadre-$1:dev"
    echo "$archive"
}

"$root/deploy/package.sh" --fetch
[[ $# -gt 0 ]] || set -- operator worker example
for target in "$@"; do
    if ! is_debian_12 && docker info >/dev/null 2>&1; then
        docker_build "$target"
    else
        "$root/deploy/devcluster/image" build --tag "localhost/cadre-$target:dev" --target "$target" \
            -f "$root/Containerfile" "$root"
    fi
done
