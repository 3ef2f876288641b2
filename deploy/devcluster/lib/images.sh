# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Images get to the nodes as docker archives, because there is no registry.

image_id() { # TAR: the digest of its config, which names the image's contents
    tar -xOf "$1" manifest.json | jq -er '.[0].Config | sub("^.*/"; "") | sub("\\.json$"; "")'
}

# image_import NODE TAR: does nothing if that node already has this image.
image_import() {
    local id mark
    id=$(image_id "$2") || die "$2 is not a docker archive (buildah push NAME docker-archive:FILE, docker save NAME)"
    mark=$STATE/nodes/$1/images/$(basename "$2" .tar)
    [[ ! -e $mark || $(<"$mark") != "$id" ]] || return 0
    node_ctr "$1" images import --local "$2" >>"$STATE/logs/images.log" 2>&1 ||
        die "$2 cannot be imported on node $1; log: $STATE/logs/images.log"
    mkdir -p "${mark%/*}"
    echo "$id" >"$mark"
}

# image_archive IMAGE: prints the path of a docker archive. IMAGE is such a file, or an image in buildah's store.
image_archive() {
    local tar
    if [[ -f $1 ]]; then
        echo "$1"
        return 0
    fi
    { command -v buildah >/dev/null && buildah inspect --type image "$1"; } >/dev/null 2>&1 ||
        die "no image \"$1\": give a docker archive or the name of an image that buildah has (buildah images)"
    tar=$STATE/images/.export.tar
    rm -f "$tar"
    buildah push --quiet "$1" "docker-archive:$tar:$1" >/dev/null || die "image $1 cannot be exported"
    echo "$tar"
}

# images_load IMAGE...: imports the images into every node that runs, and keeps them for nodes that start later.
images_load() {
    local image archive name kept node imports import
    mkdir -p "$STATE/images"
    for image in "$@"; do
        archive=$(image_archive "$image") || exit 1
        name=$(tar -xOf "$archive" manifest.json 2>/dev/null | jq -er '.[0].RepoTags[0]') ||
            die "$image is not a docker archive with a name (buildah push NAME docker-archive:FILE:NAME)"
        kept=$STATE/images/${name//[^A-Za-z0-9._-]/_}.tar
        cp -f "$archive" "$STATE/images/.new" && mv "$STATE/images/.new" "$kept"
        rm -f "$STATE/images/.export.tar"
        imports=()
        for node in $(node_names); do
            process_alive "containerd-$node" || continue
            image_import "$node" "$kept" &
            imports+=($!)
        done
        for import in "${imports[@]}"; do wait "$import" || exit 1; done
        say "image $name is on all nodes"
    done
}
