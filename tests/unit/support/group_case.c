// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/group_case.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/rfc3339.h"
#include "common/base/str.h"
#include "common/wire/record.h"
#include "operator/api/object_decode.h"
#include "operator/api/pod_constraints.h"
#include "operator/reconcile/accept.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/running_spec.h"
#include "tests/unit/support/likeness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { CASE_MAX = 1024 * 1024 };

static const char *ticket(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a)
{
    (void)ctx;
    (void)group_uid;
    return arena_printf(a, "ticket-%" PRId32 "-%" PRId32, attempt, rank);
}

const struct agent_setup group_case_setup = {
    .image = "registry.example/cadre-operator:1",
    .url = "wss://cadre-operator.cadre-system.svc:9443",
    .ca_pem = "-----BEGIN CERTIFICATE-----",
    .keys_id = "1a2b3c4d5e6f-a1b2c3d4e5f6",
    .keys_secret = "cadre-operator-keys",
    .ticket = ticket,
};

uint64_t group_case_hash(const struct workergroup *wg)
{
    struct arena a = ARENA_INIT;
    struct refusal refusal;
    struct template_facts facts;
    uint64_t hash = 0;
    if (group_accept(wg, &a, &refusal, &facts))
        hash = group_spec_hash(wg, facts.hash);
    arena_done(&a);
    return hash;
}

static const struct json *parse(struct group_case *c, const char *text)
{
    struct json *root;
    struct err err = ERR_INIT;
    if (json_parse(text, strlen(text), NULL, &c->arena, &root, &err) < 0)
        fail_msg("%s", err.msg);
    return root;
}

static const struct object *decode(enum kind kind, const struct json *v)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(kind, v->text, v->len, &o, &err) < 0)
        fail_msg("%s: %s", kind_info(kind)->kind, err.msg);
    return o;
}

static int64_t get_time(const struct json *in, const char *name)
{
    const struct json *v = json_get(in, name);
    int64_t ms = 0;
    if (v && !rfc3339_parse(v->text + 1, v->len - 2, &ms))
        fail_msg("%s: not a time", name);
    return ms;
}

static int32_t get_number(const struct json *in, const char *name)
{
    int64_t n = 0;
    json_i64(json_get(in, name), &n);
    return (int32_t)n;
}

// The document with the hash in place of its token.
static const char *with_hash(struct group_case *c, const char *json, const char *token, uint64_t hash)
{
    struct buf b = BUF_INIT(CASE_MAX);
    for (const char *at; (at = strstr(json, token)); json = at + strlen(token)) {
        buf_append(&b, json, (size_t)(at - json));
        buf_printf(&b, "%016" PRIx64, hash);
    }
    buf_puts(&b, json);
    const char *text = arena_strdup(&c->arena, buf_str(&b));
    buf_done(&b);
    return text;
}

// One that cannot be run has no hashes.
static const char *with_hashes(struct group_case *c, const char *json)
{
    struct refusal refusal;
    struct template_facts facts;
    struct bundles b;
    struct err err = ERR_INIT;
    if (c->owner->kind == KIND_WORKERGROUP) {
        json = with_hash(c, json, "@worker-hash@", group_worker_hash(workergroup_of(c->owner)));
        return with_hash(c, json, "@spec-hash@", group_case_hash(workergroup_of(c->owner)));
    }
    const struct placementgroup *plg = placementgroup_of(c->owner);
    if (!placementgroup_accept(plg, &c->arena, &refusal, &facts) || bundles_expand(&plg->spec, &c->arena, &b, &err) < 0)
        return json;
    json = with_hash(c, json, "@spec-hash@", facts.hash);
    for (size_t i = 0; i < b.n_shapes; i++)
        json = with_hash(c, json, arena_printf(&c->arena, "@shape-%zu@", i), b.shapes[i].hash);
    return json;
}

