#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the suites on a cluster share: its programs and our images. Where the machine cannot run a cluster there is
# nothing to make, and the suites say themselves that they are skipped.
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
