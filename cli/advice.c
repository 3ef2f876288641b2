// SPDX-License-Identifier: Apache-2.0
#include "cli/advice.h"

#include "common/base/mem.h"
#include "common/base/str.h"

static const struct {
    const char *reason, *text;
} advices[] = {
    {"Infeasible",
     "The group would not fit even if all nodes were empty. Ask for less, or for other nodes (nodeSelector,\n"
     "affinity, tolerations, strategy, topologyKey); or add, uncordon or label nodes. 'kubectl describe node\n"
     "NAME' shows what a node has."},
    {"Insufficient",
     "The group starts by itself when other pods leave. To make room, end or shrink other work, add nodes,\n"
     "or give the group a higher priority (priorityClassName in its template)."},
    {"PlacementGroupNotFound",
     "Create the PlacementGroup, or correct its name in spec.placement.groups; 'kubectl get plg' lists all\n"
     "of them. The group then starts by itself."},
    {"PlacementGroupNotReady",
     "'kubectl cadre why plg/NAME' says what the PlacementGroup waits for. The group starts by itself."},
    {"InvalidBundles", "Name bundles that the PlacementGroup has, each once; 'kubectl get plg' shows how many it has."},
    {"PortConflict", "Remove spec.rendezvousPort, choose another port, or wait until the other group is gone."},
    {"NotSupported", "The spec uses a field that this version does not implement; the message names it."},
    {"ReservedEnv", "Remove the variable from env of the template: Cadre sets it."},
    {"InvalidTemplate", "The API server refuses a pod made from the template: correct what its answer says."},
    {"CommandRequired",
     "Say what to run: set worker.module, worker.python or worker.command, or a command in the first\n"
     "container."},
    {"MeshMismatch", "The product of a mesh's sizes must be the world size: replicas * workersPerReplica."},
    {"NameConflict", "Delete the object that has this name, or give the group another name."},
    {"QuotaExceeded",
     "Raise the ResourceQuota of the namespace, or ask for less; 'kubectl describe quota' shows what is in use.\n"
     "The operator tries again by itself."},
    {"Forbidden", "The API server refused a pod, for example by an admission policy; the message has its answer. The\n"
                  "operator tries again by itself."},
    {"BindTimeout",
     "Other pods took the room before all pods were bound, so the operator deleted all pods. It plans again\n"
     "after a pause. If this repeats, something else schedules pods onto these nodes: see the events."},
    {"Checking", "The API server checks the template. This takes a moment."},
    {"Pending", "The operator has not looked at the group yet. If nothing changes, check that the operator runs:\n"
                "'kubectl --namespace cadre-system get pods'"},
    {"Creating", "The operator creates the pods. This takes a moment."},
    {"Binding", "kube-scheduler binds the pods to the planned nodes. The list of pods says why a pod is not bound."},
    {"Starting", "The pods are bound, and start. The list of pods says what each pod waits for."},
    {"Silent", "An agent is not connected. Right after a start, this takes a moment. If it does not connect, check\n"
               "whether the pod reaches the operator (NetworkPolicy, DNS), and read 'kubectl cadre logs'."},
    {"KeysChanged",
     "The processes continue. Put the earlier keys back into the Secret of the operator. Or delete the pods,\n"
     "or suspend and resume the group."},
    {"ImagePullFailed",
     "Correct the name of the image, or its pull secret. The list of pods has the answer of the registry."},
    {"ContainerConfigError",
     "Create the missing object, for example a ConfigMap or Secret. The group continues by itself."},
    {"Restarting", "A rank failed, and the group starts again: see the last failure."},
    {"Backoff", "A rank failed, and the group starts again after a pause: see the last failure."},
    {"Terminating", "The pods of the previous attempt must be gone first, within terminationGracePeriodSeconds."},
    {"Failed",
     "See the last failure. 'kubectl cadre logs' shows all output of the pods that are kept. To start the group\n"
     "again, change what it runs (template, worker, replicas)."},
    {"MaxRestartsExceeded",
     "The group failed more often than spec.maxRestarts allows. See the last failure, and 'kubectl cadre logs'\n"
     "for the pods that are kept. To start the group again, change what it runs (template, worker, replicas);\n"
     "a higher maxRestarts alone is not enough. Or delete the group and create it again."},
    {"WorkerFailed",
     "With restartPolicy Never, the group does not start again. See the last failure, and 'kubectl cadre logs'\n"
     "for the pods that are kept."},
    {"FailurePolicy",
     "A rule of spec.failurePolicy says that the group fails with this exit code. See the last failure."},
    {"DeadlineExceeded",
     "The group took longer than spec.activeDeadlineSeconds, including its wait for room. To start it again\n"
     "with its full time, change what it runs."},
    {"Suspended", "Set spec.suspend to false."},
};

const char *advice_of(const char *reason)
{
    for (size_t i = 0; i < ARRAY_LEN(advices); i++)
        if (str_eq(advices[i].reason, reason))
            return advices[i].text;
    return NULL;
}