static const char *rendered(struct group_case *c, struct err *err)
{
    const char *body = NULL;
    if (c->owner->kind == KIND_WORKERGROUP) {
        const struct workergroup *wg = workergroup_of(c->owner);
        struct gang_pod pod = {.name = "dry-run", .hash = group_case_hash(wg), .setup = c->view.gang.setup};
        group_pod_render(wg, &pod, &c->arena, &body, err);
    } else {
        static const int32_t first = 0;
        const struct placementgroup *plg = placementgroup_of(c->owner);
        struct bundlepod pod = {.pod = {.name = "dry-run", .setup = c->view.gang.setup}, .items = &first, .n = 1};
        struct bundles b;
        if (bundles_expand(&plg->spec, &c->arena, &b, err) == 0)
            bundlepod_render(plg, &b, &pod, &c->arena, &body, err);
    }
    return body;
}

// The hashes of the dry runs that a new PlacementGroup with this spec asks for.
static void dry_run_hashes(const struct placementgroup *plg, uint64_t ret[DRY_RUNS_FURTHER + 1])
{
    static const struct gang_memory nothing;
    struct arena a = ARENA_INIT;
    struct cluster *empty = cluster_new();
    struct placementgroup new = *plg;
    const struct placementgroup_view v = {.plg = &new,
                                          .gang = {.setup = &group_case_setup, .cluster = empty, .memory = &nothing}};
    struct plan plan;
    new.status = (struct placementgroup_status){0};
    placementgroup_reconcile(&v, &a, &plan);
    for (size_t i = 0; i < plan.n; i++)
        if (plan.actions[i].kind == ACTION_DRY_RUN)
            *ret++ = plan.actions[i].hash;
    cluster_free(empty);
    arena_done(&a);
}

// "furtherUnknown": only the first shape was tried.
static uint64_t take_hashes(struct group_case *c, const struct json *in)
{
    uint64_t hashes[DRY_RUNS_FURTHER + 1] = {0};
    if (c->owner->kind == KIND_WORKERGROUP)
        return group_case_hash(workergroup_of(c->owner));
    dry_run_hashes(placementgroup_of(c->owner), hashes);
    if (!json_get(in, "furtherUnknown"))
        memcpy(c->memory.further, hashes + 1, sizeof c->memory.further);
    return hashes[json_get(in, "ofFurther") != NULL];
}

static void take_dry_run(struct group_case *c, const struct json *in)
{
    struct gang_memory *m = &c->memory;
    struct err err = ERR_INIT;
    if (json_str_is(json_get(in, "dryRun"), "Refused")) {
        m->dry_run = DRY_RUN_REFUSED;
        m->dry_run_message = json_str(json_get(in, "message"), &c->arena);
    } else if (json_str_is(json_get(in, "dryRun"), "OK")) {
        struct pod_constraints *needs = arena_new(&c->arena, struct pod_constraints);
        m->dry_run_pod = rendered(c, &err);
        if (err.code || pod_constraints_decode(m->dry_run_pod, strlen(m->dry_run_pod), &c->arena, needs, &err) < 0)
            fail_msg("%s", err.msg);
        m->dry_run = DRY_RUN_OK;
        m->needs = needs;
    }
    m->dry_run_hash = take_hashes(c, in) + json_str_is(json_get(in, "dryRun"), "ForbiddenBefore");
}

static void take_memory(struct group_case *c, const struct json *in)
{
    struct gang_memory *m = &c->memory;
    if (json_get(in, "dryRun"))
        take_dry_run(c, in);
    const struct json *refusal = json_get(in, "refusal"), *contended = json_get(in, "contended");
    m->refusal_reason = json_str(json_get(refusal, "reason"), &c->arena);
    m->refusal_message = json_str(json_get(refusal, "message"), &c->arena);
    m->refusal_incarnation = get_number(refusal, "incarnation");
    m->given_back = get_number(in, "givenBack");
    m->retry_at_ms = get_time(in, "retryAt");
    m->status_wanted_ms = get_time(in, "statusWantedAt");
    m->master = json_str(json_get(in, "master"), &c->arena);
    int64_t wanted = get_time(in, "addressesWantedAt");
    m->waits[WAIT_ADDRESSES] = (struct wait){wanted != 0, wanted};
    const char **names = arena_array(&c->arena, json_count(contended), sizeof *names);
    JSON_FOREACH(item, contended)
        names[m->n_contended++] = json_str(item, &c->arena);
    m->contended = names;
}

