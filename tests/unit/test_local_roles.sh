#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example with roles as real worker processes without a cluster: row S2-10 of the notebooks. Arguments: the source
# tree, cadre-local, cadre-agent, cadre-worker, kubectl-cadre, the folder of tensor.so.
set -euo pipefail
source=$1 local=$2 agent=$3 worker=$4 cli=$5 modules=$6
work=$(mktemp -d)
pid=
cleanup() {
    [[ -z $pid ]] || kill -TERM "$pid" 2>/dev/null || true
    [[ -z $pid ]] || wait "$pid" || true
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "not ok - $*"
    cat "$work/err"
    exit 1
}

# is ROW WANT ARGUMENT...: what the CLI prints, on stdout or stderr, is or contains that.
is() {
    local row=$1 want=$2 got
    shift 2
    got=$("$cli" "$@" --server "unix:$work/socket" --token x 2>&1) || true
    [[ $got == *"$want"* ]] || fail "$row: $got, not $want"
    echo "ok - $row: $got"
}

PATH=$(dirname "$worker"):$PATH "$local" -f "$source/examples/roles.yaml" --map "/modules=$modules" \
    --listen "unix:$work/socket" --agent "$agent" 2>"$work/err" &
pid=$!
for _ in $(seq 300); do
    [[ ! -S $work/socket ]] || break
    sleep 0.1
done

zeros='{"a": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}'
is "S2-10 actor.add" '{"a": [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]}' call ppo add "$zeros" --role actor
is "S2-10 critic.sub, of the same data" '{"a": [-10, -10, -10, -10, -10, -10, -10, -10, -10, -10]}' \
    call ppo sub "$zeros" --role critic
is "no role" 'ppo has several roles: the call of add() says which one (role): actor, critic' call ppo add "$zeros"
is "no role, one rank" 'the group has roles, and the call says none; there are: actor, critic' \
    call ppo add "$zeros" --rank 1
is "no such role" "ppo has no role 'judge'; it has: actor, critic" call ppo add "$zeros" --role judge
is "another role's method" "critic of default/ppo has no method 'add'; it has: sub" call ppo add "$zeros" --role critic
# A process that is stopped hears nothing, and is ended all the same
victim=$(pgrep -f cadre-worker -P "$(pgrep -P "$pid" -f 'cadre-agent run')" | while read -r p; do
    tr '\0' '\n' <"/proc/$p/environ" | grep -qx RANK=1 && echo "$p"
done)
kill -STOP "$victim"
is "kill" 'rank 1 of ppo killed' kill ppo --rank 1
[[ ! -e /proc/$victim ]] || fail "rank 1 is still there"
grep -q 'rank 1 was killed by a controller' "$work/err" || fail "no last words"
is "all are started again, as the object says" '{"a": [0, 1]}' call ppo add '{"a": [0, 0]}' --role actor
is "info" 'Role:     critic (class Critic)' info ppo
is "info: the methods" '"name": "sub"' info ppo -o json
