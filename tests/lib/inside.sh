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

kc() {
    inside kubectl "$@"
}
