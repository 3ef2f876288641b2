// SPDX-License-Identifier: Apache-2.0
#include "cli/advice.h"

#include "common/base/mem.h"
#include "common/base/str.h"

static const struct {
    const char *reason, *text;
} advices[] = {
    {"Infeasible",
     "The nodes that exist could never take it, however empty they are. Ask for less, or for other nodes\n"
     "(nodeSelector, affinity, tolerations, strategy, topologyKey); or add, uncordon or label nodes.\n"
     "'kubectl describe node NAME' shows what a node has."},
    {"Insufficient",
     "It starts by itself once others leave. To make room, end or shrink other work, add nodes, or give\n"
     "it a higher priority (priorityClassName in its template)."},
    {"PlacementGroupNotFound",
     "Create the PlacementGroup, or correct its name in spec.placement.groups: 'kubectl get plg' shows\n"
     "which there are. The group begins by itself."},
    {"PlacementGroupNotReady",
     "'kubectl cadre why plg/NAME' says what the PlacementGroup waits for. The group begins by itself."},
    {"InvalidBundles",
     "Ask for bundles that the PlacementGroup has, each once: 'kubectl get plg' shows how many there are."},
    {"PortConflict", "Leave spec.rendezvousPort out, or choose another one; or wait until the other group has gone."},
    {"NotSupported", "The spec uses what this version does not have; the message names it."},
    {"ReservedEnv", "Remove the variable from env of the template: Cadre sets it."},
    {"InvalidTemplate", "The API server refuses a pod made from the template: correct what its answer says."},
    {"CommandRequired",
     "Say what to run: worker.module, worker.python, worker.command, or a command in the first container."},
    {"MeshMismatch", "The dimensions of a mesh must multiply to the world size: replicas * workersPerReplica."},
    {"NameConflict", "Delete the object that has the name already, or give the group another name."},
    {"QuotaExceeded", "Raise the ResourceQuota of the namespace, or ask for less. It is tried again by itself;\n"
                      "'kubectl describe quota' shows what is used."},
    {"Forbidden", "The API server refused a pod, for example by an admission policy; the message has its answer.\n"
                  "It is tried again by itself."},
    {"BindTimeout", "Others took the room before all pods were bound, and all was given back. It plans again after a\n"
                    "pause. If that repeats, something else schedules onto these nodes: see the events."},
    {"Checking", "The template is being checked by the API server; this takes a moment."},
    {"Pending", "The operator has not looked at it yet. If it stays so: does it run?\n"
                "'kubectl --namespace cadre-system get pods'"},
    {"Creating", "Its pods are being created; this takes a moment."},
    {"Binding", "kube-scheduler binds the pods to the planned nodes. A pod below that is not bound says why."},
    {"Starting", "The pods are bound, and start. Those that are not ready yet are below, with what they wait for."},
    {"Silent", "An agent is not connected. Right after a start this takes a moment. If it stays so, see whether the\n"
               "pod reaches the operator (NetworkPolicy, DNS) and what 'kubectl cadre logs' says."},
    {"KeysChanged", "Its processes run on. Put the earlier keys back into the Secret of the operator, or, when it\n"
                    "suits, delete the pods, or suspend and resume the group."},
    {"ImagePullFailed", "Correct the image's name, or its pull secret; the pod below has the answer of the registry."},
    {"ContainerConfigError", "Create what is missing, for example a ConfigMap or Secret; it goes on by itself."},
    {"Restarting", "A rank has failed and the group starts again; see the last failure."},
    {"Backoff", "A rank has failed and the group starts again after a pause; see the last failure."},
    {"Terminating", "The pods of the attempt before must be gone first; a terminationGracePeriodSeconds may pass."},
    {"Failed", "A change of what it runs (template, worker, replicas) starts it again. See the last failure;\n"
               "'kubectl cadre logs' has all output while the pods are kept."},
    {"MaxRestartsExceeded",
     "It has failed more often than spec.maxRestarts allowed. See the last failure, and 'kubectl\n"
     "cadre logs' while the pods are kept. A change of what it runs (template, worker, replicas)\n"
     "starts it again; a higher maxRestarts alone does not. Or delete it and create it again."},
    {"WorkerFailed", "restartPolicy Never: it is not started again. See the last failure, and 'kubectl cadre logs'\n"
                     "while the pods are kept."},
    {"FailurePolicy", "A rule of spec.failurePolicy says that this exit code is the end. See the last failure."},
    {"DeadlineExceeded",
     "It took longer than spec.activeDeadlineSeconds, waiting for room included. A change of what it\n"
     "runs starts it again, with its full time."},
    {"Suspended", "Set spec.suspend to false."},
};

const char *advice_of(const char *reason)
{
    for (size_t i = 0; i < ARRAY_LEN(advices); i++)
        if (str_eq(advices[i].reason, reason))
            return advices[i].text;
    return NULL;
}
