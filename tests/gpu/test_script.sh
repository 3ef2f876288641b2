#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_gpu.sh, all parts of it, with the stand-ins, and its report: of a good run, and of bad ones. And pack.sh: what it
# makes runs elsewhere.
#   test_script.sh BUILD
# Prints TAP. Exit status: 0 all passed, 1 a test failed.
set -euo pipefail

build=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
script=$root/tests/gpu/test_gpu.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/gpu/tap.sh
. "$root/tests/gpu/tap.sh"

# says LINE...: these are lines of the report, as extended expressions.
says() {
    local line
    for line in "$@"; do
        grep -Eqx -- "$line" "$dir/gpu.md" || {
            echo "no line is: $line"
            cat "$dir/gpu.md"
            exit 1
        }
    done
}

passes() {
    "$script" --stand-ins --build "$build" --results "$dir/results" --report "$dir/gpu.md" | sed 's/^/# /'
}

# Every part is there, with all that is measured.
reports_all() {
    says '30 passed, 0 failed, 0 skipped\.' '\| stand-in \| none \| none \|' \
        '\| calls \| two groups share the GPUs \| passed \| [0-9]+ \|' \
        '\| tensors \| compute-sanitizer finds nothing while weights move \| passed \| [0-9]+ \|' \
        '\| models \| Attention: a step on the GPU is that on the CPU \(S2-5, S2-9\) \| passed \| [0-9]+ \|' \
        '\| nccl \| an all_reduce that hangs on a stream is aborted at the limit \| passed \| [0-9]+ \|' \
        '\| trouble \| an illegal address: the call says so, and the next process has the GPU \| passed \| [0-9]+ \|' \
        '\| what Cadre adds to a call of NCCL \| -?[0-9.]+ us \| under 2 us \| (met|\*\*missed\*\*) \|' \
        '\| pinned memory to the GPU \| [0-9.]+ % \| at least 95 % of the driver.s best \| (met|\*\*missed\*\*) \|' \
        '\| one at a time \| [0-9]+ \| [0-9]+ us \| +\| +\|' '\| ipc \| [0-9.]+ GB/s \| [0-9.]+ GB/s \| [0-9.]+ \|' \
        'back end [0-9.]+ us; the median of the differences is -?[0-9.]+ us\.'
    [[ $(grep -Ec '^\|.*\| (met|\*\*missed\*\*) \|$' "$dir/gpu.md") -eq 5 ]]
}

# NCCL refuses: that part is run again, and takes its old results with it.
fails_in_part() {
    local status=0
    CADRE_STAND_IN_CONTROL="nccl-init 5" "$script" --stand-ins --build "$build" --part nccl --results "$dir/results" \
        --report "$dir/gpu.md" || status=$?
    [[ $status -eq 1 ]]
    says '28 passed, 2 failed, 0 skipped\.' '\| nccl \| NCCL is measured with one rank \| \*\*failed\*\* \| [0-9]+ \|' \
        '\| what Cadre adds to a call of NCCL \|  \| under 2 us \| not measured \|' \
        'What was printed by "NCCL is measured with one rank" \(nccl\):' 'bench-gpu: error: NCCL makes no communicator' \
        '\| calls \| two groups share the GPUs \| passed \| [0-9]+ \|'
}

# With a GPU for each of two ranks, NCCL reduces.
reduces_on_two() {
    CADRE_STAND_IN_GPUS=2 "$script" --stand-ins --build "$build" --part nccl --report "$dir/gpu.md"
    says '4 passed, 0 failed, 0 skipped\.'
}

# written LINE...: the report of these results; the words of a line are split by semicolons.
written() {
    printf '%s\n' "$@" | tr ';' '\t' >"$dir/by-hand"
    "$root/tests/gpu/report.py" "$dir/by-hand" >"$dir/gpu.md"
}

judges() {
    written "machine;gpu;H100, 81559 MiB, 580.1" "value;nccl;nccl;10.00 11.99 1.99" "value;tensors;pinned-up;50 52 0.9500" \
        "value;tensors;pinned-down;50 53 0.9499" "value;tensors;ipc;1 1 0.9" "value;tensors;copy-us;100.0" \
        "value;tensors;views;450.5 200.0 90.0"
    says '\| H100 \| 81559 MiB \| 580\.1 \|' '\| what Cadre adds to a call of NCCL \| 1\.99 us \| .* \| met \|' \
        '\| pinned memory to the GPU \| 95\.00 % \| .* \| met \|' \
        '\| the GPU to pinned memory \| 94\.99 % \| .* \| \*\*missed\*\* \|' \
        '\| from memory of another process \(CUDA IPC\) \| 90\.00 % \| .* \| met \|' \
        '\| a call that takes 1 MiB on the GPU \| 1\.502 times \| .* \| \*\*missed\*\* \|'
}

counts_apart() {
    written "case;calls;passed;1;one" "case;calls;failed;2;two" "case;models;skipped;0;three;there is no NCCL" "said;calls;two;why"
    says '1 passed, 1 failed, 1 skipped\.' '\| models \| three \| skipped: there is no NCCL \| 0 \|' 'why' \
        '\| what Cadre adds to a call of NCCL \|  \| under 2 us \| not measured \|'
}

# No library comes from this machine, but those that every machine has.
packs() {
    "$root/tests/gpu/pack.sh" --stand-ins "$build" "$dir/pack"
    find "$dir/pack" '(' -perm -u+x -o -name '*.so*' ')' -type f ! -name '*.sh' ! -name '*.py' -print0 |
        LD_LIBRARY_PATH=$dir/pack/lib:$dir/pack/tests/unit/worker/device/gpu xargs -0 ldd >"$dir/needs"
    ! grep -Ev "^$dir/pack/|linux-vdso|=> $dir/pack/|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so|ld-linux" "$dir/needs"
}

runs_packed() {
    env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin "$dir/pack/tests/gpu/test_gpu.sh" --stand-ins --build "$dir/pack" --part calls \
        --part trouble --report "$dir/gpu.md"
    says '15 passed, 0 failed, 0 skipped\.'
}

check "all parts pass" passes
check "the report of a good run has all cases, targets and measurements" reports_all
check "a run that fails writes its report, too, and keeps what other parts have found" fails_in_part
check "with two GPUs, two ranks reduce by NCCL" reduces_on_two
check "the report says which targets are met" judges
check "the report counts what passed, failed and was skipped, and names it" counts_apart
check "the programs are packed with their libraries" packs
check "... and run in another place, with another environment" runs_packed
echo "1..$count"
[[ $failed -eq 0 ]]
