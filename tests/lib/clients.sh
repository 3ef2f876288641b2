# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Clients that call all the time while a suite does something to the operator. Needs suite.sh, group.sh and calls.sh.

clients_ranks=() # ranks that are called
clients_since=0  # lines of the clients' log that are ignored
clients_deadline=15 # seconds that the proxy has for a call
clients_makes=   # the PlacementGroup that ends with the first client

# clients_start GROUP/RANK...: starts clients in the control plane's network. They use names, as programs in the cluster.
clients_start() {
    local library=$CADRE_BUILD_DIR/sdk/c/client/libcadre_client.so environment
    clients_ranks=("$@")
    environment=("CADRE_CLIENT_LIBRARY=$library" "PYTHONPATH=$suite_root/sdk/python" PYTHONDONTWRITEBYTECODE=1)
    # Python must load the sanitizer's runtime first. Memory that Python never frees is not our leak.
    if [[ $(ldd "$library") == *libasan* ]]; then
        environment+=("LD_PRELOAD=$(cc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0)
    fi
    kc -n "$ns" create token caller --audience=cadre --duration=24h >"$suite_dir/token"
    "$devcluster" exec -- env "${environment[@]}" "$suite_root/tests/lib/client.py" call \
        --address "wss://$calls_host:9443" --namespace "$ns" --ca "$suite_dir/ca.pem" --token "$suite_dir/token" \
        --log "$suite_dir/calls" --deadline "$clients_deadline" ${clients_makes:+--makes "$clients_makes"} "$@" </dev/null >"$suite_dir/clients" 2>&1 &
    clients_pid=$!
    eventually 60 calls_answered 0 || bail_out "the clients get no answer"
}

clients_stop() {
    kill -TERM "$clients_pid" && wait "$clients_pid"
}

clients_end() { # also ends the clients of a suite that bailed out
    [[ -z ${clients_pid:-} ]] || kill -KILL "$clients_pid" 2>/dev/null || true
}

report() { # FIELD REPORT-ARGUMENTS...: a field of the report about the clients' log
    "$suite_root/tests/lib/client.py" report "$suite_dir/calls" "${@:2}" | jq -c "$1"
}

# calls_answered SECONDS: every client has an answer to a call that began at SECONDS of the epoch or later.
calls_answered() {
    is "${#clients_ranks[@]}" report .answering --since "$clients_since" --begun "$1"
}

suite_at_exit+=(clients_end)
