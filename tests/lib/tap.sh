# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests in shell: TAP, a line for each case, and waits. Before the first case, set tap_diag. End with tap_end.

tap_diag= # path of the file that gets the output of the present case
tap_passed=0
tap_failed=0

# Prints what explains a failure besides the output of the case. Tests may define it again.
tap_explain() { :; }

# check NAME COMMAND...: the command succeeds; if not, its output explains why.
check() {
    local name=$1
    shift
    if "$@" >"$tap_diag" 2>&1; then
        tap_passed=$((tap_passed + 1))
        echo "ok $((tap_passed + tap_failed)) - $name"
        return 0
    fi
    tap_failed=$((tap_failed + 1))
    echo "not ok $((tap_passed + tap_failed)) - $name"
    tap_explain >>"$tap_diag" 2>&1
    tap_diagnosis
}

# Prints the output of the last case as comments. A line of it may have megabytes.
tap_diagnosis() {
    cut -c 1-2000 "$tap_diag" | sed 's/^/# /'
}

# skip NAME WHY: the case cannot run on this machine.
skip() {
    tap_passed=$((tap_passed + 1))
    echo "ok $((tap_passed + tap_failed)) - $1 # SKIP $2"
}

# Prints the number of cases. Fails if one of them failed.
tap_end() {
    echo "1..$((tap_passed + tap_failed))"
    echo "$tap_passed passed, $tap_failed failed"
    [[ $tap_failed -eq 0 ]]
}

# patience SECONDS: prints the limit for what takes a quiet machine that long. A busy machine gives the test a fifth of
# its time, and each process may stand still for ten seconds several times. Only a hang takes longer than this limit.
patience() {
    echo $((120 + 5 * $1))
}

# eventually SECONDS COMMAND...: repeats the command until it succeeds. SECONDS are enough for a quiet machine (patience).
# The command's last output explains a failure. The pauses grow, because each try takes CPU time from the programs that
# it waits for.
eventually() {
    local end=$((SECONDS + $(patience "$1"))) pauses=(0.2 0.3 0.5 0.7) n=0
    shift
    until "$@" >"$tap_diag.try" 2>&1; do
        [[ $SECONDS -lt $end ]] || {
            cat "$tap_diag.try"
            return 1
        }
        sleep "${pauses[n++]:-1}"
    done
}
