#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the root folder of an image for one program, on Debian: rootfs.sh DEST PROGRAM [PLUGIN]... A PLUGIN is the file
# name of a library that the program does not name but loads while it runs, or that another program of the image is linked
# with. The Containerfile runs this.
set -eu

dest=$1
program=$2
shift 2

install -D -s "$program" "$dest/usr/bin/$(basename "$program")"

# A plugin is looked for in the folder that was compiled in, so it goes where its package has it.
plugins=
for name; do
    path=$(dpkg-query -S "*/$name" | sed 's/.*: //')
    plugins="$plugins $path"
done

# The shared libraries that all of it is linked with, the loader among them, and under which terms they are there.
for object in "$program" $plugins; do
    ldd "$object"
done >"$dest/ldd"
if grep 'not found' "$dest/ldd" >&2; then exit 1; fi
for library in $(grep -o '/[^ ]*' "$dest/ldd" | sort -u) $plugins; do
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
