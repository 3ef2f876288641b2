#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libraries for the programs of a wheel, as archives for one machine and glibc 2.28: from the sources of
# Debian 12, with the compiler of the PyPI package ziglang. Prints their folder, ~/.cache/cadre/wheel/..., which has
# toolchain.cmake for CMake, too. Libraries that are there already are used again; without it, sources newer than that are taken.
#   libraries.sh MACHINE    x86_64 or aarch64
# Exit code 69: there is nothing to build it from, because an index of packages cannot be reached.
set -euo pipefail

machine=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/wheel
recipe=$(cat "$here/libraries.sh" "$here/compiler.txt" | sha256sum | cut -c 1-12)
compiler=$cache/compiler-$recipe sources=$cache/sources-$recipe root=$cache/$machine-$recipe
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# Nothing of these is used: old ciphers, and ways to load more code.
without=(no-shared no-tests no-dso no-engine no-legacy no-comp no-dtls no-ssl3 no-srp no-psk no-cms no-ts no-ct no-ocsp
    no-cmp no-async no-idea no-camellia no-seed no-aria no-bf no-cast no-rc2 no-rc4 no-md4 no-mdc2 no-whirlpool no-rmd160
    no-gost no-siphash no-sm2 no-sm3 no-sm4)

missing() { # WHAT
    echo "libraries: error: $1; its last words are in $cache/log" >&2
    exit 69
}

run() { # COMMAND...: its output is only worth reading where it fails
    "$@" >>"$cache/log" 2>&1 || {
        tail -n 30 "$cache/log" >&2
        echo "libraries: error: ${1##*/} failed for $machine; all of its output is in $cache/log" >&2
        exit 1
    }
}

fetch_compiler() {
    python3 -m pip --disable-pip-version-check install --quiet --root-user-action=ignore --no-deps --no-compile \
        --require-hashes --only-binary :all: --target "$compiler.new" -r "$here/compiler.txt" >>"$cache/log" 2>&1 ||
        missing "pip cannot fetch the compiler, the package ziglang"
    mv -T "$compiler.new" "$compiler"
}

# With the state of apt in folders of its own: this machine may have another Debian, and no sources.
fetch_sources() {
    local new=$sources.new part
    local -a options
    mkdir -p "$new/apt/lists/partial" "$new/apt/cache/archives/partial"
    for part in "debian bookworm" "debian-security bookworm-security"; do
        echo "deb-src [signed-by=$keyring] http://deb.debian.org/$part main"
    done >"$new/apt/sources.list"
    options=(-qq -o "Dir::Etc::sourcelist=$new/apt/sources.list" -o Dir::Etc::sourceparts=- -o
        "Dir::State::lists=$new/apt/lists" -o "Dir::Cache=$new/apt/cache")
    (
        cd "$new"
        apt-get "${options[@]}" update
        apt-get "${options[@]}" source libuv1 libwebsockets cjson libyaml
        apt-get "${options[@]}" source --tar-only openssl # Debian changes nothing in it that is built here
        tar xf openssl_*.orig.tar.gz
    ) >>"$cache/log" 2>&1 || missing "apt cannot fetch the sources of Debian 12"
    mv -T "$new" "$sources"
}

write_toolchain() {
    local tool
    mkdir -p "$root/bin"
    printf '#!/bin/sh\nexec "%s" cc -target %s-linux-gnu.2.28 "$@"\n' "$compiler/ziglang/zig" "$machine" >"$root/bin/cc"
    for tool in ar ranlib; do
        printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$compiler/ziglang/zig" "$tool" >"$root/bin/$tool"
    done
    chmod +x "$root"/bin/*
    cat >"$root/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $machine)
set(CMAKE_C_COMPILER "$root/bin/cc")
set(CMAKE_AR "$root/bin/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "$root/bin/ranlib" CACHE FILEPATH "")
set(CMAKE_FIND_ROOT_PATH "$root")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "$root/lib/pkgconfig")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s -L$root/lib -pthread -ldl")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s")
EOF
}

build_openssl() {
    local build=$root/build/openssl
    mkdir -p "$build"
    (
        cd "$build"
        export CC=$root/bin/cc AR=$root/bin/ar RANLIB=$root/bin/ranlib
        run "$(echo "$sources"/openssl-*/Configure)" "linux-$machine" --prefix="$root" --libdir=lib \
            --openssldir=/usr/lib/ssl -fPIC "${without[@]}"
        run make -j2 build_libs
        run make install_dev
    )
}

