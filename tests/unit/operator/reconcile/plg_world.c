// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/plg_world.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/service.h"
#include "tests/unit/support/object_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { GRACE_S = 30, COLLECT_MS = 40 * 1000, START_MS = 1000000000 };

bool plg_chance(struct plg_world *w, int percent)
{
    return (int)rand_below(&w->rand, 100) < percent;
}

bool plg_live(const struct plg_pod *p)
{
    return p->now && p->phase != POD_SUCCEEDED && p->phase != POD_FAILED;
}

static int64_t whole_seconds(int64_t ms)
{
    return ms / 1000 * 1000;
}

// The PlacementGroup and its Service.

static void publish_plg(struct plg_world *w)
{
    const struct plg_spec *s = &w->spec;
    struct arena a = ARENA_INIT;
    const char *json = arena_printf(
        &a,
        "{\"metadata\":{\"name\":\"sim\",\"namespace\":\"ml\",\"uid\":\"plg-uid\",\"resourceVersion\":\"%s\","
        "\"generation\":%" PRId64 "},\"spec\":{\"strategy\":\"%s\",\"podPer\":\"%s\",\"timeoutSeconds\":20,"
        "\"nodeLostSeconds\":10,\"bundles\":[{\"count\":%d,\"resources\":{\"nvidia.com/gpu\":\"1\"}}],\"template\":{"
        "\"spec\":{\"containers\":[{\"name\":\"worker\",\"image\":\"v%d\"}]}}}%s%s}",
        sim_log_version(&w->log), w->generation, s->strategy, s->pod_per, s->bundles, s->version,
        w->status ? ",\"status\":" : "", w->status ? w->status : "");
    object_unref(w->plg);
    w->plg = object_of_json(KIND_PLACEMENTGROUP, json);
    sim_log_add(&w->log, KIND_PLACEMENTGROUP, "sim", w->plg);
    arena_done(&a);
}

void plg_edit(struct plg_world *w, const struct plg_spec *spec)
{
    w->spec = *spec;
    w->generation++;
    publish_plg(w);
}

int plg_patch_status(struct plg_world *w, const char *body)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    if (json_parse(body, strlen(body), NULL, &a, &root, &err) < 0)
        fail_msg("%s", err.msg);
    int r = 0;
    if (json_str_is(json_get(json_get(root, "metadata"), "resourceVersion"), w->plg->meta.resource_version)) {
        const struct json *status = json_get(root, "status");
        w->status = arena_strndup(&w->arena, status->text, status->len);
        publish_plg(w);
    } else {
        r = ERR_CONFLICT;
    }
    arena_done(&a);
    return r;
}

int plg_create_service(struct plg_world *w, const char *body)
{
    if (w->service)
        return ERR_EXISTS;
    w->service = object_of_json(KIND_SERVICE, body);
    ((struct object *)w->service)->meta.resource_version = sim_log_version(&w->log);
    sim_log_add(&w->log, KIND_SERVICE, w->service->meta.name, w->service);
    return 0;
}

void plg_delete_service(struct plg_world *w)
{
    if (w->service)
        sim_log_add(&w->log, KIND_SERVICE, w->service->meta.name, NULL);
    object_unref(w->service);
    w->service = NULL;
}

// Pods.

static struct plg_node *node_by_name(struct plg_world *w, const char *name)
{
    for (int i = 0; name && i < PLG_NODES; i++)
        if (w->nodes[i].now && str_eq(w->nodes[i].name, name))
            return &w->nodes[i];
    return NULL;
}

struct plg_pod *plg_pod(struct plg_world *w, const char *name)
{
    for (int i = 0; i < PLG_PODS; i++)
        if (w->pods[i].now && str_eq(w->pods[i].now->obj.meta.name, name))
            return &w->pods[i];
    return NULL;
}

// A new copy of the pod as it is now, in an arena of its own as the decoder makes them.
static void publish_pod(struct plg_world *w, struct plg_pod *p)
{
    struct arena arena = ARENA_INIT;
    struct pod *o = arena_memdup(&arena, p->base, sizeof *p->base);
    const struct pod *before = p->now;
    const struct plg_node *n = node_by_name(w, p->node);
    o->obj.refs = 1;
    o->obj.meta.resource_version = sim_log_version(&w->log);
    o->obj.meta.uid = before ? before->obj.meta.uid : arena_printf(&w->arena, "pod-%d", ++w->births);
    o->obj.meta.created_ms = whole_seconds(p->created_ms);
    if (p->asked_ms) {
        o->obj.meta.deletion_grace_s = GRACE_S;
        o->obj.meta.deleted_ms = whole_seconds(p->asked_ms) + GRACE_S * 1000;
    }
    o->node = p->node;
    o->phase = p->phase;
    o->ready = p->phase == POD_RUNNING && n && n->ready;
    o->obj.arena = arena;
    p->now = o;
    if (before)
        object_unref(&before->obj);
    sim_log_add(&w->log, KIND_POD, o->obj.meta.name, &o->obj);
}

static void remove_pod(struct plg_world *w, struct plg_pod *p)
{
    sim_log_add(&w->log, KIND_POD, p->now->obj.meta.name, NULL);
    object_unref(&p->now->obj);
    *p = (struct plg_pod){0};
}

int plg_create_pod(struct plg_world *w, const char *body, bool dry_run, struct err *err)
{
    int32_t live = 0;
    for (int i = 0; i < PLG_PODS; i++)
        live += plg_live(&w->pods[i]);
    if (live >= w->quota)
        return err_set(err, ERR_FORBIDDEN, "exceeded quota");
    if (dry_run)
        return 0;
    const struct object *o = object_of_json(KIND_POD, body);
    if (plg_pod(w, o->meta.name)) {
        object_unref(o);
        return ERR_EXISTS;
    }
    sim_log_keep(&w->log, o);
    struct plg_pod *p = w->pods;
    while (p->now)
        assert_true(++p < w->pods + PLG_PODS);
    *p = (struct plg_pod){.base = pod_of(o), .created_ms = w->now_ms};
    publish_pod(w, p);
    return 0;
}

