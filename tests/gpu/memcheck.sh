#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program under compute-sanitizer, which looks at each access of each kernel: memcheck.sh LOG PROGRAM [ARGUMENT]...
# Its findings go to the file LOG.N; N is the number of this process. compute-sanitizer dies of a SIGTERM without its
# summary. So it runs in a session of its own, and a SIGTERM goes to the program alone.
set -euo pipefail

log=$1
program=$(readlink -f "$2")
shift

below() { # PID: all processes that it has started, and that these have
    local child
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
        echo "$child"
        below "$child"
    done
}

stop() {
    local process found=
    for process in $(below "$tool"); do
        [[ $(readlink "/proc/$process/exe") == "$program" ]] || continue
        found=$process
        kill -TERM "$process" 2>/dev/null || true
    done
    [[ -n $found ]] || kill -TERM "$tool" 2>/dev/null || true
}

setsid compute-sanitizer --tool memcheck --leak-check no --log-file "$log.$$" "$@" &
tool=$!
trap stop TERM
while kill -0 "$tool" 2>/dev/null; do
    status=0
    wait "$tool" || status=$?
done
exit "$status"
