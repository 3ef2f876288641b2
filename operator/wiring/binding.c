// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/binding.h"

#include "common/base/host_port.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/memory_limit.h"
#include "common/base/str.h"
#include "operator/exec/keyed_pods.h"
#include "operator/exec/peers.h"
#include "operator/gateway/gateway.h"
#include "operator/gateway/replica_reporter.h"
#include "operator/identity/identity.h"
#include "operator/proxy/kill.h"
#include "operator/proxy/output.h"
#include "operator/reconcile/calls.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/running_spec.h"
#include "operator/runtime/excluded_namespaces.h"
#include "operator/runtime/object_watch.h"
#include "operator/runtime/replicas.h"
#include "operator/wiring/agent_pod.h"
#include "operator/wiring/call_metrics.h"
#include "operator/wiring/meshes.h"
#include "operator/wiring/provision.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_ID_MAX = 64, INSTANCE_SIZE = 17 };

struct binding {
    struct binding_options o;
    struct agents *agents;
    struct gateway *gateway;
    struct identity *identity;
    struct object_watch *secret; // watches the Secret with the keys: the identity reads it when it changes
    struct authority authority;
    struct replicas *replicas;
    struct replica_reports *reports;   // from other replicas
    struct replica_reporter *reporter; // sends our report to them; NULL until there are keys
    char instance[INSTANCE_SIZE];
    struct provisioning *provisioning;
    struct provisioner provisioner;
    struct group_controller *groups; // NULL until it is attached
    bool complete;                   // the stores contain all groups
    bool listens;
    char keys_id[KEYS_ID_MAX];
    struct metric *keys_changed;
    char *url, *host; // where agents and workers connect
    struct call_metrics *call_metrics;
};

static void wake(void *ctx, const char *ns, const char *group)
{
    const struct binding *b = ctx;
    if (b->groups)
        group_controller_changed(b->groups, ns, group);
}

// From the stores

static void on_group(void *ctx, const struct object *old, const struct object *now)
{
    struct binding *b = ctx;
    struct arena a = ARENA_INIT;
    if (!now) {
        gateway_group_gone(b->gateway, old->meta.uid);
        replica_reporter_group(b->reporter, old->meta.uid);
        return;
    }
    const struct workergroup *wg = workergroup_of(now), *before = running_spec(wg, &a);
    uint32_t attempt = (uint32_t)MAX(wg->status.attempt, 0);
    const struct group_facts facts = {
        .uid = now->meta.uid,
        .ns = now->meta.ns,
        .name = now->meta.name,
        .world = (uint32_t)MAX(group_world_size(before ? before : wg), 1),
        .attempt = attempt,
        .oldest = wg->spec.restart_policy == RESTART_WORKER ? 1 : attempt,
        .refusal = calls_refusal(wg, &a),
        .status = calls_status(wg, &a),
        .reason = calls_reason(wg),
        .meshes = meshes_of(&wg->spec.worker, &a),
        .n_meshes = wg->spec.worker.n_meshes,
        .meshes_to_come = running_spec_worker_differs(wg, &a),
    };
    router_group_set(gateway_router(b->gateway), &facts);
    arena_done(&a);
}

// For the gateway

static int find_pod(void *ctx, const struct pod_claims *claims, struct arena *a, struct agent_identity *ret,
                    int64_t *ret_heartbeat_ms, struct err *err)
{
    const struct binding *b = ctx;
    (void)a;
    return agent_pod_find(b->o.stores[KIND_POD], b->o.stores[KIND_WORKERGROUP], claims, ret, ret_heartbeat_ms, err);
}

