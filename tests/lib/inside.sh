# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Runs programs in the network of the suite's dev cluster. "devcluster kubectl" and "devcluster exec" do the same for people,
# but their start takes more CPU time than kubectl itself, and a suite calls kubectl hundreds of times. Needs $devcluster.

inside_environment=

# inside_enter: asks where the cluster is. Call it when the cluster is up. kubectl and helm end before there is much garbage to
# collect, and their garbage collector would take a third of their CPU time.
inside_enter() {
    inside_environment="$("$devcluster" env); export GOGC=400"
}

# inside COMMAND...: runs the command with the cluster's kubeconfig and programs. It resolves the machine's names; devcluster
# exec also resolves names of the cluster.
inside() (
    eval "$inside_environment"
    exec nsenter "--net=$CADRE_NETWORK" -- "$@"
)

# kc ARGUMENTS...: kubectl. It gives the API server 10 s for a TLS handshake, and an API server that stands still needs
# longer. Nothing was sent then, so kc tries again, unless the command reads standard input or goes on printing.
kc() {
    local tries err status
    case " $* " in *" - "* | *" -i "* | *" exec "* | *" logs "* | *" --watch "*)
        inside kubectl "$@"
        return
        ;;
    esac
    for tries in 1 2 3 4 5; do
        status=0
        { err=$(inside kubectl "$@" 2>&1 >&3 3>&-) || status=$?; } 3>&1
        [[ $status -ne 0 && $err == *"TLS handshake timeout"* && $tries -lt 5 ]] || break
    done
    [[ -z $err ]] || printf '%s\n' "$err" >&2
    return "$status"
}
