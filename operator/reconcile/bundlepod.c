// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/bundlepod.h"

#include "common/base/mem.h"
#include "operator/api/pod_constraints.h"
#include "operator/reconcile/view.h"

#include <inttypes.h>
#include <string.h>

enum { RENDEZVOUS_PORT = 29500 };

const char *bundlepod_gang(const struct placementgroup *plg, struct arena *a)
{
    return arena_printf(a, "%s-plg", plg->obj.meta.name);
}

const char *bundlepod_name(const struct placementgroup *plg, int32_t index, int32_t incarnation, struct arena *a)
{
    return gang_manifest_pod_name(bundlepod_gang(plg, a), index, incarnation, a);
}

const char *bundlepod_service(const struct placementgroup *plg, struct arena *a)
{
    return gang_manifest_service(&plg->obj, bundlepod_gang(plg, a), true, RENDEZVOUS_PORT, a);
}

static int render(const struct placementgroup *plg, const struct bundlepod *p, const char *template_json,
                  const struct bundles *b, struct arena *a, const char **ret_json, struct err *err)
{
    struct label annotations[] = {
        {ANNOTATION_BUNDLES, bundles_text(p->items, p->n, a)},
        {ANNOTATION_SHAPES, bundles_shapes_text(b, p->items, p->n, a)},
        {ANNOTATION_SPEC_HASH, arena_printf(a, "%016" PRIx64, p->pod.hash)},
    };
    const struct env_var env[] = {
        {"CADRE_GROUP_UID", plg->obj.meta.uid},
        {"CADRE_NAMESPACE", plg->obj.meta.ns},
        {"CADRE_INDEX", arena_printf(a, "%" PRId32, p->pod.index)},
    };
    struct pod_render r = gang_manifest_pod(&plg->obj, bundlepod_gang(plg, a), &p->pod, a);
    struct pod_agent agent = {.brings_command = true}; // it is idle until there are processes to run
    gang_manifest_agent(p->pod.setup, &agent);
    r.annotations = (struct labels){annotations, ARRAY_LEN(annotations)};
    r.env = env;
    r.n_env = ARRAY_LEN(env);
    r.agent = &agent;
    return pod_render(template_json, &r, a, ret_json, err);
}

int bundlepod_render(const struct placementgroup *plg, const struct bundles *b, const struct bundlepod *p,
                     struct arena *a, const char **ret_json, struct err *err)
{
    struct arena scratch = ARENA_INIT; // a gang has thousands of pods, and only their texts are kept
    struct bundle_sum sum;
    const char *template_json, *filled, *json;
    bundles_sum(b, p->items, p->n, &scratch, &sum);
    struct bundle_fill fill = {
        .resources = &sum.resources,
        .node_selector = &sum.node_selector,
        .image = p->pod.setup->image,
        .pull_policy = p->pod.setup->pull_policy,
    };
    int r = bundle_template(plg->spec.template_json, &scratch, &template_json, err);
    if (r == 0)
        r = bundle_fill(template_json, &fill, &scratch, &filled, err);
    if (r == 0)
        r = render(plg, p, filled, b, &scratch, &json, err);
    if (r == 0)
        *ret_json = arena_strdup(a, json);
    arena_done(&scratch);
    return r;
}

int bundlepod_needs(const struct bundles *b, const char *tried_pod, const int32_t *items, size_t n, struct arena *a,
                    struct pod_constraints *ret, struct err *err)
{
    struct bundle_sum sum;
    const char *filled;
    bundles_sum(b, items, n, a, &sum);
    struct bundle_fill fill = {
        .resources = &sum.resources,
        .node_selector = &sum.node_selector,
        .replaces = &bundle_shape(b, 0)->resources,
    };
    int r = bundle_fill(tried_pod, &fill, a, &filled, err);
    return r < 0 ? r : pod_constraints_decode(filled, strlen(filled), a, ret, err);
}