static bool is_ours(const struct group_case *c, const struct object *pod)
{
    const char *uid = pod->meta.owner.uid;
    bool ours = str_eq(uid, c->owner->meta.uid);
    for (size_t i = 0; i < c->n_placementgroups; i++)
        ours = ours || str_eq(uid, c->placementgroups[i]->meta.uid);
    return ours;
}

static const struct placementgroup *find_placementgroup(const struct group_case *c, const char *name)
{
    for (size_t i = 0; i < c->n_placementgroups; i++)
        if (str_eq(c->placementgroups[i]->meta.name, name))
            return placementgroup_of(c->placementgroups[i]);
    return NULL;
}

static const struct service *service_of_placementgroup(struct group_case *c, const struct meta *owner)
{
    struct service *s = arena_new(&c->arena, struct service);
    s->obj.meta.owner.uid = owner->uid;
    return s;
}

static void name_placementgroups(struct group_case *c, const struct workergroup *wg, bool served,
                                 const struct placementgroup *const **ret, const struct service *const **ret_services)
{
    const struct workergroup_spec *s = &wg->spec;
    const struct placementgroup **placementgroups =
        arena_array(&c->arena, s->n_placement_groups, sizeof *placementgroups);
    const struct service **services = arena_array(&c->arena, s->n_placement_groups, sizeof *services);
    for (size_t i = 0; i < s->n_placement_groups; i++) {
        placementgroups[i] = find_placementgroup(c, s->placement_groups[i].name);
        services[i] = placementgroups[i] && served ? service_of_placementgroup(c, &placementgroups[i]->obj.meta) : NULL;
    }
    *ret = placementgroups;
    *ret_services = services;
}

static void take_pools(struct group_case *c, const struct json *root)
{
    const struct json *others = json_get(root, "otherUsers");
    struct group_view *v = &c->view;
    struct other_user *other_users = arena_array(&c->arena, json_count(others), sizeof *other_users);
    JSON_FOREACH(item, json_get(root, "placementgroups")) {
        assert_true(c->n_placementgroups < GROUP_CASE_PLACEMENTGROUPS);
        c->placementgroups[c->n_placementgroups++] = decode(KIND_PLACEMENTGROUP, item);
    }
    v->as_running = running_spec(v->wg, &c->arena);
    name_placementgroups(c, v->wg, !json_get(root, "noService"), &v->placementgroups, &v->placementgroup_services);
    if (v->as_running)
        name_placementgroups(c, v->as_running, true, &v->placementgroups_running, &v->placementgroup_services_running);
    JSON_FOREACH(item, others)
        other_users[c->view.n_other_users++] = (struct other_user){json_str(json_get(item, "name"), &c->arena),
                                                                   json_str(json_get(item, "master"), &c->arena)};
    v->other_users = other_users;
}

static void take_pods(struct group_case *c, const struct json *pods)
{
    size_t n = 0;
    JSON_FOREACH(item, pods) {
        assert_true(n < GROUP_CASE_PODS);
        const struct object *o = decode(KIND_POD, item);
        cluster_set_pod(c->cluster, pod_of(o));
        if (is_ours(c, o)) {
            c->pods[n] = object_ref(o);
            c->pod_views[n++] = pod_of(o);
        }
        object_unref(o);
    }
    c->view.gang.n_pods = n;
}

static int read_name(const struct json *v, const char *const *names)
{
    for (int i = 0; v && names[i]; i++)
        if (json_str_is(v, names[i]))
            return i;
    if (v)
        fail_msg("%.*s: not a state", (int)v->len, v->text);
    return 0;
}

static const char *read_text(struct group_case *c, const struct json *in, const char *name)
{
    const char *s = json_str(json_get(in, name), &c->arena);
    return s ? s : "";
}

