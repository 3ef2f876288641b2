// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/bundlepod.h"

#include "common/base/mem.h"
#include "operator/api/pod_constraints.h"
#include "operator/api/podagent.h"
#include "operator/api/service.h"
#include "operator/reconcile/group_view.h"
#include "operator/reconcile/names.h"

#include <inttypes.h>
#include <string.h>

enum { RENDEZVOUS_PORT = 29500 };

const char *bundlepod_gang(const struct placementgroup *plg, struct arena *a)
{
    return arena_printf(a, "%s-plg", plg->obj.meta.name);
}

const char *bundlepod_name(const struct placementgroup *plg, int32_t index, int32_t incarnation, struct arena *a)
{
    return arena_printf(a, "%s-plg-%" PRId32 "-%" PRId32, plg->obj.meta.name, index, incarnation);
}

static struct owner owner_of(const struct placementgroup *plg)
{
    const struct kind_info *k = kind_info(KIND_PLACEMENTGROUP);
    return (struct owner){k->api_version, k->kind, plg->obj.meta.name, plg->obj.meta.uid};
}

const char *bundlepod_service(const struct placementgroup *plg, struct arena *a)
{
    const char *name = bundlepod_gang(plg, a);
    struct label labels[] = {
        {"app.kubernetes.io/instance", plg->obj.meta.name},
        {LABEL_MANAGED_BY, MANAGED_BY},
        {LABEL_GROUP, name},
    };
    struct label selector[] = {{LABEL_GROUP, name}};
    struct service_spec s = {
        .ns = plg->obj.meta.ns,
        .name = name,
        .labels = {labels, ARRAY_LEN(labels)},
        .selector = {selector, ARRAY_LEN(selector)},
        .owner = owner_of(plg),
        .port = RENDEZVOUS_PORT,
    };
    return service_encode(&s, a);
}

static int render(const struct placementgroup *plg, const struct bundlepod *p, const char *template_json,
                  const struct bundles *b, struct arena *a, const char **ret_json, struct err *err)
{
    const char *gang = bundlepod_gang(plg, a), *index = arena_printf(a, "%" PRId32, p->index);
    struct label labels[] = {
        {"app.kubernetes.io/instance", plg->obj.meta.name},
        {LABEL_MANAGED_BY, MANAGED_BY},
        {LABEL_GROUP, gang},
        {LABEL_INCARNATION, arena_printf(a, "%" PRId32, p->incarnation)},
        {LABEL_INDEX, index},
    };
    struct label annotations[] = {
        {ANNOTATION_BUNDLES, bundles_text(p->items, p->n, a)},
        {ANNOTATION_SHAPES, bundles_shapes_text(b, p->items, p->n, a)},
        {ANNOTATION_SPEC_HASH, arena_printf(a, "%016" PRIx64, p->template_hash)},
    };
    const struct env_var env[] = {
        {"CADRE_GROUP_UID", plg->obj.meta.uid},
        {"CADRE_NAMESPACE", plg->obj.meta.ns},
        {"CADRE_INDEX", index},
    };
    struct pod_agent agent = {
        .image = p->setup->image,
        .pull_policy = p->setup->pull_policy,
        .url = p->setup->url,
        .ca_pem = p->setup->ca_pem,
        .keys_id = p->setup->keys_id,
        .brings_command = true, // it is idle until there are processes to run
    };
    struct pod_render r = {
        .ns = plg->obj.meta.ns,
        .name = p->name,
        .hostname = arena_printf(a, "%s-%" PRId32, gang, p->index),
        .subdomain = gang,
        .labels = {labels, ARRAY_LEN(labels)},
        .annotations = {annotations, ARRAY_LEN(annotations)},
        .owner = owner_of(plg),
        .env = env,
        .n_env = ARRAY_LEN(env),
        .pin = p->pin,
        .agent = &agent,
    };
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
        .image = p->setup->image,
        .pull_policy = p->setup->pull_policy,
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
