#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A local run at a port: only clients with its token may call, and no web site may. Arguments: cadre-local,
# cadre-agent, cadre-worker, accumulator.so, kubectl-cadre.
set -euo pipefail
local=$1 agent=$2 worker=$3 module=$4 cli=$5
# shellcheck source=tests/lib/local.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../lib/local.sh"

export XDG_RUNTIME_DIR=$work
PATH=$(dirname "$worker"):$PATH "$local" --listen 127.0.0.1:0 --agent "$agent" --namespace lab --group acc -- \
    "$worker" --module "$module" >"$work/out" 2>"$work/err" &
pid=$!
until_true grep -qF "taking calls at unix:$work/cadre/acc.lab.sock" "$work/err"
port=$(sed -n '1s/.*127\.0\.0\.1:\([0-9]*\),.*/\1/p' "$work/err")
token_file=$work/cadre/acc.lab.token
[[ $(stat -c %a "$token_file") == 600 ]] || fail "others may read the token"
grep -qF "with the token in $token_file" "$work/err" || fail "it does not say where the token is"
json=(-H 'Content-Type: application/json')
bearer=(-H "Authorization: Bearer $(cat "$token_file")")
call='{"jsonrpc":"2.0","id":1,"method":"group.call","params":{"method":"add","args":[1]}}'

# row NAME STATUS CURL-ARGUMENT...: checks the answer to a POST with these arguments.
row() {
    local name=$1 want=$2 got
    shift 2
    got=$(curl -sS -m 1200 -o "$work/answer.out" -w '%{http_code}' "$@" -d "$call" \
        "http://127.0.0.1:$port/v1/namespaces/lab/workergroups/acc") || true
    [[ $got == "$want" ]] || fail "$name: $got, not $want: $(cat "$work/answer.out")"
    echo "ok - $name: $got $(cat "$work/answer.out")"
}

row "its user" 200 "${json[@]}" "${bearer[@]}"
row "nobody" 401 "${json[@]}"
row "another token" 401 "${json[@]}" -H 'Authorization: Bearer x'
row "an empty one" 401 "${json[@]}" -H 'Authorization: Bearer '
row "a form of a web site" 415 -H 'Content-Type: text/plain' "${bearer[@]}"
row "a web site" 403 "${json[@]}" "${bearer[@]}" -H 'Origin: https://evil.example'
row "a site whose name leads here" 403 "${json[@]}" "${bearer[@]}" -H 'Host: evil.example'

# upgrade PATH CURL-ARGUMENT...: prints the status of a request for a websocket.
upgrade() {
    local path=$1
    shift
    curl -sS -m 1200 -o /dev/null -w '%{http_code}' --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' \
        -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' "$@" \
        "http://127.0.0.1:$port$path" || true
}
group=/v1/namespaces/lab/workergroups/acc
got=$(upgrade "$group" -H 'Sec-WebSocket-Protocol: cadre.v1.json' -H 'Origin: https://evil.example' "${bearer[@]}")
[[ $got == 403 ]] || fail "a web site's websocket: $got"
got=$(upgrade "$group" -H 'Sec-WebSocket-Protocol: cadre.v1.json')
[[ $got == 401 ]] || fail "a websocket without a token: $got"
got=$(upgrade /v1/connect -H 'Sec-WebSocket-Protocol: cadre.v1' "${bearer[@]}")
[[ $got == 403 ]] || fail "who says that it is one of the processes: $got"
echo "ok - websockets too"

got=$("$cli" call "${patient[@]}" acc get_value --namespace lab --server "ws://127.0.0.1:$port" \
    --token-file "$token_file")
[[ $got == "[1]" ]] || fail "kubectl cadre with the token, after one call that was obeyed: $got"
got=$("$cli" call "${patient[@]}" acc get_value --namespace lab)
[[ $got == "[1]" ]] || fail "kubectl cadre, which finds the socket: $got"
if "$cli" call "${patient[@]}" acc get_value --namespace lab --server "ws://127.0.0.1:$port" --token x \
    >"$work/refused.out" 2>&1; then
    fail "kubectl cadre with a wrong token is answered"
fi
grep -qF "this token is not valid for this run" "$work/refused.out" || fail "it does not say why"
code=0
"$local" --listen 127.0.0.1:0 --agent "$agent" --namespace lab --group acc -- true >"$work/second.out" 2>&1 || code=$?
[[ $code != 0 ]] || fail "two runs have the same group"
grep -qF "another program already" "$work/second.out" || fail "it does not say why"
[[ $(cat "$token_file") == "${bearer[1]#*Bearer }" ]] || fail "the second run took the token of the first one"
echo "ok - a second run leaves the first one alone"
local_stop
[[ ! -e $token_file ]] || fail "the token outlives the run"
echo "ok"
