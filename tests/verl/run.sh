#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of verl, as its source has them, on Cadre:
#   tests/verl/run.sh [--ray | --actors | --both] FILE... | -m MODULE ARG... | --bring
#
#   --ray     on Ray itself, in the same environment
#   --both    on Cadre, then on Ray: main_ppo has to get as far on both. What Ray has printed is kept (tests/lib/ray_itself.py)
#   --actors  on cadre.ray alone: without cadre.verl, each worker of verl is an actor
#   --bring   only brings the environment
#   FILE      below verl's tests, such as single_controller/test_decorator_on_cpu.py, one of this folder, or a path; options
#             of pytest may follow
#   -m        runs a module instead of pytest: main_ppo
#
# The environment, verl 0.9.0 with torch and Ray, comes from deploy/python.sh; main_ppo.txt has what else main_ppo imports.
# The exit code is 77 where they cannot be had. CADRE_LOCAL, CADRE_AGENT and CADRE_CLIENT_LIBRARY name the programs of Cadre;
# where they are not set, it takes the programs of build/release or build/dev. LOGICAL_GPUS: how many there are (8).
# RAY_ADDRESS=auto: on a cluster, with the image and the template that docs/coming-from-ray.md names.
# MEMORY_GB: it begins when so much memory is available, and exits with 77 if that is not so within ten minutes. For
# test_data_transfer.py, which takes 12 GB, it is 16.
set -euo pipefail

version=0.9.0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/verl

usage() { sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# Fills a folder of the cache with pip, whole or not at all. One process at a time does this.
bring() { # FOLDER COMMAND...: the command fills the folder that it gets as its last argument
    local folder=$cache/$1 new
    [[ -d $folder ]] && return 0
    new=$(mktemp -d "$cache/new.XXXXXX")
    if "${@:2}" "$new" >&2; then
        mv "$new" "$folder"
    else
        rm -rf "$new"
        return 1
    fi
}

source_of_verl() { # with its tests, and compiled as pip compiles packages: else each process compiles it
    "$python" -m pip --disable-pip-version-check download --quiet --no-deps --no-build-isolation --no-binary :all: \
        --dest "$1" "verl==$version" && tar -xzf "$1/verl-$version.tar.gz" --strip-components 1 -C "$1" &&
        rm "$1/verl-$version.tar.gz" && "$python" -m compileall -q "$1/verl"
}

packages() {
    "$python" -m pip --disable-pip-version-check install --quiet --no-deps --requirement "$here/main_ppo.txt" --target "$1"
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
[[ ${1:-} == --ray || ${1:-} == --actors || ${1:-} == --both || ${1:-} == --bring ]] && on=${1#--} && shift
if [[ $# == 0 && $on != bring || ${1:-} == -h || ${1:-} == --help ]]; then
    usage
    exit $(($# == 0 ? 2 : 0))
fi
if [[ $on == both ]]; then
    logs=$(mktemp -d)
    trap 'rm -rf "$logs"' EXIT
    for way in cadre ray; do
        words=("$@")
        [[ $way == cadre ]] || words=(--ray "$@")
        code=0
        OUTPUT=--kept "$here/run.sh" "${words[@]}" >"$logs/$way" 2>&1 || code=$?
        [[ $code == 0 ]] || { cat "$logs/$way" && exit "$code"; }
    done
    "${CADRE_PYTHON3:-python3}" "$here/equally_far.py" "$logs/cadre" "$logs/ray" && exit
    OUTPUT=--forget "$here/run.sh" --ray "$@"
    exit 1
fi
[[ $* != *test_data_transfer.py* ]] || MEMORY_GB=${MEMORY_GB:-16}
memory() { awk "/^Mem$1:/"' {print int($2 / 1024 / 1024)}' /proc/meminfo; } # Total or Available, in GB
for ((tries = 60; $(memory Available) < ${MEMORY_GB:-0}; tries--)); do
    if [[ $tries == 0 || $(memory Total) -lt $MEMORY_GB ]]; then
        echo "1..0 # SKIP it needs $MEMORY_GB GB of memory, and $(memory Available) GB are available"
        exit 77
    fi
    sleep 10
done
extra=none
[[ ${1:-} == -m ]] && extra=packages-$(sha256sum "$here/main_ppo.txt" | cut -c 1-12)
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if ! python=$("$root/deploy/python.sh" large 9>&-) ||
    ! source=verl-$version-$("$python" -c 'import sys; print(sys.implementation.cache_tag)') || ! bring "$source" source_of_verl ||
    ! { [[ $extra == none ]] || bring "$extra" packages; }; then
    echo "1..0 # SKIP verl $version cannot be had (the reason is above)"
    exit 77
fi
exec 9>&-
[[ $on == bring ]] && exit

# The metadata of a wheel about its plugins, from the same file.
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
(cd "$root/sdk/python" && "$python" -W ignore -c 'from setuptools import setup; setup()' --quiet egg_info --egg-base "$own")

words=()
for word; do
    if [[ $word != -* && -e $cache/$source/tests/$word ]]; then
        word=tests/$word
    elif [[ $word != -* && $word == *.py && -e $here/$word ]]; then
        word=$here/$word
    elif [[ $word != -* && $word == *.py && -e $word ]]; then
        word=$(realpath "$word")
    fi
    words+=("$word")
done
[[ ${words[0]} == -m ]] || words=(-m pytest -p verl_on_cpu -p no:cacheprovider "${words[@]}")
export VERL_USE_EXTERNAL_MODULES=verl_on_cpu VERL_PLATFORM=cpu VERL_ENGINE_DEVICE=cuda TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=1
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}:$cache/$extra
cd "$cache/$source"
if [[ $on == ray ]]; then
    "$python" "$here/../lib/ray_itself.py" ${OUTPUT:+"$OUTPUT" "$here"} "${words[@]}"
    exit
fi
if [[ ${RAY_ADDRESS:-} != auto ]]; then
    program CADRE_LOCAL operator/local/cadre-local
    program CADRE_AGENT worker/agent/cadre-agent
fi
program CADRE_CLIENT_LIBRARY worker/host/libcadre.so
export PYTHONPATH=$root/sdk/python:$own:$PYTHONPATH CADRE_PYTHON3=$python
export VERL_USE_EXTERNAL_PLUGINS=cadre
[[ $on == actors ]] && VERL_USE_EXTERNAL_PLUGINS=none
sanitizer=$(ldd "$CADRE_CLIENT_LIBRARY" | awk '/lib[at]san/ { print $3 }')
if [[ -n $sanitizer ]]; then # which has to be there before Python
    export LD_PRELOAD=$sanitizer ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
fi
"$python" -m cadre.ray "${words[@]}"
