#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A local run has 64 descriptors, and 200 connections to its port send nothing. Its user still gets answers, and the run
# can start its agent again. Arguments: cadre-local, cadre-agent, cadre-worker, accumulator.so, kubectl-cadre.
set -euo pipefail
local=$1 agent=$2 worker=$3 module=$4 cli=$5
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

export XDG_RUNTIME_DIR=$work
PATH=$(dirname "$worker"):$PATH
cat >"$work/acc.yaml" <<'YAML'
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: acc, namespace: lab}
spec:
  worker: {module: /modules/accumulator.so}
  template: {spec: {containers: [{name: worker, image: none}]}}
YAML
(
    ulimit -n 64
    exec "$local" --listen 127.0.0.1:0 --agent "$agent" -f "$work/acc.yaml" --map "/modules=$(dirname "$module")"
) >"$work/out" 2>"$work/err" &
pid=$!
until_true grep -qF "taking calls at unix:$work/cadre/acc.lab.sock" "$work/err"
port=$(sed -n '1s/.*127\.0\.0\.1:\([0-9]*\),.*/\1/p' "$work/err")
"$cli" call "${patient[@]}" acc add '[1]' --namespace lab >"$work/answer.out"

# When the run closes a connection, a new one follows.
python3 - "$port" "$work/connected" <<'PYTHON' &
import select, socket, sys


def stranger():
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", int(sys.argv[1])))
    return s


silent = [stranger() for _ in range(200)]
open(sys.argv[2], "w").close()
while True:
    for s in select.select(silent, [], [])[0]:
        silent.remove(s)
        s.close()
        silent.append(stranger())
PYTHON
strangers=$!
trap 'kill "$strangers"; local_stop; rm -rf "$work"' EXIT
until_true test -e "$work/connected"
"$cli" call "${patient[@]}" acc add '[1]' --namespace lab >"$work/answer.out"
echo "ok - its user is answered"

old=$(pgrep -P "$pid")
kill -KILL "$old"
until_true "$cli" call "${patient[@]}" acc add '[1]' --namespace lab
[[ $(pgrep -P "$pid") != "$old" ]] || fail "the agent is still there"
echo "ok - its agent is started again"
