#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy with the checks of .clang-tidy over the sources of the programs; fails where it finds something.
#   tidy.sh [FILE]...     default: all; minutes. Exit status 77: no clang-tidy here
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v clang-tidy >/dev/null || {
    echo "1..0 # SKIP clang-tidy is not installed"
    exit 77
}
cmake --preset dev >/dev/null
files=("$@")
[[ ${#files[@]} -gt 0 ]] || mapfile -t files < <(git ls-files -- 'common/*.c' 'operator/*.c' 'examples/*.c')
printf '%s\0' "${files[@]}" |
    xargs -0 -P "$(nproc)" -n 4 clang-tidy --quiet --warnings-as-errors='*' -p build/dev 2> >(grep -v ' warnings\? generated' >&2)
