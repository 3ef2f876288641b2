#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the suites on a cluster share: its programs and our images. If the machine cannot run a cluster, this builds
# nothing, and the suites are skipped.
#   fixture.sh programs|images     images also writes the lines "NAME ARCHIVE" to $CADRE_BUILD_DIR/images, for the suites
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ $EUID -ne 0 ]]; then
    echo "nothing to make: a cluster needs root"
    exit 0
fi
case ${1:-} in
programs) "$root/deploy/devcluster/devcluster" build ;;
images)
    for name in operator example python; do
        archive=$("$root/deploy/images.sh" "$name")
        echo "$name $archive"
    done | tee "${CADRE_BUILD_DIR:?}/images.new"
    mv "$CADRE_BUILD_DIR/images.new" "$CADRE_BUILD_DIR/images"
    ;;
*)
    echo "usage: fixture.sh programs|images" >&2
    exit 2
    ;;
esac