build() { # NAME OPTION...: with CMake
    local build=$root/build/$1 name=$1
    shift
    run cmake -G Ninja -S "$(echo "$sources/$name"-*/)" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$root/toolchain.cmake" \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$root" -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF "$@"
    run cmake --build "$build"
    run cmake --install "$build"
}

build_libuv() {
    build libuv1 -DLIBUV_BUILD_TESTS=OFF
    rm "$root"/lib/libuv.so*
    mv "$root/lib/libuv_a.a" "$root/lib/libuv.a"
    sed 's/-luv_a/-luv/' "$root/lib/pkgconfig/libuv-static.pc" >"$root/lib/pkgconfig/libuv.pc"
}

build_libyaml() {
    build libyaml
    printf 'Name: yaml-0.1\nDescription: libyaml\nVersion: 0.2.5\nLibs: -L%s -lyaml\nCflags: -I%s\n' "$root/lib" \
        "$root/include" >"$root/lib/pkgconfig/yaml-0.1.pc"
}

# With libuv in it, where Debian's loads that.
build_libwebsockets() {
    build libwebsockets -DLWS_WITH_SHARED=OFF -DLWS_WITH_LIBUV=ON -DLWS_WITH_EVLIB_PLUGINS=OFF -DLWS_WITHOUT_TESTAPPS=ON \
        -DLWS_WITH_MINIMAL_EXAMPLES=OFF -DLWS_WITHOUT_CLIENT=ON -DLWS_WITHOUT_EXTENSIONS=ON -DLWS_WITH_HTTP2=OFF \
        -DLWS_WITH_LIBCAP=OFF -DLWS_WITH_ZLIB=OFF -DLWS_IPV6=ON -DLWS_UNIX_SOCK=ON -DDISABLE_WERROR=ON \
        -DLWS_OPENSSL_INCLUDE_DIRS="$root/include" "-DLWS_OPENSSL_LIBRARIES=$root/lib/libssl.a;$root/lib/libcrypto.a" \
        -DLWS_LIBUV_INCLUDE_DIRS="$root/include" -DLWS_LIBUV_LIBRARIES="$root/lib/libuv.a"
}

keep_terms() {
    local name file
    mkdir "$root/copyright"
    for name in libuv1 libwebsockets cjson libyaml; do
        cp "$(echo "$sources/$name"-*/debian/copyright)" "$root/copyright/$name.copyright"
    done
    file=$(echo "$sources"/openssl-*/LICENSE.txt)
    cp "$file" "$root/copyright/openssl.copyright"
}

[[ $machine == x86_64 || $machine == aarch64 ]] || {
    echo "libraries: error: no machine \"$machine\"; there are x86_64 and aarch64" >&2
    exit 2
}
mkdir -p "$cache"
exec 9>"$cache/.lock" # one at a time
flock 9
if [[ ! -e $root/copyright ]]; then
    echo "libraries: building the libraries of the $machine wheel into $root" >&2
    : >"$cache/log"
    rm -rf "$root" "$compiler.new" "$sources.new"
    [[ -d $compiler ]] || fetch_compiler
    [[ -d $sources ]] || fetch_sources
    write_toolchain
    build_openssl
    build_libuv
    build cjson -DENABLE_CJSON_TEST=OFF
    build_libyaml
    build_libwebsockets
    rm -r "$root/build"
    keep_terms
fi
echo "$root"
