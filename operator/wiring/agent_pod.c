// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/agent_pod.h"

#include "common/base/str.h"
#include "operator/api/pod.h"
#include "operator/api/workergroup.h"

enum { HEARTBEAT_DEFAULT_S = 3 };

int agent_pod_find(const struct store *pods, const struct store *groups, const struct pod_claims *claims,
                   struct agent_identity *ret, int64_t *ret_heartbeat_ms, struct err *err)
{
    const struct object *pod = store_get(pods, claims->ns, claims->pod);
    if (!pod)
        return err_set(err, ERR_UNAVAILABLE, "this replica does not know pod %s/%s yet; connect again", claims->ns,
                       claims->pod);
    if (!str_eq(pod->meta.uid, claims->pod_uid))
        return err_set(err, ERR_CONFLICT, "pod %s/%s was replaced by another one of its name", claims->ns, claims->pod);
    bool of_group = owner_is(&pod->meta.owner, KIND_WORKERGROUP);
    if (!of_group && !owner_is(&pod->meta.owner, KIND_PLACEMENTGROUP))
        return err_set(err, ERR_FORBIDDEN, "pod %s/%s does not belong to a WorkerGroup or PlacementGroup", claims->ns,
                       claims->pod);
    if (pod_terminal(pod_of(pod)))
        return err_set(err, ERR_CONFLICT, "pod %s/%s has ended", claims->ns, claims->pod);
    const struct object *group = of_group ? store_get(groups, claims->ns, pod->meta.owner.name) : NULL;
    if (of_group && (!group || !str_eq(group->meta.uid, pod->meta.owner.uid)))
        return err_set(err, ERR_UNAVAILABLE,
                       "pod %s/%s says that it belongs to WorkerGroup %s with UID %s, which this replica does not know "
                       "in its namespace; connect again",
                       claims->ns, claims->pod, pod->meta.owner.name, pod->meta.owner.uid);
    *ret = (struct agent_identity){
        .ns = pod->meta.ns,
        .group = pod->meta.owner.name,
        .group_uid = of_group ? pod->meta.owner.uid : NULL,
        .of_placementgroup = !of_group,
        .pod = pod->meta.name,
        .pod_uid = pod->meta.uid,
        .node = pod_of(pod)->node,
    };
    int64_t seconds = group ? workergroup_of(group)->spec.heartbeat_s : 0;
    *ret_heartbeat_ms = (seconds > 0 ? seconds : HEARTBEAT_DEFAULT_S) * 1000;
    return 0;
}
