#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the package of a user: installs the client library, looks at its exported names, and builds the example with
# pkg-config, against both libraries.
#   test_sdk_package.sh SOURCE BUILD CC LIBDIR [SANITIZERS]
set -euo pipefail

source=$1 build=$2 cc=$3 libdir=$4 sanitize=${5:+-fsanitize=$5}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "FAILED: $*"
    exit 1
}

cmake --install "$build" --component client --prefix "$dir" >/dev/null
export PKG_CONFIG_PATH=$dir/$libdir/pkgconfig
lib=$dir/$libdir

# Nothing but the interface, and all of it.
declared=$(grep -o 'cadre_client_[a-z_]*(' "$dir/include/cadre/client.h" | tr -d '(' | sort -u |
    grep -v -e '_init$' | while read -r f; do grep -q "CADRE_CLIENT_API.*\b$f(" "$dir/include/cadre/client.h" && echo "$f"; done)
shared=$(nm -D --defined-only "$lib/libcadre_client.so" | awk '$2 == "T" || $2 == "D" || $2 == "B" {print $3}' | sort -u)
archive=$(nm -g --defined-only "$lib/libcadre_client.a" | awk '$2 == "T" || $2 == "D" || $2 == "B" {print $3}' |
    grep -v -e '^__odr_asan' | sort -u)
[[ $shared == "$declared" ]] || fail "libcadre_client.so shows: $(diff <(echo "$declared") <(echo "$shared"))"
[[ $archive == "$declared" ]] || fail "libcadre_client.a shows: $(diff <(echo "$declared") <(echo "$archive"))"
[[ $(readelf -d "$lib/libcadre_client.so") == *SONAME*libcadre_client.so.0* ]] || fail "no soname"

# shellcheck disable=SC2046,SC2086 # lists of flags
"$cc" -std=c11 -Wall -Wextra -Werror $sanitize "$source/examples/client/client.c" \
    $(pkg-config --cflags --libs cadre_client) -o "$dir/shared"
# shellcheck disable=SC2046,SC2086
"$cc" -std=c11 $sanitize "$source/examples/client/client.c" $(pkg-config --cflags cadre_client) \
    "$lib/libcadre_client.a" $(pkg-config --libs libuv openssl) -o "$dir/static"
for program in shared static; do
    said=$(LD_LIBRARY_PATH=$lib "$dir/$program" nowhere ml llama 2>&1) && fail "$program: there is no such address"
    [[ $said == 'client: open: INVALID: "nowhere" is not an address;'* ]] || fail "$program says: $said"
done

if command -v c++ >/dev/null; then
    printf '#include <cadre/client.h>\nint main() { return cadre_client_version() == nullptr; }\n' >"$dir/a.cc"
    # shellcheck disable=SC2046,SC2086
    c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror $sanitize "$dir/a.cc" $(pkg-config --cflags --libs cadre_client) \
        -o "$dir/cc"
    LD_LIBRARY_PATH=$lib "$dir/cc" || fail "from C++"
fi
echo "the client library is installed and built with"
