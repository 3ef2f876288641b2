// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/gang_world.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
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

bool sim_chance(struct sim_world *w, int percent)
{
    return (int)rand_below(&w->rand, 100) < percent;
}

bool sim_live(const struct sim_pod *p)
{
    return p->now && p->phase != POD_SUCCEEDED && p->phase != POD_FAILED;
}

static int64_t whole_seconds(int64_t ms)
{
    return ms / 1000 * 1000;
}

// The gang.

static void put_worker(struct buf *b, const struct sim_spec *s)
{
    if (!s->agent)
        return;
    buf_printf(b, "\"worker\":{%s\"env\":[{\"name\":\"VERSION\",\"value\":\"%d\"}]},",
               s->module ? "\"module\":\"/m.so\",\"class\":\"M\"," : "", s->worker_version);
}

static void put_policies(struct buf *b, const struct sim_spec *s)
{
    buf_printf(b, "\"restartPolicy\":\"%s\",\"successPolicy\":\"%s\",",
               s->never_restart     ? "Never"
               : s->restarts_worker ? "Worker"
                                    : "Group",
               s->rank_zero ? "RankZero" : "All");
    if (s->deadline_s)
        buf_printf(b, "\"activeDeadlineSeconds\":%d,", s->deadline_s);
    if (s->rule)
        buf_printf(b, "\"failurePolicy\":{\"rules\":[{\"exitCodes\":[137],\"action\":\"%s\"}]},", s->rule);
}

static void put_group(struct buf *b, const struct sim_spec *s)
{
    put_worker(b, s);
    put_policies(b, s);
    buf_printf(b,
               "\"replicas\":%d,\"runtime\":\"%s\",\"maxRestarts\":%d,\"suspend\":%s,"
               "\"placement\":{\"strategy\":\"%s\",\"timeoutSeconds\":20,"
               "\"nodeLostSeconds\":10},\"restartBackoff\":{\"initialSeconds\":1,\"maxSeconds\":8},\"template\":{"
               "\"spec\":{\"containers\":[{\"name\":\"worker\",\"image\":\"%s%d\"%s,\"resources\":{\"limits\":{"
               "\"nvidia.com/gpu\":1},\"requests\":{\"nvidia.com/gpu\":1}}}]}}",
               s->replicas, s->agent ? "Agent" : "Plain", s->max_restarts, s->suspend ? "true" : "false",
               s->strict_pack ? "StrictPack" : "Pack", s->template_valid ? "v" : "invalid-", s->template_version,
               s->agent && !s->module ? ",\"command\":[\"run\"]" : "");
}

static void put_bundles(struct buf *b, const struct sim_bundles *s)
{
    buf_printf(
        b,
        "\"strategy\":\"%s\",\"podPer\":\"%s\",\"timeoutSeconds\":20,\"nodeLostSeconds\":10,\"bundles\":[{\"count\":%d,"
        "\"resources\":{\"nvidia.com/gpu\":\"1\"}}],\"template\":{\"spec\":{\"containers\":[{\"name\":\"worker\","
        "\"image\":\"v%d\"}]}}",
        s->strategy, s->pod_per, s->n, s->version);
}

static void publish_gang(struct sim_world *w)
{
    struct buf b = BUF_INIT(1 << 20);
    bool group = w->kind == KIND_WORKERGROUP;
    buf_printf(&b,
               "{\"metadata\":{\"name\":\"sim\",\"namespace\":\"ml\",\"uid\":\"%s-uid\",\"resourceVersion\":\"%s\","
               "\"generation\":%" PRId64 "},\"spec\":{",
               group ? "group" : "plg", sim_log_version(&w->log), w->generation);
    if (group)
        put_group(&b, &w->spec);
    else
        put_bundles(&b, &w->bundles);
    buf_printf(&b, "}%s%s}", w->status ? ",\"status\":" : "", w->status ? w->status : "");
    object_unref(w->gang);
    w->gang = object_of_json(w->kind, buf_str(&b));
    buf_done(&b);
    sim_log_add(&w->log, w->kind, "sim", w->gang);
}

void sim_edit(struct sim_world *w, const struct sim_spec *spec)
{
    w->spec = *spec;
    w->generation++;
    publish_gang(w);
}

void sim_edit_bundles(struct sim_world *w, const struct sim_bundles *spec)
{
    w->bundles = *spec;
    w->generation++;
    publish_gang(w);
}

