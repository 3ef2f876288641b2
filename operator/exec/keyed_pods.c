// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/keyed_pods.h"

#include "common/base/str.h"
#include "operator/api/pod.h"
#include "operator/api/podagent.h"

struct count {
    const char *but;
    size_t n;
};

static void count_one(void *ctx, const struct object *pod)
{
    struct count *c = ctx;
    const char *owner = pod->meta.owner.kind, *keys = labels_get(&pod->meta.annotations, ANNOTATION_KEYS);
    bool ours = str_eq(owner, kind_info(KIND_WORKERGROUP)->kind) || str_eq(owner, kind_info(KIND_PLACEMENTGROUP)->kind);
    bool other = !c->but || (keys && !str_eq(keys, c->but));
    c->n += ours && other && !pod_terminal(pod_of(pod));
}

size_t keyed_pods_count(const struct store *pods, const char *but)
{
    struct count c = {.but = but};
    store_each(pods, count_one, &c);
    return c.n;
}
