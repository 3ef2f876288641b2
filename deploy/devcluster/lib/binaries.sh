# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Builds the cluster's programs from the modules in go/ into a cache that is keyed by their contents.

BIN_DIRS='' PAUSE_DIR='' # set by binaries_path

# MODULE PACKAGE NAME, in the order in which a cluster needs them: the control plane comes first.
BINARIES=(
    "kubernetes go.etcd.io/etcd/server/v3 etcd"
    "kubernetes k8s.io/kubernetes/cmd/kube-apiserver kube-apiserver"
    "kubernetes k8s.io/kubernetes/cmd/kube-controller-manager kube-controller-manager"
    "kubernetes k8s.io/kubernetes/cmd/kube-scheduler kube-scheduler"
    "kubernetes k8s.io/kubernetes/cmd/kubectl kubectl"
    "kubernetes k8s.io/kubernetes/cmd/kubelet kubelet"
    "kubernetes k8s.io/kubernetes/cmd/kube-proxy kube-proxy"
    "runtime github.com/containerd/containerd/v2/cmd/containerd containerd"
    "runtime github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 containerd-shim-runc-v2"
    "runtime github.com/containerd/containerd/v2/cmd/ctr ctr"
    "runtime github.com/coredns/coredns coredns"
    "tools sigs.k8s.io/kwok/cmd/kwok kwok"
    "tools helm.sh/helm/v3/cmd/helm helm"
)

module_version() { # MODULE-DIR PATH: the version that go.mod pins
    sed -n "s,^\(require\)\?[[:space:]]*$2 \(v[0-9][^ ]*\).*,\2,p" "$HERE/go/$1/go.mod" | head -n 1
}

module_dir() { # MODULE-DIR: where its binaries are kept
    printf '%s/bin/%s-%s\n' "$CACHE_DIR" "$1" \
        "$(cat "$HERE/go/$1/go.mod" "$HERE/go/$1/go.sum" | sha256sum | cut -c1-12)"
}

# The components compare their versions, and misbehave if a version is empty.
link_flags() { # MODULE-DIR
    local version package=k8s.io/component-base/version
    case $1 in
    kubernetes)
        version=$(module_version kubernetes k8s.io/kubernetes)
        printf -- '-s -w -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s -X %s.gitTreeState=clean' \
            $package "$version" $package "$(cut -d. -f1 <<<"${version#v}")" \
            $package "$(cut -d. -f2 <<<"$version")" $package
        ;;
    runtime)
        printf -- '-s -w -X github.com/containerd/containerd/v2/version.Version=%s' \
            "$(module_version runtime github.com/containerd/containerd/v2)"
        ;;
    tools)
        printf -- '-s -w -X helm.sh/helm/v3/internal/version.version=%s' "$(module_version tools helm.sh/helm/v3)"
        ;;
    esac
}

# binaries_path COMMAND: sets PATH so that our programs come first, BIN_DIRS and PAUSE_DIR. A command that does not start
# the cluster uses the programs with which it was started: asking the modules takes longer than most commands.
binaries_path() {
    case $1 in
    up | ensure | build) ;;
    *)
        # shellcheck source=/dev/null
        [[ ! -r $STATE/programs ]] || . "$STATE/programs"
        ;;
    esac
    if [[ -z $BIN_DIRS ]]; then
        BIN_DIRS=$(module_dir kubernetes):$(module_dir runtime):$(module_dir tools)
        PAUSE_DIR=$CACHE_DIR/bin/pause-$(cat "$HERE/pause/pause.c" "$HERE/lib/pause.sh" | sha256sum | cut -c1-12)
    fi
    PATH=$BIN_DIRS:$PATH:/usr/sbin:/sbin
    export PATH
}
binaries_path_keep() { printf 'BIN_DIRS=%q PAUSE_DIR=%q\n' "$BIN_DIRS" "$PAUSE_DIR" >"$STATE/programs"; }

# binaries_missing [NAME...]: prints the lines of BINARIES, or of those names, that are not built.
binaries_missing() {
    local module package name
    while read -r module package name; do
        [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
        [[ -x $(module_dir "$module")/$name ]] || echo "$module $package $name"
    done < <(printf '%s\n' "${BINARIES[@]}")
}

# binary_build MODULE PACKAGE NAME: renames the program at the end, so that a crash leaves no half program.
binary_build() {
    local dir started=$SECONDS
    dir=$(module_dir "$1")
    mkdir -p "$dir"
    printf 'devcluster: building %s ... ' "$3" >&2
    (cd "$HERE/go/$1" && env CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-buildvcs=false \
        GOROOT= "$GO" build -trimpath -ldflags "$(link_flags "$1")" -o "$dir/.$3.$$" "$2") >"$dir/.$3.log" 2>&1 || {
        echo failed >&2
        tail -n 20 "$dir/.$3.log" >&2
        die "$3 cannot be built; all of its output: $dir/.$3.log"
    }
    mv -f "$dir/.$3.$$" "$dir/$3"
    rm -f "$dir/.$3.log"
    printf '%d s\n' $((SECONDS - started)) >&2
}

# binaries_ensure [NAME...]: builds the missing ones, one builder at a time.
binaries_ensure() {
    local module package name missing
    [[ -n $(binaries_missing "$@") ]] || return 0
    lock_take 8 "$CACHE_DIR/bin/lock"
    mapfile -t missing < <(binaries_missing "$@")
    if [[ ${#missing[@]} -gt 0 ]]; then
        go_ensure
        say "building ${#missing[@]} programs with Go $(go_version_of "$GO"), once; all 13 take about 7 minutes on 2 cores"
        rm -f "$CACHE_DIR"/bin/*/.*.[0-9]*
        while read -r module package name <&3; do
            binary_build "$module" "$package" "$name"
        done 3< <(printf '%s\n' "${missing[@]}")
    fi
    exec 8>&-
}
