#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the modules of docs/modules.md with the commands that stand there, and loads them.  test_modules.sh CADRE-WORKER
set -euo pipefail

worker=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
doc=$root/docs/modules.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export CPATH=$root/sdk/c/include # as it is where the SDK is installed

block() { # LANGUAGE: the first code block of it
    awk -v open="\`\`\`$1" '$0 == open {on = 1; next} on && $0 == "```" {exit} on' "$doc"
}

command_of() { # COMPILER: the line of the document that calls it
    grep -m 1 "^$1 .* -shared " "$doc"
}

check() { # FILE.so METHOD...
    local text
    text=$("$worker" --module "./$1" --describe)
    for method in "${@:2}"; do
        [[ $text == *"\"name\":\"$method\""* ]] || {
            echo "$1: no method $method in $text" >&2
            exit 1
        }
    done
}

block c >mean.c
block cpp >mean.cpp
eval "$(command_of cc) -Werror"
check mean.so push get
if command -v c++ >/dev/null; then
    eval "$(command_of c++) -Werror"
    check mean_cpp.so push
fi
