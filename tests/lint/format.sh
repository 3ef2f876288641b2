#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the C sources with .clang-format, or formats them with --write. Versions of clang-format differ in details:
# the one of Debian 12 decides. Exit status 77: it is not here.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[[ $(clang-format --version 2>/dev/null) == *" version 14."* ]] || {
    echo "1..0 # SKIP clang-format 14 is not installed"
    exit 77
}
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' | while read -r f; do
    [[ ! -e $f ]] || echo "$f"
done)
if [[ ${1:-} == --write ]]; then
    exec clang-format -i "${files[@]}"
fi
# All at once; what is different is shown of those alone that this run names.
if said=$(printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 50 clang-format --dry-run --Werror 2>&1); then
    echo "${#files[@]} files are formatted"
    exit 0
fi
mapfile -t wrong < <(cut -sd : -f 1 <<<"$said" | sort -u | grep -Fxf <(printf '%s\n' "${files[@]}"))
[[ ${#wrong[@]} -gt 0 ]] || echo "$said"
for file in "${wrong[@]}"; do
    diff -u --label "$file" --label "formatted (make format)" "$file" <(clang-format "$file") || true
done
echo "${#wrong[@]} of ${#files[@]} files are not formatted"
exit 1