int plg_delete_pod(struct plg_world *w, const char *name, const char *uid, int64_t grace_s)
{
    struct plg_pod *p = plg_pod(w, name);
    if (!p)
        return ERR_NOT_FOUND;
    if (!str_eq(p->now->obj.meta.uid, uid))
        return ERR_CONFLICT;
    if (grace_s == 0 || !p->node || !plg_live(p)) { // nobody to wait for
        remove_pod(w, p);
    } else if (!p->asked_ms) {
        p->asked_ms = w->now_ms;
        p->gone_ms = w->now_ms + rand_range(&w->rand, 100, w->calm ? 3000 : 20000);
        publish_pod(w, p);
    }
    return 0;
}

void plg_fail(struct plg_world *w, struct plg_pod *p)
{
    p->phase = POD_FAILED;
    publish_pod(w, p);
}

// Nodes.

static void publish_node(struct plg_world *w, struct plg_node *n)
{
    struct arena a = ARENA_INIT;
    object_unref(n->now);
    n->now = object_of_json(
        KIND_NODE,
        arena_printf(&a,
                     "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/hostname\":\"%s\"}},\"status\":{"
                     "\"allocatable\":{\"pods\":\"110\",\"cpu\":\"8\",\"memory\":\"8Gi\",\"nvidia.com/gpu\":\"%d\"}}}",
                     n->name, n->name, n->gpus));
    struct node *o = (struct node *)n->now;
    o->obj.meta.resource_version = sim_log_version(&w->log);
    o->ready = n->ready;
    o->ready_changed_ms = whole_seconds(n->changed_ms);
    arena_done(&a);
    sim_log_add(&w->log, KIND_NODE, n->name, n->now);
}

void plg_set_node(struct plg_world *w, struct plg_node *n, bool ready)
{
    if (n->ready != ready || !n->now)
        n->changed_ms = w->now_ms;
    n->ready = ready;
    publish_node(w, n);
    for (int i = 0; i < PLG_PODS; i++) // the node controller marks the pods
        if (w->pods[i].now && str_eq(w->pods[i].node, n->name))
            publish_pod(w, &w->pods[i]);
}

void plg_remove_node(struct plg_world *w, struct plg_node *n)
{
    object_unref(n->now);
    n->now = NULL;
    n->changed_ms = w->now_ms;
    sim_log_add(&w->log, KIND_NODE, n->name, NULL);
}

// Time.

static int32_t gpus_of(const struct pod *p)
{
    return (int32_t)(resources_get(&p->requests, RESOURCE_GPU) / 1000);
}

static bool has_room(const struct plg_world *w, const struct plg_node *n, const struct pod *p)
{
    int32_t used = gpus_of(p);
    for (int i = 0; i < PLG_PODS; i++)
        if (plg_live(&w->pods[i]) && str_eq(w->pods[i].node, n->name))
            used += gpus_of(w->pods[i].now);
    return used <= n->gpus && !n->contended;
}

bool plg_going(const struct plg_world *w, const struct plg_pod *p)
{
    return p->node && (p->asked_ms || !node_by_name((struct plg_world *)w, p->node));
}

static void schedule(struct plg_world *w, struct plg_pod *p)
{
    const struct plg_node *n = node_by_name(w, p->now->pin);
    if (!n || !n->ready || !has_room(w, n, p->now) || !(w->calm || plg_chance(w, 60)))
        return;
    p->node = n->name;
    publish_pod(w, p);
}

static void live_on(struct plg_world *w, struct plg_pod *p)
{
    const struct plg_node *n = node_by_name(w, p->node);
    if (p->node && !n) {
        for (int i = 0; i < PLG_NODES; i++)
            if (str_eq(w->nodes[i].name, p->node) && w->now_ms - w->nodes[i].changed_ms > COLLECT_MS)
                remove_pod(w, p); // the pod garbage collector
    } else if (!p->node) {
        schedule(w, p);
    } else if (n->ready && p->asked_ms && w->now_ms >= p->gone_ms) {
        remove_pod(w, p);
    } else if (n->ready && !p->asked_ms && p->phase == POD_PENDING && (w->calm || plg_chance(w, 70))) {
        p->phase = POD_RUNNING;
        publish_pod(w, p);
    }
}

void plg_pass(struct plg_world *w, int64_t ms)
{
    w->now_ms += ms;
    for (int i = 0; i < PLG_PODS; i++)
        if (w->pods[i].now)
            live_on(w, &w->pods[i]);
}

void plg_init(struct plg_world *w, uint64_t seed, const struct plg_spec *spec)
{
    *w = (struct plg_world){.now_ms = START_MS, .quota = PLG_PODS, .log = {.arena = &w->arena}};
    rand_seed(&w->rand, seed);
    for (int i = 0; i < PLG_NODES; i++) {
        struct plg_node *n = &w->nodes[i];
        *n = (struct plg_node){.name = {'n', (char)('1' + i)}, .gpus = PLG_BUNDLES};
        plg_set_node(w, n, true);
    }
    plg_edit(w, spec);
}

void plg_done(struct plg_world *w)
{
    for (int i = 0; i < PLG_PODS; i++)
        if (w->pods[i].now)
            object_unref(&w->pods[i].now->obj);
    for (int i = 0; i < PLG_NODES; i++)
        object_unref(w->nodes[i].now);
    object_unref(w->service);
    object_unref(w->plg);
    sim_log_done(&w->log);
    arena_done(&w->arena);
}