// Returns the pod where the rank runs. NULL = it is not known.
static const struct pod *find_rank(const struct binding *b, const char *group_uid, uint32_t rank, struct arena *a)
{
    const struct group *g = router_group(gateway_router(b->gateway), group_uid);
    const struct object *o = g ? store_get(b->o.stores[KIND_WORKERGROUP], g->ns, g->name) : NULL;
    if (!o || !str_eq(o->meta.uid, group_uid))
        return NULL;
    if (!workergroup_of(o)->spec.n_placement_groups)
        return peers_own_pod(b->o.stores[KIND_POD], workergroup_of(o), rank, a);
    return b->groups ? group_controller_place(b->groups, workergroup_of(o), (int32_t)rank, a) : NULL;
}

static void find_place(void *ctx, const char *group_uid, uint32_t rank, struct arena *a, const char **ret_pod,
                       const char **ret_node)
{
    const struct pod *p = find_rank(ctx, group_uid, rank, a);
    if (!p)
        return;
    *ret_pod = p->obj.meta.name;
    *ret_node = p->node;
}

static int kill_rank(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, struct err *err)
{
    const struct binding *b = ctx;
    struct arena a = ARENA_INIT;
    const struct pod *p = find_rank(b, group_uid, rank, &a);
    int r = p ? agents_kill(b->agents, p->obj.meta.uid, group_uid, attempt, rank, err)
              : err_set(err, ERR_UNAVAILABLE, "it has no pod now");
    if (r < 0 && p)
        err_wrap(err, "pod %s on node %s", p->obj.meta.name, p->node ? p->node : "?");
    arena_done(&a);
    return r;
}

static void on_kill_refused(void *ctx, const char *group_uid, uint32_t rank, const char *why)
{
    const struct binding *b = ctx;
    router_kill_refused(gateway_router(b->gateway), group_uid, rank, why);
}

static void on_worker(void *ctx, const char *group_uid)
{
    struct binding *b = ctx;
    const struct group *g = router_group(gateway_router(b->gateway), group_uid);
    if (g)
        wake(b, g->ns, g->name);
    replica_reporter_group(b->reporter, group_uid);
}

static void on_presence(void *ctx, const char *pod_uid)
{
    const struct binding *b = ctx;
    replica_reporter_agent(b->reporter, pod_uid);
    b->o.seen(b->o.ctx);
}

static void on_placementgroup_changed(void *ctx, const char *ns, const char *placementgroup, const char *group_uid)
{
    struct binding *b = ctx;
    if (b->groups)
        group_controller_placementgroup_changed(b->groups, ns, placementgroup, group_uid);
}

// Another replica has reported the agent. If the agent is connected here, too, this is not new.
static void on_agent_reported(void *ctx, const char *pod_uid, const char *ns, const char *owner, bool of_placementgroup)
{
    struct binding *b = ctx;
    b->o.seen(b->o.ctx);
    if (agents_sight(b->agents, pod_uid))
        return;
    if (of_placementgroup)
        on_placementgroup_changed(b, ns, owner, NULL);
    else
        wake(b, ns, owner);
}

static void on_replica_joined(void *ctx)
{
    const struct binding *b = ctx;
    replica_reporter_look(b->reporter);
}

static void on_ranks_reported(void *ctx, const char *group_uid)
{
    struct binding *b = ctx;
    const struct group *g = router_group(gateway_router(b->gateway), group_uid);
    if (g && g->n_connected < g->world)
        wake(b, g->ns, g->name);
}

static bool may_report(void *ctx, const char *ns, const char *placementgroup, const char *group_uid)
{
    const struct binding *b = ctx;
    return b->groups && group_controller_has_user(b->groups, ns, placementgroup, group_uid);
}

static void on_gpus(void *ctx, const char *group_uid, uint32_t rank, const char *json)
{
    const struct binding *b = ctx;
    router_gpus(gateway_router(b->gateway), group_uid, rank, json);
}

static void on_exited(void *ctx, const char *uid, uint32_t attempt, uint32_t rank, int code, const char *last_lines)
{
    struct binding *b = ctx;
    router_worker_exited(gateway_router(b->gateway), uid, attempt, rank, code, last_lines);
}