static struct agent_process read_process(struct group_case *c, const struct json *in)
{
    static const char *const states[] = {"Starting", "Running", "Exited", NULL};
    return (struct agent_process){
        .rank = get_number(in, "rank"),
        .attempt = get_number(in, "attempt"),
        .state = (enum agent_process_state)read_name(json_get(in, "state"), states),
        .exit_code = get_number(in, "exitCode"),
        .signal = get_number(in, "signal"),
        .oom = json_get(in, "outOfMemory") != NULL,
        .message = read_text(c, in, "message"),
        .last_lines = read_text(c, in, "lastLines"),
        .ended_ms = get_time(in, "endedAt"),
    };
}

static uint8_t read_command(const struct json *v)
{
    static const uint8_t types[] = {RECORD_PREPARE, RECORD_START, RECORD_STOP, RECORD_RESTART};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (json_str_is(v, record_type_name(types[i])))
            return types[i];
    return 0;
}

static struct agent_gpu read_lost(struct group_case *c, const struct json *in)
{
    return (struct agent_gpu){.uuid = json_str(json_get(in, "uuid"), &c->arena),
                              .name = json_str(json_get(in, "name"), &c->arena),
                              .xid = get_number(in, "xid"),
                              .rank = get_number(in, "rank")};
}

static struct agent_facts read_facts(struct group_case *c, const struct json *in)
{
    static const char *const states[] = {"Idle", "Preparing", "Prepared", "Running", "Stopping", NULL};
    const struct json *connected = json_get(in, "connected"), *list = json_get(in, "processes");
    struct agent_process *processes = arena_array(&c->arena, json_count(list), sizeof *processes);
    size_t n = 0;
    JSON_FOREACH(item, list)
        processes[n++] = read_process(c, item);
    return (struct agent_facts){
        .slow = json_str(json_get(in, "withoutTemplate"), &c->arena),
        .connected = connected && connected->text[0] == 't',
        .seen_by = json_str(json_get(in, "seenBy"), &c->arena),
        .changed_ms = get_time(in, "changedAt"),
        .ending_ms = get_time(in, "endingAt"),
        .state = (enum agent_state)read_name(json_get(in, "state"), states),
        .attempt = get_number(in, "attempt"),
        .sent = read_command(json_get(in, "sent")),
        .sent_attempt = get_number(in, "sentAttempt"),
        .error = json_str(json_get(in, "error"), &c->arena),
        .error_ms = get_time(in, "errorAt"),
        .taken_port = get_number(in, "takenPort"),
        .processes = processes,
        .n_processes = n,
        .lost = read_lost(c, json_get(in, "lost")),
    };
}

static const struct connected_peer *read_connected_peers(struct group_case *c, const struct json *list, size_t *ret_n)
{
    struct connected_peer *all = arena_array(&c->arena, json_count(list), sizeof *all);
    JSON_FOREACH(item, list)
        all[(*ret_n)++] = (struct connected_peer){get_time(item, "since"), get_time(item, "heard")};
    return all;
}

// Unless the case says otherwise, all can reach the operator since ever, and one has just been heard of.
static void take_reach(struct group_case *c, const struct json *root)
{
    const struct json *in = json_get(root, "reach");
    struct connected_peer *other = arena_new(&c->arena, struct connected_peer);
    struct reach *r = &c->view.reach;
    *other = (struct connected_peer){1, c->view.gang.now_ms};
    *r = (struct reach){.listening_ms = 1, .expected = 100, .agents = other, .n_agents = 1};
    if (!in)
        return;
    *r = (struct reach){.listening_ms = get_time(in, "listeningSince"), .expected = (size_t)get_number(in, "expected")};
    r->agents = read_connected_peers(c, json_get(in, "agents"), &r->n_agents);
    r->replicas = read_connected_peers(c, json_get(in, "replicas"), &r->n_replicas);
}