int sim_patch_status(struct sim_world *w, const char *body)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    if (json_parse(body, strlen(body), NULL, &a, &root, &err) < 0)
        fail_msg("%s", err.msg);
    int r = 0;
    if (json_str_is(json_get(json_get(root, "metadata"), "resourceVersion"), w->gang->meta.resource_version)) {
        const struct json *status = json_get(root, "status");
        w->status = arena_strndup(&w->arena, status->text, status->len);
        publish_gang(w);
    } else {
        r = ERR_CONFLICT;
    }
    arena_done(&a);
    return r;
}

// Pods.

static const struct sim_node *node_by_name(const struct sim_world *w, const char *name)
{
    for (int i = 0; name && i < SIM_NODES; i++)
        if (w->nodes[i].now && str_eq(w->nodes[i].name, name))
            return &w->nodes[i];
    return NULL;
}

struct sim_pod *sim_pod(struct sim_world *w, const char *name)
{
    for (int i = 0; i < SIM_PODS; i++)
        if (w->pods[i].now && str_eq(w->pods[i].now->obj.meta.name, name))
            return &w->pods[i];
    return NULL;
}

// Publishes a new copy of the pod as it is now, in its own arena, as the decoder makes them.
static void publish_pod(struct sim_world *w, struct sim_pod *p)
{
    struct arena arena = ARENA_INIT;
    struct pod *o = arena_memdup(&arena, p->base, sizeof *p->base);
    const struct pod *before = p->now;
    o->obj.refs = 1;
    o->obj.meta.resource_version = sim_log_version(&w->log);
    o->obj.meta.uid = before ? before->obj.meta.uid : arena_printf(&w->arena, "pod-%" PRId64, ++w->uids);
    o->obj.meta.created_ms = whole_seconds(p->created_ms);
    if (p->asked_ms) {
        o->obj.meta.deletion_grace_s = GRACE_S;
        o->obj.meta.deleted_ms = whole_seconds(p->asked_ms) + GRACE_S * 1000;
    }
    o->node = p->node;
    o->phase = p->phase;
    o->ip = p->ip;
    const struct sim_node *n = node_by_name(w, p->node);
    o->ready = p->phase == POD_RUNNING && n && n->ready;
    o->disruption = p->disruption;
    if (p->terminated) {
        o->containers = arena_new(&arena, struct container_status);
        o->n_containers = 1;
        *o->containers = (struct container_status){.name = "worker",
                                                   .terminated = true,
                                                   .exit_code = p->exit_code,
                                                   .reason = p->exit_code ? "Error" : "Completed",
                                                   .finished_ms = whole_seconds(p->finished_ms)};
    }
    o->obj.arena = arena;
    p->now = o;
    if (before)
        object_unref(&before->obj);
    sim_log_add(&w->log, KIND_POD, o->obj.meta.name, &o->obj);
}

// The container of the pod ends, and all processes in it.
static void end_agent(struct sim_world *w, struct sim_pod *p)
{
    if (p->agent && p->agent->member)
        w->peers_changed = true;
    sim_agent_free(TAKE_PTR(p->agent));
}

static void remove_pod(struct sim_world *w, struct sim_pod *p)
{
    end_agent(w, p);
    sim_log_add(&w->log, KIND_POD, p->now->obj.meta.name, NULL);
    object_unref(&p->now->obj);
    *p = (struct sim_pod){0};
}

static int32_t env_number(const char *body, const char *name)
{
    struct arena a = ARENA_INIT;
    const char *at = strstr(body, arena_printf(&a, "\"%s\",\"value\":\"", name));
    assert_non_null(at);
    int32_t n = (int32_t)strtol(strchr(at, ':') + 2, NULL, 10);
    arena_done(&a);
    return n;
}

static int live_pods(const struct sim_world *w)
{
    int n = 0;
    for (int i = 0; i < SIM_PODS; i++)
        n += sim_live(&w->pods[i]);
    return n;
}

static int admit(struct sim_world *w, const char *body, struct err *err)
{
    if (strstr(body, "\"invalid-"))
        return err_set(err, ERR_INVALID, "the image is invalid");
    if (w->forbidden)
        return err_set(err, ERR_FORBIDDEN, "a policy forbids it");
    if (live_pods(w) >= w->quota)
        return err_set(err, ERR_FORBIDDEN, "exceeded quota");
    return 0;
}

static void read_rank(struct sim_pod *p, const char *body)
{
    p->index = pod_label_number(p->base, LABEL_INDEX);
    p->attempt = pod_label_number(p->base, LABEL_ATTEMPT);
    p->incarnation = pod_label_number(p->base, LABEL_INCARNATION);
    p->world_size = env_number(body, "WORLD_SIZE");
    assert_int_equal(env_number(body, "RANK"), p->index);
}

