# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The sandbox image of the nodes' containerd. It is one static program, which this file packs as a docker archive, so it needs
# neither a registry nor an image builder.

PAUSE_IMAGE=localhost/cadre-pause:1

pause_ensure() {
    local tar=$PAUSE_DIR/pause.tar work layer
    [[ ! -s $tar ]] || return 0
    mkdir -p "$PAUSE_DIR"
    work=$(mktemp -d "$PAUSE_DIR/.work.XXXXXX")
    cc -Os -Wall -Wextra -Werror -static -s -o "$work/pause" "$HERE/pause/pause.c" ||
        die "the pause image needs a C compiler and libc's static library (deploy/devcluster/deps.sh)"
    tar -C "$work" --owner=0 --group=0 --mtime=@0 -cf "$work/layer.tar" pause
    layer=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
    printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/pause"],"User":"65535:65535"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created_by":"pause"}]}' \
        "$(dpkg --print-architecture 2>/dev/null || uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')" "$layer" >"$work/config.json"
    printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$PAUSE_IMAGE" >"$work/manifest.json"
    tar -C "$work" --owner=0 --group=0 --mtime=@0 -cf "$work/pause.tar" manifest.json config.json layer.tar
    mv "$work/pause.tar" "$tar"
    rm -rf "$work"
}
