#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the suites on a cluster share: its programs and our images. If the machine cannot run a cluster, this builds
# nothing, and the suites are skipped.
#   fixture.sh programs|images
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ $EUID -ne 0 ]]; then
    echo "nothing to make: a cluster needs root"
    exit 0
fi
case ${1:-} in
programs) "$root/deploy/devcluster/devcluster" build ;;
images) "$root/deploy/images.sh" operator example python ;;
*)
    echo "usage: fixture.sh programs|images" >&2
    exit 2
    ;;
esac
