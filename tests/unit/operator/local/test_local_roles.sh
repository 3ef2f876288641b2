#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example with roles, with real worker processes and no cluster: row S2-10 of the notebooks. Arguments: the source
# tree, cadre-local, cadre-agent, cadre-worker, kubectl-cadre, the folder of tensor.so.
set -euo pipefail
source=$1 local=$2 agent=$3 worker=$4 cli=$5 modules=$6
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

local_start -f "$source/examples/roles.yaml" --map "/modules=$modules"

zeros='{"a": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}'
cli_says "S2-10 actor.add" '{"a": [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]}' call ppo add "$zeros" --role actor
cli_says "S2-10 critic.sub, of the same data" '{"a": [-10, -10, -10, -10, -10, -10, -10, -10, -10, -10]}' \
    call ppo sub "$zeros" --role critic
cli_says "no role" 'ppo has several roles: set the role of the call of add() to one of them: actor, critic' call ppo add "$zeros"
cli_says "no role, one rank" 'the group has roles, and the call names none; there are: actor, critic' \
    call ppo add "$zeros" --rank 1
cli_says "no such role" "ppo has no role 'judge'; it has: actor, critic" call ppo add "$zeros" --role judge
cli_says "another role's method" "critic of default/ppo has no method 'add'; it has: sub" call ppo add "$zeros" --role critic
# A stopped process reads nothing, and is killed all the same
victim=$(pgrep -f cadre-worker -P "$(pgrep -P "$pid" -f 'cadre-agent run')" | while read -r p; do
    tr '\0' '\n' <"/proc/$p/environ" | grep -qx RANK=1 && echo "$p"
done)
kill -STOP "$victim"
cli_says "kill" 'rank 1 of ppo killed' kill ppo --rank 1
[[ ! -e /proc/$victim ]] || fail "rank 1 is still there"
until_true grep -q 'rank 1 was killed by a client' "$work/err" # its last words
cli_says "all are started again, as the object says" '{"a": [0, 1]}' call ppo add '{"a": [0, 0]}' --role actor
cli_says "info" 'Role:     critic (class Critic)' info ppo
cli_says "info: the methods" '"name": "sub"' info ppo -o json