static void on_printed(void *ctx, const char *group_uid, uint32_t rank, const char *text, size_t n)
{
    struct binding *b = ctx;
    struct router *r = gateway_router(b->gateway);
    if (text)
        output_line(r, group_uid, rank, text, n);
    else
        output_dropped(r, group_uid, n);
}

// From the identity

static const char *first_ticket(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a)
{
    const struct binding *b = ctx;
    struct ticket t = {.attempt = (uint32_t)attempt, .rank = (uint32_t)rank};
    size_t len = strlen(group_uid);
    if (len >= sizeof t.group_uid)
        return NULL;
    memcpy(t.group_uid, group_uid, len);
    return b->authority.ticket_text(b->authority.ctx, &t, a);
}

// Pods keep the former keys. This replica keeps its connections, and accepts tickets with those keys.
static void tell_changed_keys(struct binding *b, const struct vault_keys *keys)
{
    size_t authority = strcspn(keys->id, "-");
    if (b->keys_id[0] && !str_eq(b->keys_id, keys->id)) {
        bool same = strncmp(b->keys_id, keys->id, authority + 1) == 0;
        metric_add(b->keys_changed, 1);
        log_warn("the keys in the Secret have changed", "effect",
                 same ? "workers with tickets of the former install key cannot connect to replicas that start "
                        "from now on, until that key is back or their groups restart"
                      : "pods that trust the former CA cannot connect again, until it is back or their "
                        "groups restart",
                 "pods", log_i64((long long)keyed_pods_count(b->o.stores[KIND_POD], keys->id)), "secret",
                 b->o.options->keys_secret, "before", b->keys_id, "now", keys->id, NULL);
    }
    snprintf(b->keys_id, sizeof b->keys_id, "%s", keys->id);
}

static void on_alone(void *ctx, const struct err *err)
{
    (void)ctx;
    log_info("this operator looks for no other replicas until its name resolves", "error", err->msg, NULL);
}

// Sends reports to the replicas that have the same keys.
static void look_out(struct binding *b, const struct vault_keys *keys)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const struct replica_reporter_config config = {
        .loop = b->o.loop,
        .url = b->url,
        .ca_pem = keys->ca_pem,
        .name = b->o.options->identity,
        .instance = b->instance,
        .proof = b->authority.replica_proof(b->authority.ctx, b->o.options->identity, b->instance, &a),
        .agents = b->agents,
        .router = gateway_router(b->gateway),
        .seed = b->o.seed,
        .alone = on_alone,
        .ctx = b,
    };
    replica_reporter_free(b->reporter);
    b->reporter = config.proof ? replica_reporter_new(&config, &err) : NULL;
    if (err.code)
        log_warn("this operator cannot tell other replicas whom it sees", "error", err.msg, NULL);
    arena_done(&a);
}

// A replica that has just started does not know all groups, and would say that a group does not exist. Until its stores
// are complete, peers connect to other replicas.
static void listen_when_complete(struct binding *b)
{
    struct err err = ERR_INIT;
    if (b->listens || !b->complete || !b->keys_id[0])
        return;
    int port = gateway_listen(b->gateway, b->o.options->listen, true, &err);
    if (port < 0) {
        b->o.failed(b->o.ctx, &err);
        return;
    }
    b->listens = true;
    log_info("calls are taken", "listen", b->o.options->listen, "port", log_i64(port), "advertise", b->url, NULL);
}

static void on_keys(void *ctx, const struct vault_keys *keys)
{
    struct binding *b = ctx;
    const struct operator_options *o = b->o.options;
    struct err err = ERR_INIT;
    if (gateway_certificate(b->gateway, keys->cert_pem, keys->key_pem, keys->ca_pem, &err) < 0) {
        log_error("the certificate cannot be used", "error", err.msg, NULL);
        return;
    }
    bool others = !str_eq(b->keys_id, keys->id);
    tell_changed_keys(b, keys);
    if (others)
        look_out(b, keys);
    listen_when_complete(b);
    const struct agent_setup setup = {
        .image = o->agent_image,
        .pull_policy = o->agent_image_pull_policy,
        .url = b->url,
        .ca_pem = keys->ca_pem,
        .keys_id = keys->id,
        .keys_secret = o->keys_secret,
        .ticket = first_ticket,
        .ctx = b,
    };
    if (b->groups)
        group_controller_setup(b->groups, &setup);
}

