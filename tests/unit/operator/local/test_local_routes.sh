#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example of a structured argument with real worker processes and no cluster. Arguments: the source tree, cadre-local,
# cadre-agent, cadre-worker, kubectl-cadre, routes.so.
set -euo pipefail
source=$1 local=$2 agent=$3 worker=$4 cli=$5 module=$6
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

# picks TICKET PLACE
picks() {
    local got
    got=$("$cli" call "${patient[@]}" routes pick "$1" --server "unix:$work/socket" --token x) || fail "pick $1"
    [[ $got == "$2" ]] || fail "pick $1: $got, not $2"
    echo "ok - pick $1: $got"
}

local_start -f "$source/examples/routes.yaml" --map "/modules=$(dirname "$module")"
until_true "$cli" info routes --server "unix:$work/socket" --token x
cli_says "nothing was set" "no routes yet: call set first" call routes pick 1
cli_says "a list by position" "[2, 2]" call routes set '[[{"to": "small", "weight": 3}, {"to": "large", "weight": 1}]]'
picks 0 '"small"'
picks 2 '"small"'
picks 3 '"large"'
picks 4 '"small"'
cli_says "which one is wrong" "routes[1].weight must be an integer from 1 to 1000" call routes set \
    '{"routes": [{"to": "a", "weight": 1}, {"to": "b", "weight": 1.5}]}'
cli_says "a name is missing" "routes[0].to must be a string" call routes set '{"routes": [{"weight": 1}]}'
cli_says "no object" "routes[0].to must be a string" call routes set '{"routes": [7]}'
cli_says "a number that no integer holds" "routes[0].weight must be" call routes set '{"routes": [{"to": "a", "weight": 1e300}]}'
cli_says "no list" "routes must be a list of objects" call routes set '{"routes": {"to": "a", "weight": 1}}'
cli_says "an empty list" "routes must be a list of objects" call routes set '{"routes": []}'
picks 3 '"large"'
cli_says "a list by name" "[1, 1]" call routes set '{"routes": [{"to": "other", "weight": 1}]}'
picks 3 '"other"'