static void take_agents(struct group_case *c, const struct json *root)
{
    const struct json *agents = json_get(root, "agents");
    size_t found = 0, rank = 0;
    for (size_t i = 0; i < c->view.gang.n_pods; i++) {
        const struct json *facts = json_get(agents, c->pod_views[i]->obj.meta.name);
        found += facts != NULL;
        c->agents[i] = read_facts(c, facts);
        c->gpu_lost[i] = c->agents[i].lost.uuid != NULL;
    }
    assert_int_equal(found, json_count(agents));
    JSON_FOREACH(item, json_get(root, "members")) {
        int64_t attempt = 0;
        assert_true(rank < GROUP_CASE_PODS && json_i64(item, &attempt));
        c->members[rank++] = (int32_t)attempt;
    }
    c->view.agents = c->agents;
    c->view.members = c->members;
    c->view.leading_ms = get_time(root, "leadingSince");
    take_reach(c, root);
}

static void take_service(struct group_case *c, const struct json *root)
{
    const struct json *slices = json_get(root, "slices");
    if (!json_get(root, "service"))
        return;
    c->service = decode(KIND_SERVICE, json_get(root, "service"));
    ((struct service *)c->service)->selects = !slices;
    c->view.gang.service = service_of(c->service);
    JSON_FOREACH(item, slices) {
        assert_true(c->view.n_slices < GROUP_CASE_SLICES);
        c->slices[c->view.n_slices] = decode(KIND_ENDPOINTSLICE, item);
        c->slice_views[c->view.n_slices] = endpointslice_of(c->slices[c->view.n_slices]);
        c->view.n_slices++;
    }
    c->view.slices = c->slice_views;
}

struct group_case *group_case_new(const char *json)
{
    struct group_case *c = xcalloc(1, sizeof *c);
    json = likeness_expand(json, &c->arena);
    const struct json *first = parse(c, json);
    const struct json *wg = json_get(first, "workergroup"), *plg = json_get(first, "placementgroup");
    assert_true(wg || plg);
    c->owner = decode(wg ? KIND_WORKERGROUP : KIND_PLACEMENTGROUP, wg ? wg : plg);
    const struct json *root = parse(c, with_hashes(c, json));
    object_unref(c->owner); // its status may contain hashes, too
    c->given = json_get(root, wg ? "workergroup" : "placementgroup");
    c->owner = decode(wg ? KIND_WORKERGROUP : KIND_PLACEMENTGROUP, c->given);
    c->cluster = cluster_new();
    c->view = (struct group_view){
        .wg = wg ? workergroup_of(c->owner) : NULL,
        .gang.pods = c->pod_views,
        .gang.cluster = c->cluster,
        .gang.memory = &c->memory,
        .gang.waiting_statuses = get_number(root, "waitingStatuses"),
        .running = (size_t)get_number(root, "running"),
        .gang.now_ms = get_time(root, "now"),
        .gang.setup = json_get(root, "noSetup") ? NULL : &group_case_setup,
    };
    JSON_FOREACH(item, json_get(root, "nodes")) {
        const struct object *node = decode(KIND_NODE, item);
        cluster_set_node(c->cluster, node_of(node));
        object_unref(node);
    }
    if (wg)
        take_pools(c, root);
    take_pods(c, json_get(root, "pods"));
    take_agents(c, root);
    take_service(c, root);
    c->used = json_get(root, "used") != NULL;
    take_memory(c, json_get(root, "memory"));
    return c;
}

void group_case_free(struct group_case *c)
{
    if (!c)
        return;
    cluster_free(c->cluster);
    for (size_t i = 0; i < c->view.gang.n_pods; i++)
        object_unref(c->pods[i]);
    for (size_t i = 0; i < c->n_placementgroups; i++)
        object_unref(c->placementgroups[i]);
    for (size_t i = 0; i < c->view.n_slices; i++)
        object_unref(c->slices[i]);
    object_unref(c->service);
    object_unref(c->owner);
    arena_done(&c->arena);
    free(c);
}

const struct plan *group_case_decide(struct group_case *c)
{
    const struct group_view *v = &c->view;
    struct placementgroup_view plg = {
        .plg = v->wg ? NULL : placementgroup_of(c->owner),
        .gpu_lost = c->gpu_lost,
        .used = c->used,
        .gang = v->gang,
    };
    if (v->wg)
        group_reconcile(v, &c->arena, &c->plan);
    else
        placementgroup_reconcile(&plg, &c->arena, &c->plan);
    return &c->plan;
}
