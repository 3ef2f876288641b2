# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Clients that call all the time while a suite does something to the operator. Needs suite.sh, group.sh and calls.sh.

callers_ranks=() # ranks that are called
callers_since=0  # lines of the callers' log that are ignored
callers_deadline=15 # seconds that the proxy has for a call

# callers_start GROUP/RANK...: starts callers in the control plane's network. They use names, as programs in the cluster do.
callers_start() {
    local library=$CADRE_BUILD_DIR/sdk/c/client/libcadre_client.so environment
    callers_ranks=("$@")
    environment=("CADRE_CLIENT_LIBRARY=$library" "PYTHONPATH=$suite_root/sdk/python" PYTHONDONTWRITEBYTECODE=1)
    # Python must load the sanitizer's runtime first. Memory that Python never frees is not our leak.
    if [[ $(ldd "$library") == *libasan* ]]; then
        environment+=("LD_PRELOAD=$(cc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0)
    fi
    kc -n "$ns" create token caller --audience=cadre --duration=24h >"$suite_dir/token"
    "$devcluster" exec -- env "${environment[@]}" "$suite_root/tests/lib/caller.py" call \
        --address "wss://$calls_host:9443" --namespace "$ns" --ca "$suite_dir/ca.pem" --token "$suite_dir/token" \
        --log "$suite_dir/calls" --deadline "$callers_deadline" "$@" </dev/null >"$suite_dir/callers" 2>&1 &
    callers_pid=$!
    eventually 60 calls_answered 0 || bail_out "the callers get no answer"
}

callers_stop() {
    kill -TERM "$callers_pid" && wait "$callers_pid"
}

callers_end() { # also ends the callers of a suite that bailed out
    [[ -z ${callers_pid:-} ]] || kill -KILL "$callers_pid" 2>/dev/null || true
}

report() { # FIELD REPORT-ARGUMENTS...: a field of the report about the callers' log
    "$suite_root/tests/lib/caller.py" report "$suite_dir/calls" "${@:2}" | jq -c "$1"
}

# calls_answered SECONDS: every caller has an answer to a call that began at SECONDS of the epoch or later.
calls_answered() {
    is "${#callers_ranks[@]}" report .answering --since "$callers_since" --begun "$1"
}

suite_at_exit+=(callers_end)