// Pods of groups may have agents. An agent trusts the keys that its pod was created with.
static bool pods_trust(void *ctx)
{
    const struct binding *b = ctx;
    return !store_is_complete(b->o.stores[KIND_POD]) || keyed_pods_count(b->o.stores[KIND_POD], NULL) > 0;
}

static void on_keys_filled(void *ctx, const char *what)
{
    (void)ctx;
    log_warn("the operator wrote keys into the Secret", "why", what, NULL);
}

static void on_identity_error(void *ctx, const struct err *err)
{
    (void)ctx;
    log_warn("keys or identities cannot be read now; the operator tries again", "error", err->msg, NULL);
}

// "cadre-operator.ns.svc" also has longer and shorter names, and is localhost behind a port-forward.
static struct identity *start_identity(struct binding *b)
{
    char *full = xasprintf("%s.cluster.local", b->host), *shorter = xstrdup(b->host);
    shorter[strcspn(shorter, ".")] = '\0';
    const char *const names[] = {b->host, full, shorter, "localhost"};
    const struct vault_options io = {
        .ns = b->o.ns,
        .name = b->o.options->keys_secret,
        .names = {names, ARRAY_LEN(names)},
        .seed = b->o.seed,
        .trusted = pods_trust,
        .on_keys = on_keys,
        .on_filled = on_keys_filled,
        .on_error = on_identity_error,
        .ctx = b,
    };
    struct identity *i = identity_new(b->o.loop, b->o.client, &io);
    free(full);
    free(shorter);
    return i;
}

static void on_secret(void *ctx)
{
    const struct binding *b = ctx;
    vault_look(identity_vault(b->identity));
}

// Both installations would create pods for the same groups, and delete each other's pods. There is one exception: an
// installation for all namespaces ignores a namespace if another one watches only that namespace
// (runtime/excluded_namespaces).
static void on_rival(void *ctx, const char *ns, const char *pod, const char *watches)
{
    const struct binding *b = ctx;
    const char *ours = b->o.options->ns;
    bool narrower = !ours[0] && str_eq(watches, ns), wider = str_eq(ours, b->o.ns) && str_eq(watches, WATCHES_ALL);
    if (!narrower && !wider)
        log_error("another installation acts on the same groups: remove one of the two, or install one in the only "
                  "namespace that it watches",
                  "pod", pod, "namespace", ns, "watches", watches, NULL);
}

static void on_replicas(void *ctx, const char *names)
{
    const struct binding *b = ctx;
    router_replicas(gateway_router(b->gateway), names);
}

static struct gateway *start_gateway(struct binding *b, struct err *err)
{
    const struct binding_options *o = &b->o;
    const struct gateway_config config = {
        .authority = &b->authority,
        .provisioner = &b->provisioner,
        .agents = b->agents,
        .replica = o->options->identity,
        .instance = b->instance,
        .reports = b->reports,
        .pod = find_pod,
        .place = find_place,
        .worker = on_worker,
        .kill = kill_rank,
        .weights = o->options->weights,
        .memory = o->options->memory ? o->options->memory : memory_limit(),
        .sleeps = !o->options->spin,
        .ctx = b,
    };
    return gateway_new(o->loop, &config, err);
}

static struct agents *start_agents(struct binding *b)
{
    const struct agents_config config = {
        .clock = loop_clock(b->o.loop),
        .changed = wake,
        .placementgroup_changed = on_placementgroup_changed,
        .presence = on_presence,
        .may_report = may_report,
        .exited = on_exited,
        .kill_refused = on_kill_refused,
        .printed = on_printed,
        .gpus = on_gpus,
        .ctx = b,
    };
    return agents_new(&config);
}

