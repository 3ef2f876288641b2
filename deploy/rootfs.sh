#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the root folder of an image for one program, on Debian: rootfs.sh DEST PROGRAM. The Containerfile runs it.
set -eu

dest=$1
program=$2
name=$(basename "$program")

install -D -s "$program" "$dest/usr/bin/$name"

# The shared libraries it is linked with, the loader among them, and under which terms they are there.
ldd "$program" >"$dest/ldd"
if grep 'not found' "$dest/ldd" >&2; then exit 1; fi
grep -o '/[^ ]*' "$dest/ldd" | while read -r library; do
    cp --dereference --parents "$library" "$dest"
    package=$(dpkg-query -S "*/${library##*/}" | head -n1 | sed 's/[:,].*//')
    install -D -m 644 "/usr/share/doc/$package/copyright" "$dest/usr/share/doc/$package/copyright"
done
rm "$dest/ldd"
install -D -m 644 LICENSE "$dest/usr/share/doc/cadre/copyright"

# For HTTPS, for names, and for a user that is not root.
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$dest/etc/ssl/certs/ca-certificates.crt"
echo 'hosts: files dns' >"$dest/etc/nsswitch.conf"
echo 'nonroot:x:65532:65532:nonroot:/:/usr/sbin/nologin' >"$dest/etc/passwd"
echo 'nonroot:x:65532:' >"$dest/etc/group"
