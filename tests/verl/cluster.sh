#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of verl, as its source has them, with their workers in pods of a dev cluster, which it starts and removes; prints
# a table. Needs root, and what `make build` makes.
#   tests/verl/cluster.sh [--way WAY]... [FILE...]
#
#   FILE   as for run.sh; default: the files of single_controller.txt
#   --way  groups: by cadre.verl, in pods · actors: without it, in pods · local-groups, local-actors: on this machine ·
#          ray: Ray itself, on this machine. Default: groups and actors
#
# The output of each run that fails follows its row. Exit status: 0 all passed, 1 one failed, 77 this machine cannot run a
# cluster, or verl cannot be had.
# shellcheck disable=SC2034
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() { sed -n '5,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

ways=() files=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --way)
        case ${2:-} in
        groups | actors | local-groups | local-actors | ray) ways+=("$2") ;;
        *) usage >&2 && exit 2 ;;
        esac
        shift
        ;;
    -h | --help) usage && exit ;;
    -*) usage >&2 && exit 2 ;;
    *) files+=("$1") ;;
    esac
    shift
done
[[ ${#ways[@]} -gt 0 ]] || ways=(groups actors)
[[ ${#files[@]} -gt 0 ]] || mapfile -t files <"$here/single_controller.txt"

if [[ -z ${CADRE_BUILD_DIR:-} ]]; then
    for preset in release dev ci; do
        [[ ! -e $here/../../build/$preset/worker/host/libcadre.so ]] || break
    done
    CADRE_BUILD_DIR=$(readlink -m "$here/../../build/$preset")
fi
export CADRE_BUILD_DIR CADRE_KUBECTL_CADRE=${CADRE_KUBECTL_CADRE:-$CADRE_BUILD_DIR/cli/kubectl-cadre}
export CADRE_CLIENT_LIBRARY=$CADRE_BUILD_DIR/worker/host/libcadre.so CADRE_LOCAL=$CADRE_BUILD_DIR/operator/local/cadre-local
export CADRE_AGENT=$CADRE_BUILD_DIR/worker/agent/cadre-agent
for part in suite group calls outside programs; do
    # shellcheck source=/dev/null
    . "$here/../lib/$part.sh"
done

# run_file WAY FILE
run_file() {
    case $1 in
    groups | actors) programs_verl_tests "$@" ;;
    local-groups) LOGICAL_GPUS=4 "$here/run.sh" "$2" ;;
    local-actors) LOGICAL_GPUS=4 "$here/run.sh" --actors "$2" ;;
    ray) LOGICAL_GPUS=4 "$here/run.sh" --ray "$2" ;;
    esac
}

# outcome_of WAY FILE: sets $outcome, for the table. Fails if the file does. Its output goes to $suite_dir/WAY.
outcome_of() {
    local code=0 began=$SECONDS
    run_file "$@" >"$suite_dir/$1" 2>&1 || code=$?
    outcome=$(grep -oE '[0-9]+ (passed|failed|errors?)\b' "$suite_dir/$1" | tail -n 3 | paste -sd ' ') || true
    case $code in
    0) ;;
    77) outcome=skipped && sed -n 's/^.*SKIP /# skipped: /p' "$suite_dir/$1" >&2 ;;
    *) outcome="**${outcome:-exit status $code}**" ;;
    esac
    outcome+=", $((SECONDS - began)) s"
    [[ $code == 0 || $code == 77 ]]
}

# Waits until the pods of the last file are gone, so that they are not in the way of the next one.
settled() {
    [[ " ${ways[*]} " != *" groups "* && " ${ways[*]} " != *" actors "* ]] ||
        eventually 60 is "" kc get pods -n ship -o name
}

row() { # FILE
    local way row outcome failed=()
    row="| \`$(basename "$1")\` |"
    for way in "${ways[@]}"; do
        outcome_of "$way" "$1" || failed+=("$way")
        row+=" $outcome |"
        settled
    done
    echo "$row"
    for way in "${failed[@]}"; do
        echo "# $1, $way:"
        tail -n 60 "$suite_dir/$way" | sed 's/^/# /'
    done
    [[ ${#failed[@]} == 0 ]]
}

"$here/run.sh" --bring
if [[ " ${ways[*]} " == *" groups "* || " ${ways[*]} " == *" actors "* ]]; then
    "$here/../fixture.sh" programs >&2
    suite_start verl --nodes 1
    calls_images=(python)
    calls_install --set crds.install=false
    programs_rights
else
    suite_dir=$(mktemp -d)
    trap 'rm -rf "$suite_dir"' EXIT
fi
printf '| file |%s\n|---|%s\n' "$(printf ' %s |' "${ways[@]}")" "$(printf -- '---|%.0s' "${ways[@]}")"
result=0
for file in "${files[@]}"; do
    row "$file" || result=1
done
exit "$result"