static struct replica_reports *start_reports(struct binding *b)
{
    const struct replica_reports_config config = {
        .clock = loop_clock(b->o.loop),
        .agent = on_agent_reported,
        .ranks = on_ranks_reported,
        .joined = on_replica_joined,
        .ctx = b,
    };
    return replica_reports_new(&config);
}

static struct object_watch *watch_secret(struct binding *b)
{
    const struct object_watch_options options = {
        .kind = KIND_SECRET,
        .ns = b->o.ns,
        .name = b->o.options->keys_secret,
        .seed = b->o.seed,
        .on_change = on_secret,
        .on_error = on_identity_error,
        .ctx = b,
    };
    return object_watch_new(b->o.loop, b->o.client, &options);
}

struct binding *binding_new(const struct binding_options *o, struct err *err)
{
    struct binding *b = xcalloc(1, sizeof *b);
    b->o = *o;
    b->url = o->options->advertise_url ? xstrdup(o->options->advertise_url)
                                       : xasprintf("wss://cadre-operator.%s.svc:9443", o->ns);
    const char *port;
    (void)host_port_split(b->url + strlen("wss://"), &b->host, &port); // the command line was checked
    b->agents = start_agents(b);
    b->reports = start_reports(b);
    snprintf(b->instance, sizeof b->instance, "%016" PRIx64, o->seed);
    b->identity = start_identity(b);
    b->secret = watch_secret(b);
    b->authority = identity_authority(b->identity);
    b->provisioning = provision_new(o->loop, o->client, o->stores, PROVISION_RENEW_MS);
    b->provisioner = provision_provisioner(b->provisioning);
    b->gateway = start_gateway(b, err);
    if (!b->gateway) {
        binding_free(b);
        return NULL;
    }
    b->replicas = replicas_new(o->stores[KIND_POD], o->ns, o->options->identity, on_replicas, on_rival, b);
    store_subscribe(o->stores[KIND_WORKERGROUP], on_group, b);
    b->keys_changed = metrics_counter(o->metrics, "cadre_keys_changed_total",
                                      "how often the keys in the Secret changed, so that pods trust other keys", "");
    b->call_metrics = call_metrics_new(o->metrics, b->gateway, b->agents);
    return b;
}

struct agents *binding_agents(struct binding *b)
{
    return b->agents;
}

const struct replica_reports *binding_reports(const struct binding *b)
{
    return b->reports;
}

const char *binding_sees_more(const struct binding *b)
{
    return replica_reports_sees_more(b->reports, b->agents);
}

struct router *binding_router(struct binding *b)
{
    return gateway_router(b->gateway);
}

void binding_complete(struct binding *b)
{
    b->complete = true;
    listen_when_complete(b);
}

void binding_attach(struct binding *b, struct group_controller *groups)
{
    b->groups = groups;
}

void binding_stop(struct binding *b)
{
    gateway_stop(b->gateway);
    vault_stop(identity_vault(b->identity));
}

bool binding_idle(const struct binding *b)
{
    return gateway_idle(b->gateway) && vault_idle(identity_vault(b->identity));
}

void binding_retry_now(struct binding *b)
{
    identity_retry_now(b->identity);
    object_watch_retry_now(b->secret);
}

void binding_free(struct binding *b)
{
    if (!b)
        return;
    call_metrics_free(b->call_metrics);
    b->groups = NULL;
    replica_reporter_free(TAKE_PTR(b->reporter));
    gateway_free(b->gateway);
    replica_reports_free(b->reports);
    replicas_free(b->replicas);
    provision_free(b->provisioning);
    object_watch_free(b->secret);
    identity_free(b->identity);
    agents_free(b->agents);
    free(b->host);
    free(b->url);
    free(b);
}
