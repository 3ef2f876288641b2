#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of Prometheus' promtool, which tests the chart's alerts: the one that is installed, or else one that is
# unpacked from Debian's package, without its service, into ~/.cache/cadre. Exit status 1: there is none.
#   promtool.sh
set -euo pipefail

folder=${XDG_CACHE_HOME:-$HOME/.cache}/cadre/promtool

type -P promtool && exit
if [[ ! -x $folder/usr/bin/promtool ]]; then
    new=$(mktemp -d)
    trap 'rm -rf "$new"' EXIT
    (cd "$new" && apt-get download prometheus && dpkg -x prometheus_*.deb unpacked) >&2 || {
        echo "promtool: error: apt cannot download the package prometheus" >&2
        exit 1
    }
    mkdir -p "$folder/usr/bin"
    mv "$new/unpacked/usr/bin/promtool" "$folder/usr/bin/"
fi
echo "$folder/usr/bin/promtool"
