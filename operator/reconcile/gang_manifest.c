// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_manifest.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/service.h"
#include "operator/reconcile/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct owner gang_manifest_owner(const struct object *o)
{
    const struct kind_info *k = kind_info(o->kind);
    return (struct owner){k->api_version, k->kind, o->meta.name, o->meta.uid};
}

const char *gang_manifest_pod_name(const char *gang, int32_t index, int32_t incarnation, struct arena *a)
{
    return arena_printf(a, "%s-%" PRId32 "-%" PRId32, gang, index, incarnation);
}

const char *gang_manifest_service(const struct object *owner, const char *gang, bool selects, int32_t port,
                                  struct arena *a)
{
    struct label labels[] = {
        {"app.kubernetes.io/instance", owner->meta.name},
        {LABEL_MANAGED_BY, MANAGED_BY},
        {LABEL_GROUP, gang},
    };
    struct label selector[] = {{LABEL_GROUP, gang}};
    struct service_spec s = {
        .ns = owner->meta.ns,
        .name = gang,
        .labels = {labels, ARRAY_LEN(labels)},
        .selector = {selector, selects ? ARRAY_LEN(selector) : 0},
        .owner = gang_manifest_owner(owner),
        .port = port,
    };
    return service_encode(&s, a);
}

static const char *text_of(int32_t n, struct arena *a)
{
    return arena_printf(a, "%" PRId32, n);
}

static struct labels labels_of(const struct object *owner, const char *gang, const struct gang_pod *p, struct arena *a)
{
    struct label *labels = arena_array(a, 6, sizeof *labels);
    size_t n = 0;
    labels[n++] = (struct label){"app.kubernetes.io/instance", owner->meta.name};
    labels[n++] = (struct label){LABEL_MANAGED_BY, MANAGED_BY};
    if (p->attempt)
        labels[n++] = (struct label){LABEL_ATTEMPT, text_of(p->attempt, a)};
    labels[n++] = (struct label){LABEL_GROUP, gang};
    labels[n++] = (struct label){LABEL_INCARNATION, text_of(p->incarnation, a)};
    labels[n++] = (struct label){LABEL_INDEX, text_of(p->index, a)};
    return (struct labels){labels, n};
}

struct pod_render gang_manifest_pod(const struct object *owner, const char *gang, const struct gang_pod *p,
                                    struct arena *a)
{
    return (struct pod_render){
        .ns = owner->meta.ns,
        .name = p->name,
        .hostname = arena_printf(a, "%s-%" PRId32, gang, p->index),
        .subdomain = gang,
        .labels = labels_of(owner, gang, p, a),
        .owner = gang_manifest_owner(owner),
        .pin = p->pin,
    };
}

void gang_manifest_agent(const struct agent_setup *setup, struct pod_agent *ret)
{
    ret->image = setup->image;
    ret->pull_policy = setup->pull_policy;
    ret->url = setup->url;
    ret->ca_pem = setup->ca_pem;
    ret->keys_id = setup->keys_id;
}

int32_t pod_label_number(const struct pod *p, const char *key)
{
    int64_t v;
    if (!str_to_i64(labels_get(&p->obj.meta.labels, key), &v) || v < 0 || v > INT32_MAX)
        return -1;
    return (int32_t)v;
}

bool pod_has_agent(const struct pod *p)
{
    if (labels_get(&p->obj.meta.annotations, ANNOTATION_KEYS))
        return true;
    for (size_t i = 0; i < p->n_containers; i++)
        if (p->containers[i].init && str_eq(p->containers[i].name, PODAGENT_NAME))
            return true;
    return false;
}

bool pod_trusts_others(const struct pod *p, const char *keys_id)
{
    const char *trusted = labels_get(&p->obj.meta.annotations, ANNOTATION_KEYS);
    if (!trusted || !keys_id)
        return false;
    size_t n = strcspn(keys_id, "-");
    return strcspn(trusted, "-") != n || strncmp(trusted, keys_id, n) != 0;
}

uint64_t pod_spec_hash(const struct pod *p)
{
    const char *s = labels_get(&p->obj.meta.annotations, ANNOTATION_SPEC_HASH);
    return s ? strtoull(s, NULL, 16) : 0;
}
