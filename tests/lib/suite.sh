# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For suites in shell that have their own dev cluster: the start and the end of the cluster, details that explain a failure,
# and what a command says. A suite sources this file, calls suite_start, then check for each case, and ends with suite_end.
#
# Exit status: 0 all passed, 1 a test failed, 77 this machine cannot run a cluster.

suite_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
devcluster=$suite_root/deploy/devcluster/devcluster
suite_at_exit=()  # functions, called before the cluster goes
suite_explain=()  # functions that print details of a failure
# shellcheck source=/dev/null
. "$suite_root/tests/lib/inside.sh"
# shellcheck source=/dev/null
. "$suite_root/tests/lib/tap.sh"

# The programs of a cluster must not inherit files that the caller left open, such as the file of a lock.
suite_close_inherited() {
    local fd
    for fd in /proc/$$/fd/*; do
        fd=${fd##*/}
        [[ $fd -le 2 || $fd -eq 255 ]] || eval "exec $fd>&-" # 255 is the script itself
    done
}

# suite_cluster NAME UP-ARGUMENTS...: starts a cluster for this suite. $suite_dir is a folder that is removed with it.
suite_cluster() {
    suite_name=$1
    shift
    if [[ $EUID -ne 0 ]]; then
        echo "1..0 # SKIP $suite_name: a dev cluster needs root"
        exit 77
    fi
    suite_close_inherited
    export CADRE_CLUSTER=$suite_name-$$ CADRE_USE=own
    suite_dir=$(mktemp -d)
    tap_diag=$suite_dir/diag
    trap suite_clean EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    set -E
    trap 'suite_error "${BASH_SOURCE[0]##*/}:$LINENO" "$BASH_COMMAND"' ERR
    "$devcluster" up "$@" >"$tap_diag" 2>&1 || bail_out "the dev cluster does not start"
    inside_enter
}

# suite_start NAME UP-ARGUMENTS...: the same, and applies the CRDs.
suite_start() {
    suite_cluster "$@"
    kc apply -f "$suite_root/crds/" >"$tap_diag" 2>&1 || bail_out "the CRDs cannot be applied"
    kc wait --for=condition=Established --timeout=600s crd --all >"$tap_diag" 2>&1 || bail_out "the CRDs do not come up"
}

# suite_image NAME: prints the path of an image's archive. A look at all files that it is built from takes seconds, so the
# fixture of the tests has done that once for all suites.
suite_image() {
    local archive
    archive=$(sed -n "s/^$1 //p" "${CADRE_BUILD_DIR:-}/images" 2>/dev/null) || true
    if [[ -e $archive ]]; then echo "$archive"; else "$suite_root/deploy/images.sh" "$1"; fi
}

# suite_images NAME...: loads images, by their names in deploy/images.sh, into all nodes.
suite_images() {
    local name archive archives=()
    for name in "$@"; do
        archive=$(suite_image "$name" 2>"$tap_diag") || bail_out "the image $name cannot be built"
        archives+=("$archive")
    done
    "$devcluster" load "${archives[@]}" >"$tap_diag" 2>&1 || bail_out "the images cannot be loaded"
}

# Commands outside of checks must not fail, because the cases after them would test nothing.
suite_error() {
    : >"$tap_diag"
    bail_out "$1: $2, called from line $(caller 1 || true)"
}

# A failure in here is ignored: an explanation may look into a namespace that does not exist yet.
tap_explain() (
    trap - ERR
    set +e
    for f in "${suite_explain[@]}"; do "$f"; done
    true
)

suite_clean() {
    local rc=$? f
    trap - EXIT INT TERM ERR
    set +e
    for f in "${suite_at_exit[@]}"; do "$f"; done
    "$devcluster" down >/dev/null 2>&1 || echo "# a dev cluster is left: devcluster --name $CADRE_CLUSTER down"
    rm -rf "$suite_dir"
    exit "$rc"
}

suite_end() {
    ! tap_end || exit 0
    exit 1
}

bail_out() {
    echo "Bail out! $1"
    tap_explain >>"$tap_diag" 2>&1
    tap_diagnosis
    exit 1
}

# nap MIN-MS MAX-MS: a random time between them, to do something at any moment. The test must hold at each moment.
nap() {
    local ms=$(($1 + RANDOM % ($2 - $1 + 1)))
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# equals WANT GOT
equals() {
    [[ $1 == "$2" ]] || {
        printf 'want: %s\ngot:  %s\n' "$1" "$2"
        return 1
    }
}

# is WANT COMMAND...: the output of the command is WANT.
is() {
    local want=$1 got
    shift
    got=$("$@" 2>&1) || true
    [[ $got == "$want" ]] || {
        printf 'want: %s\ngot:  %s\n' "$want" "$got"
        return 1
    }
}

# says TEXT COMMAND...: the output of the command contains the text.
says() {
    local want=$1 got
    shift
    got=$("$@" 2>&1) || true
    [[ $got == *"$want"* ]] || {
        printf 'want: ...%s...\ngot:  %s\n' "$want" "$got"
        return 1
    }
}

# matches REGEX COMMAND...: the output of the command, as one line, matches the extended regular expression.
matches() {
    local want=$1 got
    shift
    got=$("$@" 2>&1) || true
    [[ $got =~ $want ]] || {
        printf 'want: %s\ngot:  %s\n' "$want" "$got"
        return 1
    }
}

# exits STATUS COMMAND...: the command exits with that status.
exits() {
    local want=$1 got=0
    shift
    "$@" || got=$?
    [[ $got -eq $want ]] || {
        echo "want: exit status $want, got: $got"
        return 1
    }
}
