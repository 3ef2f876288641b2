#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of verl, as its source has them, on Cadre:  tests/verl/run.sh [--ray] FILE...
#
#   --ray   on Ray itself, in the same environment
#   FILE    below verl's tests, such as single_controller/test_decorator_on_cpu.py; options of pytest may follow
#
# The environment, verl 0.9.0 with torch and Ray, comes from deploy/python.sh. The exit code is 77 where it cannot be had.
# CADRE_LOCAL, CADRE_AGENT and CADRE_CLIENT_LIBRARY name the programs of Cadre; where they are not set, it takes those of
# build/release or build/dev. LOGICAL_GPUS: how many there are (8).
set -euo pipefail

version=0.9.0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/verl

usage() { sed -n '3,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# The source of verl, which has its tests. By one process at a time: whole or not at all.
bring_source() {
    local new
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9
    [[ -d $cache/verl-$version ]] && return 0
    new=$(mktemp -d "$cache/new.XXXXXX")
    "$python" -m pip --disable-pip-version-check download --quiet --no-deps --no-build-isolation --no-binary :all: \
        --dest "$new" "verl==$version" >&2 && tar -xzf "$new/verl-$version.tar.gz" -C "$new" &&
        mv "$new/verl-$version" "$cache/" && rm -r "$new"
}

program() { # VARIABLE PATH: sets the variable, unless it is set, to the file of a build
    local preset
    [[ -n ${!1:-} ]] && return 0
    for preset in release dev; do
        if [[ -e $root/build/$preset/$2 ]]; then
            export "$1=$root/build/$preset/$2"
            return 0
        fi
    done
    echo "run.sh: $2 is not built: make build, or set $1" >&2
    exit 1
}

on=cadre
[[ ${1:-} == --ray ]] && on=ray && shift
if [[ $# == 0 || $1 == -h || $1 == --help ]]; then
    usage
    exit $(($# == 0 ? 2 : 0))
fi
if ! python=$("$root/deploy/python.sh" large) || ! bring_source; then
    echo "run.sh: SKIP verl $version cannot be had (the reason is above)"
    exit 77
fi
exec 9>&-

files=()
for file; do
    [[ $file != -* && -e $cache/verl-$version/tests/$file ]] && file=tests/$file
    files+=("$file")
done
export VERL_USE_EXTERNAL_MODULES=verl_on_cpu VERL_PLATFORM=cpu TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=1
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}
cd "$cache/verl-$version"
if [[ $on == ray ]]; then
    for name in $(compgen -e | grep -i '_proxy$' || true); do
        unset "$name" # Ray asks it for loopback, too
    done
    export RAY_AUTH_MODE=disabled RAY_USAGE_STATS_ENABLED=0
    exec "$python" -m pytest -p verl_on_cpu -p no:cacheprovider "${files[@]}"
fi
program CADRE_LOCAL operator/local/cadre-local
program CADRE_AGENT worker/agent/cadre-agent
program CADRE_CLIENT_LIBRARY worker/host/libcadre.so
export PYTHONPATH=$root/sdk/python:$PYTHONPATH
exec "$python" -m cadre.ray -m pytest -p verl_on_cpu -p no:cacheprovider "${files[@]}"
