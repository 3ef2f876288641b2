// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object.h"

#include "common/base/str.h"

#include <string.h>

static const struct kind_info kinds[KIND_COUNT] = {
    [KIND_POD] = {"Pod", "v1", "pods", true},
    [KIND_NODE] = {"Node", "v1", "nodes", false},
    [KIND_WORKERGROUP] = {"WorkerGroup", "cadre.dev/v1alpha1", "workergroups", true},
    [KIND_PLACEMENTGROUP] = {"PlacementGroup", "cadre.dev/v1alpha1", "placementgroups", true},
    [KIND_SERVICE] = {"Service", "v1", "services", true},
    [KIND_ENDPOINTSLICE] = {"EndpointSlice", "discovery.k8s.io/v1", "endpointslices", true},
    [KIND_LEASE] = {"Lease", "coordination.k8s.io/v1", "leases", true},
    [KIND_EVENT] = {"Event", "events.k8s.io/v1", "events", true},
    [KIND_SECRET] = {"Secret", "v1", "secrets", true},
    [KIND_TOKEN_REVIEW] = {"TokenReview", "authentication.k8s.io/v1", "tokenreviews", false},
    [KIND_SUBJECT_ACCESS_REVIEW] = {"SubjectAccessReview", "authorization.k8s.io/v1", "subjectaccessreviews", false},
    [KIND_SELF_SUBJECT_ACCESS_REVIEW] = {"SelfSubjectAccessReview", "authorization.k8s.io/v1",
                                         "selfsubjectaccessreviews", false},
};

const struct kind_info *kind_info(enum kind kind)
{
    return &kinds[kind];
}

const char *labels_get(const struct labels *l, const char *key)
{
    for (size_t lo = 0, hi = l->n; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int r = strcmp(key, l->items[mid].key);
        if (r == 0)
            return l->items[mid].value;
        if (r < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct object *object_ref(const struct object *o)
{
    ((struct object *)o)->refs++;
    return o;
}

void object_unref(const struct object *o)
{
    if (!o || --((struct object *)o)->refs > 0)
        return;
    struct arena arena = o->arena; // contains the object itself
    arena_done(&arena);
}

int resource_version_cmp(const char *a, const char *b)
{
    if (str_eq(a, b))
        return 0;
    size_t n = a ? strlen(a) : 0, m = b ? strlen(b) : 0;
    if (n != m)
        return n < m ? -1 : 1;
    return n ? strcmp(a, b) : 0;
}

bool owner_is(const struct owner *o, enum kind kind)
{
    const struct kind_info *k = kind_info(kind);
    return str_eq(o->kind, k->kind) && o->api_version &&
           strncmp(o->api_version, k->api_version, strcspn(k->api_version, "/") + 1) == 0;
}
