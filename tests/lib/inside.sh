# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Programs in the network of the suite's dev cluster. "devcluster kubectl" and "devcluster exec" do the same for a person,
# but their own start takes more CPU time than kubectl's, and a suite calls kubectl hundreds of times. Needs $devcluster.

inside_environment=

# inside_enter: reads where the cluster is, once it is up. Kubectl's and helm's garbage collector would take a third of
# their CPU time: they have ended before there is much to collect.
inside_enter() {
    inside_environment="$("$devcluster" env); export GOGC=400"
}

# inside COMMAND...: with the cluster's kubeconfig and programs. It finds the machine's names; devcluster exec those of the
# cluster.
inside() (
    eval "$inside_environment"
    exec nsenter "--net=$CADRE_NETWORK" -- "$@"
)

kc() {
    inside kubectl "$@"
}
