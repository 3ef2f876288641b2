# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The scripts of this folder print TAP, a line for each case.

: "${dir:?}"
count=0
failed=0

# note VERDICT SECONDS NAME [REASON]: called before the line is printed, for a script that keeps results. It may add to $dir/diag.
note() { :; }

check() { # NAME COMMAND...: what it printed explains a failure
    local name=$1 status begin=$SECONDS
    shift
    count=$((count + 1))
    set +e # within "if" or "||" the shell would go on after a command that fails in the middle
    (
        set -e
        "$@"
    ) >"$dir/diag" 2>&1
    status=$?
    set -e
    if [[ $status -eq 0 ]]; then
        note passed $((SECONDS - begin)) "$name"
        echo "ok $count - $name"
    else
        failed=$((failed + 1))
        note failed $((SECONDS - begin)) "$name"
        echo "not ok $count - $name"
        sed 's/^/# /' "$dir/diag"
    fi
}

skip() { # NAME REASON
    count=$((count + 1))
    note skipped 0 "$1" "$2"
    echo "ok $count - $1 # SKIP $2"
}

skip_all() { # REASON
    [[ ! -s $dir/diag ]] || sed 's/^/# /' "$dir/diag"
    echo "1..0 # SKIP $1"
    exit 77
}