int sim_create_pod(struct sim_world *w, const char *body, bool dry_run, struct err *err)
{
    int r = admit(w, body, err);
    if (r < 0 || dry_run)
        return r;
    const struct object *o = object_of_json(KIND_POD, body);
    if (sim_pod(w, o->meta.name)) {
        object_unref(o);
        return err_set(err, ERR_EXISTS, "it exists");
    }
    sim_log_keep(&w->log, o);
    struct sim_pod *p = w->pods;
    while (p->now)
        assert_true(++p < w->pods + SIM_PODS);
    *p = (struct sim_pod){.base = pod_of(o), .created_ms = w->now_ms};
    if (w->kind == KIND_WORKERGROUP)
        read_rank(p, body);
    publish_pod(w, p);
    return 0;
}

static void ask_deletion(struct sim_world *w, struct sim_pod *p)
{
    if (!p->node || !sim_live(p)) { // there is no process to wait for
        remove_pod(w, p);
        return;
    }
    if (p->asked_ms)
        return;
    p->asked_ms = w->now_ms;
    p->gone_ms = w->now_ms + rand_range(&w->rand, 100, w->calm ? 3000 : 20000);
    publish_pod(w, p);
}

int sim_delete_pod(struct sim_world *w, const char *name, const char *uid, int64_t grace_s)
{
    struct sim_pod *p = sim_pod(w, name);
    if (!p)
        return ERR_NOT_FOUND;
    if (!str_eq(p->now->obj.meta.uid, uid))
        return ERR_CONFLICT;
    w->n_deleted += !p->asked_ms;
    if (grace_s == 0)
        remove_pod(w, p);
    else
        ask_deletion(w, p);
    return 0;
}

void sim_evict(struct sim_world *w, struct sim_pod *p)
{
    p->disruption = "EvictionByEvictionAPI";
    ask_deletion(w, p);
}

static void end_container(struct sim_world *w, struct sim_pod *p, int32_t exit_code)
{
    end_agent(w, p);
    p->terminated = true;
    p->exit_code = exit_code;
    p->finished_ms = w->now_ms;
    p->phase = exit_code ? POD_FAILED : POD_SUCCEEDED;
    publish_pod(w, p);
}

void sim_fail(struct sim_world *w, struct sim_pod *p)
{
    end_container(w, p, 1);
}

// Nodes.

static void publish_node(struct sim_world *w, struct sim_node *n)
{
    struct arena a = ARENA_INIT;
    const char *json = arena_printf(
        &a,
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/hostname\":\"%s\"}},"
        "\"status\":{\"allocatable\":{\"pods\":\"110\",\"cpu\":\"8\",\"memory\":\"8Gi\",\"nvidia.com/gpu\":\"%d\"}}}",
        n->name, n->name, n->gpus - n->foreign);
    object_unref(n->now);
    n->now = object_of_json(KIND_NODE, json);
    struct node *o = (struct node *)n->now;
    o->obj.meta.resource_version = sim_log_version(&w->log);
    o->ready = n->ready;
    o->ready_changed_ms = whole_seconds(n->changed_ms);
    arena_done(&a);
    sim_log_add(&w->log, KIND_NODE, n->name, n->now);
}

void sim_node_ready(struct sim_world *w, struct sim_node *n, bool ready)
{
    if (n->ready != ready || !n->now)
        n->changed_ms = w->now_ms;
    n->ready = ready;
    publish_node(w, n);
    for (int i = 0; i < SIM_PODS; i++) // the node controller marks the pods
        if (w->pods[i].now && str_eq(w->pods[i].node, n->name))
            publish_pod(w, &w->pods[i]);
}

void sim_node_remove(struct sim_world *w, struct sim_node *n)
{
    object_unref(n->now);
    n->now = NULL;
    n->changed_ms = w->now_ms;
    sim_log_add(&w->log, KIND_NODE, n->name, NULL);
}

void sim_node_add(struct sim_world *w, struct sim_node *n)
{
    n->ready = true;
    n->changed_ms = w->now_ms;
    publish_node(w, n);
}

// Time.

static int32_t gpus_of(const struct pod *p)
{
    return (int32_t)(resources_get(&p->requests, RESOURCE_GPU) / 1000);
}

