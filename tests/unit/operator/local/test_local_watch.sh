#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Four ranks on this machine, watched from outside: kubectl cadre top. Arguments: cadre-local, cadre-agent, cadre-worker,
# watched.so, kubectl-cadre.
set -euo pipefail
local=$1 agent=$2 worker=$3 module=$4 cli=$5
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

at=(--namespace lab --server "unix:$work/socket" --token any)
local_start --namespace lab --group w --processes 4 -- "$worker" --module "$module"
answer=$("$cli" call "${patient[@]}" w step "${at[@]}")
[[ $answer == "[0, 1, 2, 3]" ]] || fail "step: $answer"

# top shows the calls that ended between two looks, and the rank that is 30 ms late. On a busy machine, few calls end in
# that time, and other ranks are late, too. So it looks again, for longer.
for interval in 3s 10s 30s 100s 100s 100s; do
    "$cli" top w --interval "$interval" "${at[@]}" >"$work/table" &
    top=$!
    while kill -0 "$top" 2>/dev/null; do "$cli" call "${patient[@]}" w step "${at[@]}" >/dev/null; done
    wait "$top" || fail "top: exit code $?"
    table=$(<"$work/table")
    ! grep -qE '^w +step .* rank 3 ' <<<"$table" || break
done
grep -q '^GROUP *METHOD *CALLS/S *P50 *P99 *IN FLIGHT *BYTES/S *ERRORS *SLOWEST RANK$' <<<"$table" || fail "top: $table"
grep -qE '^w +step +[0-9.]+ +[0-9.]+m?s +.* rank 3 \+[0-9.]+m?s, last in [0-9]+%$' <<<"$table" || fail "top: $table"
[[ $table != *"replica"* ]] || fail "there is no other replica: $table"
json=$("$cli" top w --interval 100ms -o json "${at[@]}")
[[ $json == '[{"group":"w","method":"step","callsPerSecond":0.000,'*'"ended":0,"errors":0,'* ]] || fail "top -o json: $json"
! "$cli" top "${at[@]}" 2>"$work/top.err" || fail "top without a group"
grep -q 'the name of the group is missing' "$work/top.err" || fail "top without a group says nothing"
# traceparent comes from the environment, from a parameter, or from a header of a POST; a malformed one is ignored
trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
post() { # BODY [CURL OPTION...]
    curl -sS -m 1200 --unix-socket "$work/socket" -H "Content-Type: application/json" -H 'Authorization: Bearer x' "${@:2}" \
        "http://x/v1/namespaces/lab/workergroups/w" -d "$1"
}
request() { # METHOD [MORE PARAMETERS]
    printf '{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"method":"%s"%s}}' "$1" "${2:-}"
}
traced() { # WANT ANSWER
    [[ $2 == "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"$1\"}" ]] || fail "trace: $2, not $1"
}
answer=$(TRACEPARENT=$trace "$cli" call "${patient[@]}" w trace "${at[@]}")
[[ $answer == "\"$trace\"" ]] || fail "trace of the environment: $answer"
answer=$(TRACEPARENT=nonsense "$cli" call "${patient[@]}" w trace "${at[@]}")
[[ $answer == '"none"' ]] || fail "a malformed trace of the environment: $answer"
traced "$trace" "$(post "$(request trace)" -H "traceparent: $trace")"
traced "$trace" "$(post "$(request trace ",\"traceparent\":\"$trace\"")" -H "traceparent: 00-${trace:3:32}-1111111111111111-00")"
traced none "$(post "$(request trace)" -H "traceparent: ff-${trace:3}")"
traced none "$(post "$(request trace)")"
answer=$(post "$(request fail)" -H "traceparent: $trace")
[[ $answer == *'"code":"FAILED"'*"\"traceparent\":\"$trace\""* ]] || fail "the trace of an error: $answer"
# S0-10: the client gets the lines that ranks print, with their number in front. Equal lines that arrive together become
# one. The client listens only for a moment, so a busy machine may need more tries.
shows() { # WANT ARGUMENT...
    local lines=
    for _ in $(seq 500); do
        lines=$("$cli" call "${patient[@]}" w say "${@:2}" --no-reply --logs "${at[@]}" 2>&1 >/dev/null | sort)
        [[ $lines != "$1" ]] || break
    done
    [[ $lines == "$1" ]] || fail "say ${*:2}: $lines, not $1"
    echo "S0-10: $lines"
}
shows "[rank 0-3] hello" '"hello"'
shows "$(printf '[rank %d] I am %d\n' 0 0 1 1 2 2 3 3)" '["I am", 1]'
shows "[rank 2] alone" '"alone"' --rank 2
lines=$("$cli" call w say '"unheard"' --no-reply "${at[@]}" 2>&1 >/dev/null)
[[ -z $lines ]] || fail "lines without --logs: $lines"
says_hello_four_times() {
    [[ $(grep '^\[rank [0-3]\] hello$' "$work/out" | sort -u | wc -l) == 4 ]]
}
until_true says_hello_four_times # the run, in its own output
"$cli" logs w -f "${at[@]}" >"$work/followed" &
follower=$!
"$cli" logs w -f --rank 2 "${at[@]}" >"$work/followed2" &
follower2=$!
for _ in $(seq 2000); do
    "$cli" call "${patient[@]}" w say '"followed"' --no-reply "${at[@]}"
    if grep -qx '\[rank 0-3\] followed' "$work/followed" && grep -q followed "$work/followed2"; then break; fi
    sleep 0.1
done
kill -INT "$follower" "$follower2"
code=0
wait "$follower" || code=$?
wait "$follower2" || true
[[ $code == 130 ]] && grep -qx '\[rank 0-3\] followed' "$work/followed" || fail "logs -f: $code, $(<"$work/followed")"
[[ $(head -1 "$work/followed2") == "[rank 2] followed" ]] || fail "logs -f --rank 2: $(<"$work/followed2")"
! "$cli" logs w "${at[@]}" 2>"$work/top.err" || fail "logs of a local run without -f"
grep -q 'in the output of the local run' "$work/top.err" || fail "it is not said why"

# A client that uses only docs/protocol.md
python3 "$(dirname "$0")/protocol_client.py" "$work/socket" lab w >"$work/client" 2>&1 || fail "the client of the page: $(<"$work/client")"
echo "ok"
