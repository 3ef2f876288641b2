# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154
# Runs programs in Python on a machine outside the cluster.

# outside PYTHON-ARGUMENTS...: runs Python outside the cluster, with the package as in a wheel. The library may be built with a
# sanitizer. $outside_python: another interpreter; $outside_path: more folders.
outside() {
    local library=${CADRE_BUILD_DIR:-$suite_root/build/ci}/worker/host/libcadre.so
    [[ -d $suite_dir/package ]] || "$suite_root/deploy/package.sh" "$suite_dir/package" >"$tap_diag" 2>&1
    "$devcluster" exec -- env --unset CADRE_OPERATOR "PYTHONPATH=$suite_dir/package${outside_path:+:$outside_path}" "CADRE_CLIENT_LIBRARY=$library" \
        ASAN_OPTIONS=detect_leaks=0 "LD_PRELOAD=$(ldd "$library" | awk '/libasan/ { print $3 }')" \
        "${outside_python:-python3}" "$@"
}