static bool has_room(const struct sim_world *w, const struct sim_node *n, const struct pod *p)
{
    int32_t used = n->foreign + gpus_of(p);
    for (int i = 0; i < SIM_PODS; i++)
        if (sim_live(&w->pods[i]) && str_eq(w->pods[i].node, n->name))
            used += gpus_of(w->pods[i].now);
    return used <= n->gpus && !n->contended;
}

bool sim_going(const struct sim_world *w, const struct sim_pod *p)
{
    const struct sim_node *n = node_by_name(w, p->node);
    return p->node && (p->asked_ms || !n);
}

static void schedule(struct sim_world *w, struct sim_pod *p)
{
    const struct sim_node *n = node_by_name(w, p->now->pin);
    if (!n || !n->ready || !has_room(w, n, p->now) || !(w->calm || sim_chance(w, 60)))
        return;
    p->node = n->name;
    publish_pod(w, p);
}

// All ranks of this pod's attempt run, so the work can begin.
static bool all_up(const struct sim_world *w, const struct sim_pod *p)
{
    int up = 0;
    for (int i = 0; i < SIM_PODS; i++) {
        const struct sim_pod *q = &w->pods[i];
        up += q->now && q->attempt == p->attempt && q->incarnation == p->incarnation &&
              (q->phase == POD_RUNNING || q->phase == POD_SUCCEEDED);
    }
    return up >= p->world_size;
}

static void start_pod(struct sim_world *w, struct sim_pod *p)
{
    const struct meta *m = &p->now->obj.meta;
    p->phase = POD_RUNNING;
    p->ip = arena_printf(&w->arena, "10.0.0.%s", m->uid);
    if (w->kind == KIND_WORKERGROUP && w->spec.agent)
        p->agent = sim_agent_new(arena_strdup(&w->arena, m->uid), arena_strdup(&w->arena, m->name), p->index);
    publish_pod(w, p);
}

static void run(struct sim_world *w, struct sim_pod *p)
{
    if (p->phase == POD_PENDING && (w->calm || sim_chance(w, 70))) {
        start_pod(w, p);
    } else if (p->agent) {
        sim_agent_live(p->agent, w);
        if (p->agent->ending && p->agent->process == SIM_PROCESS_NONE)
            end_container(w, p, 0);
    } else if (w->kind == KIND_WORKERGROUP && p->phase == POD_RUNNING && all_up(w, p)) {
        if (w->mode == SIM_SUCCEEDS && sim_chance(w, 40))
            end_container(w, p, 0);
        else if (w->mode == SIM_FAILS && sim_chance(w, 30))
            end_container(w, p, 1);
    }
}

static void live_on(struct sim_world *w, struct sim_pod *p)
{
    const struct sim_node *n = node_by_name(w, p->node);
    for (int i = 0; i < SIM_LINES && p->agent && (!n || !n->ready); i++)
        sim_agent_cut(p->agent, i);
    if (p->node && !n) {
        for (int i = 0; i < SIM_NODES; i++)
            if (str_eq(w->nodes[i].name, p->node) && w->now_ms - w->nodes[i].changed_ms > COLLECT_MS)
                remove_pod(w, p); // the pod garbage collector
    } else if (!p->node) {
        schedule(w, p);
    } else if (n->ready && p->asked_ms && w->now_ms >= p->gone_ms) {
        if (sim_live(p) && sim_chance(w, 50))
            end_container(w, p, 143);
        remove_pod(w, p);
    } else if (n->ready && !p->asked_ms && sim_live(p)) {
        run(w, p);
    }
}

void sim_cut_all(struct sim_world *w, int line)
{
    for (int i = 0; i < SIM_PODS; i++)
        if (w->pods[i].agent)
            sim_agent_cut(w->pods[i].agent, line);
}

void sim_promote(struct sim_world *w)
{
    sim_cut_all(w, 0);
    for (int i = 0; i < SIM_PODS; i++)
        if (w->pods[i].agent)
            sim_agent_promote(w->pods[i].agent);
}

static const struct sim_pod *newest_of(const struct sim_world *w, int32_t index)
{
    const struct sim_pod *newest = NULL;
    for (int i = 0; i < SIM_PODS; i++) {
        const struct sim_pod *p = &w->pods[i];
        if (sim_live(p) && p->index == index && (!newest || p->incarnation > newest->incarnation))
            newest = p;
    }
    return newest;
}

static bool ended_well(const struct sim_agent *g)
{
    for (size_t i = 0; g->supervisor && i < supervisor_process_count(g->supervisor); i++) {
        const struct supervisor_process *p = supervisor_process_at(g->supervisor, i);
        if (p->state >= SUPERVISOR_PROCESS_EXITED && p->code == 0)
            return true;
    }
    return false;
}

