#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example of references with real worker processes and no cluster: results that stay on the workers, results that go
# from one role to the other, and objects that outlive the session. Arguments: the source tree, cadre-local, cadre-agent, cadre-worker,
# kubectl-cadre, tensor.so, references.
set -euo pipefail
source=$1 local=$2 agent=$3 worker=$4 cli=$5 module=$6 references=$7
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

local_start -f "$source/examples/roles.yaml" --map "/modules=$(dirname "$module")"
"$references" "unix:$work/socket" default ppo >"$work/references.out" 2>"$work/references.err" || fail "references"
diff - <(sed 's/cadre:1:[^"]*/cadre:1:.../' "$work/references.out") <<'EXPECTED' || fail "what it prints"
scores: -10 -9 -7 -6
freed: NOT_FOUND
kept: {"$ref":"cadre:1:..."}
EXPECTED
echo "ok - put, call, call, get, free, pin"
kept=$(sed -n 's/^kept: //p' "$work/references.out")
"$cli" get "${patient[@]}" ppo "$kept" --server "unix:$work/socket" --token x >"$work/batch" ||
    fail "what is pinned outlives its session"
[[ $(tail -c 16 "$work/batch" | od -An -tf4 | xargs) == "-10 -9 -7 -6" ]] || fail "the pinned batch: $(od -c "$work/batch")"
echo "ok - what is pinned outlives its session"
PATH=$(dirname "$worker"):$PATH "$local" --listen "unix:$work/other" --agent "$agent" -f "$source/examples/roles.yaml" \
    --map "/modules=$(dirname "$module")" >"$work/other.out" 2>"$work/other.err" &
other=$!
until_true "$cli" info ppo --server "unix:$work/other" --token x
got=$("$cli" get "${patient[@]}" ppo "$kept" --server "unix:$work/other" --token x 2>&1) || true
kill -TERM "$other"
wait "$other" || true
[[ $got == *"the object is of another local run"* ]] || fail "in another run: $got"
echo "ok - in another run it is said whose it is"
cli_says "everybody who has the reference can free it" "" free ppo "$kept"
cli_says "and gone" NOT_FOUND get ppo "$kept"
