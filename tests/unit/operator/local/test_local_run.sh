#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `kubectl cadre run` as its user sees it: where the socket is and how others find it, Ctrl-C, restarts, crashes. Arguments:
# cadre-local, cadre-agent, cadre-worker, accumulator.so, kubectl-cadre.
set -euo pipefail
set -m # each run gets a process group, as from a terminal
local=$1 agent=$2 worker=$3 module=$4 cli=$5
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"
export XDG_RUNTIME_DIR=$work
unset CADRE_SOCKET
PATH=$(dirname "$worker"):$(dirname "$local"):$PATH
socket=$work/cadre/acc.lab.sock

# run FILE OPTION...
run() {
    local file=$1
    shift
    : >"$work/err"
    "$cli" run -f "$work/$file" --map "/modules=$(dirname "$module")" --agent "$agent" "$@" >"$work/err" 2>&1 &
    pid=$!
}

# ended CODE WHY: checks that the run ends with this code.
ended() {
    local code=0
    wait "$pid" || code=$?
    pid=
    [[ $code == "$1" ]] || fail "$2: exit code $code, not $1"
}

# calls WANT ARGUMENT...: kubectl cadre call acc
calls() {
    local want=$1 got
    shift
    got=$("$cli" call "${patient[@]}" acc "$@" 2>"$work/call.err") || fail "call $*: $(cat "$work/call.err")"
    [[ $got == "$want" ]] || fail "call $*: $got, not $want"
}

# refused CODE TEXT COMMAND...
refused() {
    local want=$1 text=$2 got=0
    shift 2
    "$@" >"$work/call.err" 2>&1 || got=$?
    [[ $got == "$want" ]] || fail "$*: exit code $got, not $want: $(cat "$work/call.err")"
    grep -qF -- "$text" "$work/call.err" || fail "$*: does not say: $text: $(cat "$work/call.err")"
}

cat >"$work/acc.yaml" <<'YAML'
apiVersion: cadre.dev/v1alpha1
kind: WorkerGroup
metadata: {name: acc, namespace: lab}
spec:
  replicas: 2
  worker: {module: /modules/accumulator.so, init: {start: 5}}
  template: {spec: {containers: [{name: worker, image: none}]}}
YAML

# shell NAME COMMAND REST-OF-SPEC
shell() {
    cat >"$work/$1.yaml" <<YAML
kind: WorkerGroup
metadata: {name: $1}
spec: {worker: {command: [sh, -c, '$2']}, restartBackoff: {initialSeconds: 0, maxSeconds: 0}$3}
YAML
}

# A command finds the run by itself, by its name, or by --socket
run acc.yaml
until_true grep -qF "taking calls at unix:$socket" "$work/err"
[[ $(stat -c %a "$work/cadre") == 700 && $(stat -c %a "$socket") == 600 ]] || fail "others may reach it"
calls "[6, 7]" add 1
grep -qF "(lab/acc runs on this machine, at $socket" "$work/call.err" || fail "does not say whom it calls"
calls "[7, 8]" add 1 -n lab
calls "[8, 9]" add 1 --socket "$socket"
[[ ! -s $work/call.err ]] || fail "says what the caller knows"
CADRE_SOCKET=$socket calls "[9, 10]" add 1
calls "[10, 11]" add 1 --server "unix:$socket" -n lab
answer=$(curl -sS -m 1200 --unix-socket "$socket" -H "Content-Type: application/json" http://x/v1/namespaces/lab/workergroups/acc \
    -d '{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"method":"get_value"}}')
[[ $answer == '{"jsonrpc":"2.0","id":1,"result":[10,11]}' ]] || fail "without a token: $answer"
[[ $("$cli" info acc 2>/dev/null) == *"2 of 2"* || $("$cli" info acc -o json 2>/dev/null) == *'"connected": 2'* ]] ||
    fail "info: $("$cli" info acc)"
refused 2 "use only one of --server and --socket" "$cli" call acc add --server "unix:$socket" --socket "$socket"
refused 2 "must be the path of a socket" "$cli" call acc add --socket "sock"
refused 1 "why is for groups in a cluster" env KUBECONFIG=/dev/null "$cli" why acc
refused 69 "another program already does" "$local" -f "$work/acc.yaml" --map "/modules=$(dirname "$module")" --agent "$agent"
until_true grep -qF "[rank 1] cadre-worker: rank 1: ready" "$work/err" # it says whose line it is
calls "[10, 11]" get_value # the second run has not harmed it