bool sim_all_run(struct sim_world *w, int attempt)
{
    int32_t n = 0;
    for (int32_t i = 0; i < w->spec.replicas; i++) {
        const struct sim_pod *p = newest_of(w, i);
        n += p && p->agent && (p->agent->attempt == attempt || w->spec.restarts_worker) &&
             (p->agent->process == SIM_PROCESS_RUNNING || ended_well(p->agent));
    }
    return n == w->spec.replicas;
}

// The start barrier: no process starts while a process of an older attempt is left in any pod that counts.
void sim_launched(struct sim_world *w, struct sim_agent *g)
{
    // A ticket is valid for one process: a rank never starts twice in an attempt, whatever the pod.
    assert_true(g->attempt > w->launched[g->rank]);
    w->launched[g->rank] = g->attempt;
    for (int32_t i = 0; i < w->spec.replicas && !w->spec.restarts_worker; i++) {
        const struct sim_pod *p = newest_of(w, i);
        assert_false(p && p->agent && p->agent->process != SIM_PROCESS_NONE && p->agent->attempt < g->attempt);
    }
}

void sim_pass(struct sim_world *w, int64_t ms)
{
    w->now_ms += ms;
    for (int i = 0; i < SIM_PODS; i++)
        if (w->pods[i].now)
            live_on(w, &w->pods[i]);
}

static void init(struct sim_world *w, uint64_t seed, enum kind kind)
{
    *w = (struct sim_world){.now_ms = START_MS, .quota = SIM_PODS, .kind = kind, .log = {.arena = &w->arena}};
    rand_seed(&w->rand, seed);
    for (int i = 0; i < SIM_NODES; i++)
        w->nodes[i] = (struct sim_node){.name = {'n', (char)('1' + i)}, .gpus = SIM_BUNDLES};
}

void sim_init_bundles(struct sim_world *w, uint64_t seed, const struct sim_bundles *spec)
{
    init(w, seed, KIND_PLACEMENTGROUP);
    for (int i = 0; i < SIM_NODES; i++)
        sim_node_add(w, &w->nodes[i]);
    sim_edit_bundles(w, spec);
}

void sim_init(struct sim_world *w, uint64_t seed)
{
    init(w, seed, KIND_WORKERGROUP);
    w->mode = (enum sim_mode)rand_below(&w->rand, 3);
    for (int i = 0; i < SIM_NODES; i++) {
        w->nodes[i].gpus = 1 + (int32_t)rand_below(&w->rand, 3);
        sim_node_add(w, &w->nodes[i]);
    }
    static const char *const rules[] = {"Fail", "Restart", "Ignore"};
    struct sim_spec spec = {
        .replicas = 1 + (int32_t)rand_below(&w->rand, 4),
        .max_restarts = (int32_t)rand_below(&w->rand, 4),
        .template_valid = !sim_chance(w, 5),
        .suspend = sim_chance(w, 5),
        .never_restart = sim_chance(w, 10),
        .strict_pack = sim_chance(w, 20),
        .agent = sim_chance(w, 50),
        .module = sim_chance(w, 50),
        .restarts_worker = sim_chance(w, 25),
    };
    spec.restarts_worker = spec.restarts_worker && spec.agent;
    spec.rank_zero = sim_chance(w, 25);
    spec.deadline_s = sim_chance(w, 20) ? (int32_t)rand_range(&w->rand, 5, 120) : 0;
    spec.rule = sim_chance(w, 30) ? rules[rand_below(&w->rand, ARRAY_LEN(rules))] : NULL;
    sim_edit(w, &spec);
}

void sim_done(struct sim_world *w)
{
    for (int i = 0; i < SIM_PODS; i++) {
        sim_agent_free(w->pods[i].agent);
        if (w->pods[i].now)
            object_unref(&w->pods[i].now->obj);
    }
    for (int i = 0; i < SIM_NODES; i++)
        object_unref(w->nodes[i].now);
    object_unref(w->service);
    object_unref(w->slice);
    object_unref(w->gang);
    sim_log_done(&w->log);
    arena_done(&w->arena);
}

struct sim_pod *sim_any_pod(struct sim_world *w)
{
    size_t from = rand_below(&w->rand, SIM_PODS);
    for (size_t i = 0; i < SIM_PODS; i++) {
        struct sim_pod *p = &w->pods[(from + i) % SIM_PODS];
        if (sim_live(p) && p->node)
            return p;
    }
    return NULL;
}
