#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests, and prints the number of test cases at the end (cases of CMocka and TAP; another test counts as one).
#   run.sh           all tests, with gcc, warnings as errors and sanitizers, in build/ci. Installs what they need. Without
#                    root, the suites on a cluster are skipped
#   run.sh --unit    the tests that need no cluster and no torch, in build/dev
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n==> [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

# The first build of a cluster's programs takes minutes, so it begins early, beside the compiler. The fixture of the tests waits
# for it. Without root, nothing can run them.
start_cluster_build() {
    [[ $EUID -eq 0 ]] || return 0
    deploy/devcluster/deps.sh
    setsid deploy/devcluster/devcluster build >build/cluster-programs.log 2>&1 &
    cluster_build=$!
    trap 'kill -- "-$cluster_build" 2>/dev/null || true' EXIT
}

preset=ci
filter=()
case ${1:-} in
"") ;;
--unit)
    preset=dev
    filter=(--label-exclude '^(cluster|build|torch)$')
    ;;
*)
    echo "usage: run.sh [--unit]" >&2
    exit 2
    ;;
esac

say "installing what is missing"
deploy/deps.sh test wheel
[[ $preset != ci ]] || deploy/deps.sh fuzz || echo "the fuzz targets will only replay their corpus"
[[ $preset != ci ]] || deploy/deps.sh cuda || echo "the CUDA modules will not be tested"
# pyenv's python3 is a script of bash that takes longer to start than Python. The tests start it thousands of times.
if [[ $(head -c 2 "$(command -v python3)") == '#!' ]]; then
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
fi
mkdir -p build
[[ $preset != ci ]] || start_cluster_build

say "building, preset $preset"
cmake --preset "$preset" >build/configure.log || {
    cat build/configure.log
    exit 1
}
cmake --build --preset "$preset"

say "testing"
folder=$PWD/build/$preset
rm -f "$folder"/junit*.xml

# The time after which a test hangs. A busy machine without a cache needs more than half an hour for the programs of a cluster.
hang_s=5400

# run_tests JUNIT OPTION...: runs ctest, which writes all output of the tests to its JUnit file
run_tests() {
    ctest --test-dir "$folder" --output-on-failure --no-tests=error --output-junit "$folder/$1" --timeout "$hang_s" \
        --resource-spec-file "$PWD/tests/resources.json" \
        --test-output-size-passed 10000000 --test-output-size-failed 10000000 "${@:2}"
}

status=0
results=("$folder/junit.xml")
# Four suites on a cluster run at once. Each uses a quarter of a core, because it waits most of the time. The rest of the places
# are for the other tests. Some of these wait, too.
run_tests junit.xml --parallel "$(($(nproc) + 4))" "${filter[@]}" || status=$?

# On a shared machine, a test may get too little CPU time. A few tests that failed run a second time, one after the other, and
# the summary names them. More than a few failures are a defect. ctest exits with 8 if tests failed, and nothing else did.
failed=$folder/Testing/Temporary/LastTestsFailed.log
if ((status == 8)) && (($(wc -l <"$failed") <= 5)); then
    say "once more, what failed"
    status=0
    run_tests junit-again.xml --parallel 1 --rerun-failed || status=$?
    results+=("$folder/junit-again.xml")
fi
say "done"
tests/summary.py "${results[@]}" || status=1
exit "$status"