# A second run with the same name, in another namespace
"$local" --group acc --namespace other --agent "$agent" -- sleep 60 2>/dev/null &
second=$!
until_true test -S "$work/cadre/acc.other.sock"
refused 1 "say which with -n" "$cli" call acc get_value
calls "[10, 11]" get_value -n lab
kill -TERM "$second"
code=0
wait "$second" || code=$?
[[ $code == 143 ]] || fail "sleep, told to stop: exit code $code"

# Ctrl-C goes to the whole process group of the terminal
kill -INT -- "-$pid"
ended 0 "Ctrl-C"
[[ ! -e $socket ]] || fail "the socket is left behind"
! grep -q "again: killing" "$work/err" || fail "the ranks had no time to end"

# After a crash, a new run can start, and no command uses the socket that is left
run acc.yaml
until_true "$cli" call acc get_value
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
[[ -S $socket ]] || fail "it was to be left behind"
refused 1 "kubectl" env PATH=/nonexistent "$cli" call acc get_value -n lab
run acc.yaml
until_true "$cli" call acc get_value
calls "[6, 7]" add 1

# If a process dies, the whole group restarts
victim=$(pgrep -f "cadre-worker" -P "$(pgrep -P "$pid")" | head -n 1)
kill -KILL "$victim"
until_true grep -q "failed with exit code 137; restart 1 in" "$work/err"
calls "[5, 6]" add 0 --attempt 2
refused 1 "attempt 1" "$cli" call acc add 0 --attempt 1
kill -TERM "$pid"
ended 0 "SIGTERM after a restart"

# A client that follows the output of a run also sees the output of a new run with the same socket
# shellcheck disable=SC2016
shell talk 'while :; do echo tick; sleep 0.5; done' ''
run talk.yaml
until_true test -S "$work/cadre/talk.default.sock"
"$cli" logs talk -f >"$work/logs.out" 2>"$work/logs.err" &
logs=$!
until_true grep -qxF "[rank 0] tick" "$work/logs.out"
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
until_true grep -qF "[the connection was lost (" "$work/logs.err"
ticks() { grep -cxF "[rank 0] tick" "$work/logs.out"; }
more_than() { [[ $(ticks) -gt $1 ]]; }
before=$(ticks)
run talk.yaml
until_true more_than "$before"
"$cli" logs talk -f >"$work/interrupted.out" 2>&1 &
interrupted=$!
until_true grep -qxF "[rank 0] tick" "$work/interrupted.out"
kill -INT "$interrupted"
code=0
wait "$interrupted" || code=$?
[[ $code == 130 ]] || fail "logs, interrupted: exit code $code"
kill -TERM "$pid"
ended 143 "a shell, told to stop"
code=0
wait "$logs" || code=$?
[[ $code == 0 ]] || fail "logs of a run that has ended: exit code $code: $(cat "$work/logs.err")"

# The agent is found as this shell finds it, whatever PATH and folder its ranks have
cat >"$work/there.yaml" <<YAML
kind: WorkerGroup
metadata: {name: there}
spec:
  restartPolicy: Never
  worker: {command: [/bin/sh, -c, 'exit 5']}
  template: {spec: {containers: [{name: worker, image: none, workingDir: /, env: [{name: PATH, value: /nowhere}]}]}}
YAML
for name in cadre-agent ./cadre-agent; do
    code=0
    (cd "$(dirname "$agent")" && PATH=.:$PATH "$local" -f "$work/there.yaml" --agent "$name" >"$work/there.out" 2>&1) || code=$?
    [[ $code == 5 ]] || fail "--agent $name: exit code $code"
done

# Restarts follow the spec
# shellcheck disable=SC2016
shell three 'echo "attempt $CADRE_ATTEMPT"; exit 3' ', maxRestarts: 2'
run three.yaml
ended 3 "maxRestarts"
for text in "attempt 1" "attempt 2" "attempt 3" "it is not restarted: maxRestarts is used up"; do
    grep -qF "$text" "$work/err" || fail "does not say: $text"
