# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Finds or fetches a Go toolchain that is new enough for go/*/go.mod. Sets GO.

GO_WANTED=1.26.0 # the go.mod files ask for it
GO_FETCHED=1.26.8 # fetched if there is none

go_version_of() { GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//'; }

version_at_least() { # HAVE WANT
    [[ -n $1 && $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]
}

# Any Go, also 1.19 of Debian 12, can fetch a newer toolchain as the module golang.org/toolchain, through the user's GOPROXY.
# Go checks it with the checksum database. The files of modules have no execute bits.
go_fetch() { # OLD-GO
    local arch dir
    arch=$(GOTOOLCHAIN=local "$1" env GOARCH)
    say "fetching Go $GO_FETCHED (this machine has $(go_version_of "$1"))"
    dir=$(cd / && GOFLAGS=-mod=mod GOTOOLCHAIN=local GO111MODULE=on "$1" mod download -json \
        "golang.org/toolchain@v0.0.1-go$GO_FETCHED.linux-$arch" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    [[ -n $dir && -d $dir ]] || die "Go $GO_FETCHED cannot be fetched: is GOPROXY reachable? Or install Go >= $GO_WANTED"
    find "$dir/bin" "$dir/pkg/tool" -type f -exec chmod a+x {} +
    GO=$dir/bin/go
}

go_ensure() {
    local go
    # With sudo: files of root in the Go caches of a user would break the builds of that user.
    [[ -z ${SUDO_UID:-} ]] || export GOPATH=$CACHE_DIR/go GOCACHE=$CACHE_DIR/go/build
    for go in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go/bin/go /usr/lib/go-*/bin/go; do
        [[ -x $go ]] || continue
        GO=$go
        version_at_least "$(go_version_of "$go")" "$GO_WANTED" && return 0
    done
    if [[ -z ${GO:-} ]]; then
        command -v apt-get >/dev/null || die "no Go here: install Go >= 1.19 by your package manager (a newer one is fetched)"
        deps_install golang-go
        GO=$(command -v go) || die "the package golang-go brought no go command"
    fi
    go_fetch "$GO"
}
