#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that a development cluster needs and that are missing.
# usage: deps.sh [--check]     --check installs nothing, and fails if something is missing
set -euo pipefail

# COMMAND-OR-FILE PACKAGE. Only the command or file counts, so it may come from elsewhere.
NEEDS="
/usr/lib/cni/ptp containernetworking-plugins
buildah buildah
cc gcc
curl curl
/etc/ssl/certs/ca-certificates.crt ca-certificates
ip iproute2
jq jq
mmdebstrap mmdebstrap
nft nftables
openssl openssl
runc runc
sysctl procps
"

deps_missing() {
    local need package
    while read -r need package; do
        [[ -n $need ]] || continue
        if [[ $need == /* ]]; then
            [[ -e $need ]] || echo "$package"
        else
            PATH=$PATH:/usr/sbin:/sbin command -v "$need" >/dev/null || echo "$package"
        fi
    done <<<"$NEEDS"
    # Without libc's static library, gcc cannot link a static program.
    compgen -G '/usr/lib*/*/libc.a' >/dev/null || compgen -G '/usr/lib*/libc.a' >/dev/null || echo libc6-dev
}

deps_install() { # PACKAGE...
    local sudo=() log
    if ! command -v apt-get >/dev/null; then
        echo "deps: missing: $*; there is no apt-get here, install what corresponds by your package manager" >&2
        return 1
    fi
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null || {
            echo "deps: missing: $*; as root, run: apt-get install $*" >&2
            return 1
        }
        sudo=(sudo)
    fi
    echo "deps: installing $*" >&2
    log=$(mktemp)
    # The package lists may be absent or old. A try with them is quicker than an update.
    if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$@" >"$log" 2>&1 &&
        ! { "${sudo[@]}" apt-get update -qq && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes \
            --no-install-recommends "$@"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "deps: installation failed: $*" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

deps_main() {
    local missing
    mapfile -t missing < <(deps_missing)
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ ${1:-} == --check ]]; then
        echo "deps: missing: ${missing[*]}" >&2
        return 1
    fi
    deps_install "${missing[@]}"
}

# Sourced by devcluster for deps_install.
[[ ${BASH_SOURCE[0]} != "$0" ]] || deps_main "$@"