done
! grep -q "attempt 4" "$work/err" || fail "one restart too many"
shell never 'exit 4' ', restartPolicy: Never'
run never.yaml
ended 4 "Never"
grep -qF "it is not restarted: restartPolicy is Never" "$work/err" || fail "does not say why"
shell rule 'exit 42' ', failurePolicy: {rules: [{exitCodes: [42], action: Fail}]}'
run rule.yaml
ended 42 "a rule"
grep -qF "it is not restarted: failurePolicy says Fail" "$work/err" || fail "does not say why"
# shellcheck disable=SC2016
shell ignored '[ $CADRE_ATTEMPT -gt 3 ] || exit 9' ', maxRestarts: 0, failurePolicy: {rules: [{exitCodes: [9], action: Ignore}]}'
run ignored.yaml
ended 0 "what does not count"
grep -qF "restart 3 in" "$work/err" || fail "not three"

# A worker in Python, with a python3 that has no package cadre
sed 's|module: .*|python: nowhere}|; s|^spec:|spec:\n  restartPolicy: Never|' "$work/acc.yaml" >"$work/python.yaml"
mkdir "$work/bare"
printf '#!/bin/sh\nexec %s -S "$@"\n' "$(command -v python3)" >"$work/bare/python3" # without the installed packages
chmod +x "$work/bare/python3"
PYTHONPATH='' PATH=$work/bare:$PATH run python.yaml
ended 1 "no package"
for text in "No module named 'cadre'" "install the wheel cadre-sdk into it; or set PYTHONPATH to sdk/python"; do
    grep -qF "$text" "$work/err" || fail "does not say: $text"
done

# A group was called and has failed for good: calls are refused at once until the run is told to end
sed 's/^spec:/spec:\n  restartPolicy: Never/' "$work/acc.yaml" >"$work/over.yaml"
run over.yaml
until_true "$cli" call acc get_value
"$cli" kill "${patient[@]}" acc --rank 1 >/dev/null 2>&1
until_true grep -q "calls are refused from now on; Ctrl-C ends the run" "$work/err"
why="it failed: rank 1 exited with code 137: rank 1 was killed by a client (group.kill); it is not restarted: restartPolicy is Never"
until_true grep -qF "cadre-local: acc: $why" "$work/err"
refused 1 "lab/acc takes no calls: $why" "$cli" call acc get_value "${patient[@]}"
[[ $("$cli" info acc 2>/dev/null) == *"$why"* ]] || fail "info: $("$cli" info acc)"
refused 1 "$why" "$cli" kill acc --rank 0
kill -INT -- "-$pid"
ended 137 "a run that is over"
[[ ! -e $socket ]] || fail "the socket is left behind"

# A call waits for a group that never starts: its error says why. The same holds when the run is told to end
in_flight() {
    "$cli" call "$1" group.stats 2>/dev/null | grep -Eq '"inFlight": ?1\b'
}
shell late "until [ -e $work/go ]; do sleep 0.1; done; exit 6" ', restartPolicy: Never'
sed -i "s/'\(until.*\)'/\"\1\"/" "$work/late.yaml"
for end in go stop; do
    run late.yaml
    until_true "$cli" info late
    "$cli" call "${patient[@]}" late get_value >"$work/waits.err" 2>&1 &
    waits=$!
    until_true in_flight late
    if [[ $end == go ]]; then
        touch "$work/go"
        ended 6 "a run that nobody could call"
        rm "$work/go"
        why="late takes no calls: it failed: rank 0 exited with code 6; it is not restarted: restartPolicy is Never"
    else
        kill -TERM "$pid"
        ended 143 "a run with a call"
        why="late takes no calls: its run on this machine is ending"
    fi
    ! wait "$waits" || fail "a call to nobody has succeeded"
    grep -qF "$why" "$work/waits.err" || fail "the call does not say: $why"
done

# It does not use the directory of another user
rm -rf "$work/cadre"
mkdir -m 755 "$work/cadre"
refused 69 "must be a directory of yours that nobody else may open" "$local" --agent "$agent" -- true
refused 1 "must be a directory of yours that nobody else may open" "$cli" call acc get_value
long=$(printf 'x%.0s' $(seq 63))
chmod 700 "$work/cadre"
refused 69 "is longer than the path of a socket can be" "$local" --group "$long" --namespace "$long" --agent "$agent" -- true
echo ok
