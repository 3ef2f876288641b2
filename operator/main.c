// SPDX-License-Identifier: Apache-2.0
// cadre-operator: builds the parts, turns the loop, and frees the parts in order.
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/exec/deciding.h"
#include "operator/exec/preflight.h"
#include "operator/kube/config.h"
#include "operator/runtime/election.h"
#include "operator/runtime/excluded_namespaces.h"
#include "operator/runtime/handover.h"
#include "operator/runtime/health.h"
#include "operator/runtime/outage.h"
#include "operator/runtime/process.h"
#include "operator/runtime/reflector.h"
#include "operator/wiring/binding.h"
#include "operator/wiring/operator_options.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STOP_GRACE_MS = 10 * 1000, DRAIN_LOOK_MS = 20, KEPT_BYTES = 1024 * 1024 };
// After this replica gives the Lease to another one, it waits for HEAD_START_MS before it competes again.
enum { LOOK_AROUND_MS = 1000, HEAD_START_MS = 5000 };

// The mirrored kinds, in the order of start. All mirrors are complete before the operator decides anything.
static const struct mirror {
    enum kind kind;
    bool cluster_wide; // also in a namespaced install: planning needs everything that takes room
    const char *label_selector;
} mirrors[] = {
    {KIND_NODE, true, NULL},
    {KIND_POD, true, NULL},
    {KIND_SERVICE, false, "app.kubernetes.io/managed-by=cadre"},
    {KIND_ENDPOINTSLICE, false, LABEL_SLICE_MANAGED_BY "=" SLICE_MANAGED_BY},
    {KIND_WORKERGROUP, false, NULL},
    {KIND_PLACEMENTGROUP, false, NULL},
};

struct cadre_operator {
    const struct operator_options *options;
    struct loop *loop;
    struct kube_config config;
    struct kube_client *client;
    struct metrics *metrics;
    struct metrics_rest rest; // the client reports to it
    struct health *health;
    struct recorder *recorder;
    struct store *stores[KIND_COUNT]; // of the mirrored kinds
    struct reflector *reflectors[KIND_COUNT];
    struct binding *binding; // NULL = the operator takes no calls
    struct deciding *deciding;
    struct election *election;
    struct outage *outage;
    struct excluded_namespaces *excluded; // NULL = the operator watches one namespace
    struct metric *is_leader;
    struct loop_signal *signals[2];
    struct loop_timer *drain_timer, *around_timer;
    struct handover handover;
    int64_t handed_ms; // since when it gives the Lease to another replica; 0 = it does not
    int64_t stop_by_ms;
    struct rand rand;
    char identity[320];
    bool stopping, releasing;
    int exit_code;
};

static bool all_complete(const struct cadre_operator *o)
{
    for (size_t i = 0; i < ARRAY_LEN(mirrors); i++)
        if (!store_is_complete(o->stores[mirrors[i].kind]))
            return false;
    return true;
}

static bool is_ready(void *ctx, struct buf *why_not)
{
    const struct cadre_operator *o = ctx;
    for (size_t i = 0; i < ARRAY_LEN(mirrors); i++)
        if (!store_is_complete(o->stores[mirrors[i].kind]))
            buf_printf(why_not, "waiting for the first list of %s\n", kind_info(mirrors[i].kind)->plural);
    return why_not->len == 0;
}

// After an outage, parts that failed may still wait before their next try. This tries them now.
static void retry_now(struct cadre_operator *o)
{
    for (size_t i = 0; i < ARRAY_LEN(mirrors); i++)
        reflector_retry_now(o->reflectors[mirrors[i].kind]);
    if (o->binding)
        binding_retry_now(o->binding);
}

// Only a leader writes the Event.
static void tell_excluded(void *ctx, const char *ns, const char *pod)
{
    const struct cadre_operator *o = ctx;
    const char *home = o->options->lease_ns ? o->options->lease_ns : o->config.ns;
    const struct object *own = store_get(o->stores[KIND_POD], home, o->options->identity);
    _cleanup_(free_p) char *note =
        pod ? xasprintf("this installation ignores namespace %s, because another installation watches only that "
                        "namespace (pod %s)",
                        ns, pod)
            : xasprintf(
                  "no other installation watches only namespace %s any more: this installation handles its groups", ns);
    log_info(note, NULL);
    if (own)
        recorder_event(o->recorder, own, false, pod ? "NamespaceLeft" : "NamespaceTaken", note);
}

static void on_elected(struct cadre_operator *o)
{
    if (o->stopping || o->handed_ms)
        return; // it was elected in the turn in which it was asked to stop: the Lease is released unused
    log_info("leading", "identity", o->identity, NULL);
    metric_set(o->is_leader, 1);
    retry_now(o);
    excluded_namespaces_each(o->excluded, tell_excluded, o);
    deciding_start(o->deciding);
    loop_timer_arm(o->around_timer, LOOK_AROUND_MS);
}

// Another replica may lead already, so this one does not wait for its requests. It still serves calls.
static void on_lost(struct cadre_operator *o)
{
    log_warn("the lease is lost: this replica stops deciding until it leads again, and still serves calls", "identity",
             o->identity, NULL);
    metric_set(o->is_leader, 0);
    deciding_lose(o->deciding);
}

static void on_recovered(void *ctx, int64_t away_ms)
{
    struct cadre_operator *o = ctx;
    log_info("the API server answers again", "after_ms", log_i64(away_ms), NULL);
    retry_now(o);
    if (!o->stopping)
        deciding_retry(o->deciding, away_ms);
}

static const char *watches(const struct cadre_operator *o)
{
    return o->options->ns[0] ? o->options->ns : "*";
}

static bool may_decide(void *ctx)
{
    const struct cadre_operator *o = ctx;
    return !o->options->leader_elect || (o->election && election_may_write(o->election));
}

static void on_holder(const struct cadre_operator *o, const char *holder, const char *its)
{
    if (!its[0] || str_eq(its, watches(o))) {
        log_info("another replica leads", "holder", holder, NULL);
        return;
    }
    log_error("another installation holds the Lease of this one, so this one decides nothing: give each installation "
              "its own Lease with --leader-elect-name or --leader-elect-namespace",
              "lease", o->options->lease_name, "holder", holder, "it_watches", its, "this_one_watches", watches(o),
              NULL);
}

static void on_disbelieved(const struct cadre_operator *o, const char *holder, int64_t duration_ms)
{
    log_warn("the Lease has an unusual duration, and its holder does not renew it: this replica takes the Lease",
             "lease", o->options->lease_name, "holder", holder, "duration_ms", log_i64(duration_ms), NULL);
}

static void on_restored(void *ctx, enum kind kind)
{
    struct cadre_operator *o = ctx;
    log_error(
        "the API server has older data than before, so a backup of etcd was restored: exiting, to read all objects "
        "again after the restart",
        "kind", kind_info(kind)->kind, NULL);
    o->exit_code = 1;
    loop_stop(o->loop);
}

static void on_news(void *ctx, const struct leader_news *news)
{
    if (news->restored) {
        on_restored(ctx, KIND_LEASE);
        return;
    }
    if (news->error)
        log_warn("the lease cannot be read or written", "error", news->error->msg, NULL);
    if (news->lost)
        on_lost(ctx);
    if (news->elected)
        on_elected(ctx);
    if (news->disbelieved)
        on_disbelieved(ctx, news->disbelieved, news->disbelieved_ms);
    if (news->holder)
        on_holder(ctx, news->holder, news->watches);
    if (news->away_ms)
        on_recovered(ctx, news->away_ms);
}

static void begin_election(struct cadre_operator *o)
{
    const struct operator_options *opt = o->options;
    if (!opt->leader_elect) {
        on_elected(o);
        return;
    }
    struct election_options eo = {
        .leader =
            {
                .ns = opt->lease_ns ? opt->lease_ns : o->config.ns,
                .name = opt->lease_name,
                .identity = o->identity,
                .watches = watches(o),
                .lease_ms = opt->lease_ms,
                .renew_deadline_ms = opt->renew_ms,
                .retry_ms = opt->retry_ms,
                .news = on_news,
                .ctx = o,
                .seed = rand_u64(&o->rand),
            },
        .config = &o->config,
        .observe = metrics_rest_observe,
        .observe_ctx = &o->rest,
    };
    struct err err = ERR_INIT;
    o->election = election_start(o->loop, &eo, &err);
    if (!o->election) {
        log_error("the leader election cannot start: exiting", "error", err.msg, NULL);
        o->exit_code = 1;
        loop_stop(o->loop);
    }
}

static void on_complete(void *ctx, enum kind kind)
{
    struct cadre_operator *o = ctx;
    log_debug("mirror is complete", "kind", kind_info(kind)->kind, NULL);
    if (all_complete(o) && !o->stopping) {
        log_info("ready", "version", CADRE_VERSION, "server", o->config.server, "nodes",
                 log_i64((long long)store_count(o->stores[KIND_NODE])), "pods",
                 log_i64((long long)store_count(o->stores[KIND_POD])), "workergroups",
                 log_i64((long long)store_count(o->stores[KIND_WORKERGROUP])), NULL);
        if (o->binding)
            binding_complete(o->binding);
        begin_election(o);
        (void)malloc_trim(0);
    }
}

static void on_mirror_error(void *ctx, enum kind kind, const struct err *err, int64_t retry_ms)
{
    struct cadre_operator *o = ctx;
    log_warn("a watch failed and is tried again", "kind", kind_info(kind)->kind, "error", err->msg, "retry_ms",
             log_i64(retry_ms), NULL);
    if (!o->election) // otherwise the Lease shows an outage
        outage_suspect(o->outage);
}

static void on_bad_object(void *ctx, enum kind kind, const struct err *err)
{
    (void)ctx;
    log_error("an object cannot be read and is ignored", "kind", kind_info(kind)->kind, "error", err->msg, NULL);
}

static void mirror_start(struct cadre_operator *o, const struct mirror *m)
{
    struct reflector_options ro = {
        .ns = m->cluster_wide ? "" : o->options->ns,
        .label_selector = m->label_selector,
        .seed = rand_u64(&o->rand),
        .on_error = on_mirror_error,
        .on_bad_object = on_bad_object,
        .on_complete = on_complete,
        .on_restored = on_restored,
        .ctx = o,
    };
    o->reflectors[m->kind] = reflector_start(o->loop, o->client, o->stores[m->kind], &ro);
}

// Stopping: begin nothing new, let running requests end (bounded), release the Lease when the last write is done, leave
// the loop.
static void on_released(void *ctx)
{
    struct cadre_operator *o = ctx;
    o->election = NULL; // it has freed itself
    o->releasing = false;
    metric_set(o->is_leader, 0);
}

static void drain(void *ctx)
{
    struct cadre_operator *o = ctx;
    bool quiet = deciding_idle(o->deciding);
    bool gone = !o->binding || binding_idle(o->binding), late = loop_now_ms(o->loop) >= o->stop_by_ms;
    if (quiet && o->election && !o->releasing) {
        o->releasing = true;
        election_release(o->election, on_released, o);
    }
    if (o->releasing || (!late && !(quiet && gone))) {
        loop_timer_arm(o->drain_timer, DRAIN_LOOK_MS);
        return;
    }
    // The next leader must not begin while writes may still arrive: the Lease expires by itself.
    if (!quiet || !gone)
        log_warn("requests or connections are still open: giving up", NULL);
    loop_stop(o->loop);
}

static void begin_handover(struct cadre_operator *o, const char *to, int64_t now_ms)
{
    log_warn("another replica sees all agents that this replica sees, and more: this replica gives the lease to it",
             "replica", to, NULL);
    deciding_stop(o->deciding);
    o->handed_ms = now_ms;
}

// Releases the Lease when no write is in progress. Then this replica takes part in the election like every other one.
static void go_on_handing(struct cadre_operator *o, int64_t now_ms)
{
    if (o->election && !o->releasing && deciding_idle(o->deciding)) {
        o->releasing = true;
        election_release(o->election, on_released, o);
    } else if (!o->election && now_ms - o->handed_ms >= HEAD_START_MS) {
        o->handed_ms = 0;
        begin_election(o);
    }
}

static void look_around(void *ctx)
{
    struct cadre_operator *o = ctx;
    int64_t now = loop_now_ms(o->loop);
    const char *to = NULL;
    if (o->stopping)
        return;
    if (o->handed_ms)
        go_on_handing(o, now);
    else if (o->binding && o->election && election_is_leading(o->election))
        to = binding_sees_more(o->binding);
    if (handover_due(&o->handover, to != NULL, now))
        begin_handover(o, to, now);
    if (to || o->handed_ms)
        loop_timer_arm(o->around_timer, LOOK_AROUND_MS);
}

static void on_seen(void *ctx)
{
    const struct cadre_operator *o = ctx;
    if (o->around_timer && !loop_timer_armed(o->around_timer))
        loop_timer_arm(o->around_timer, LOOK_AROUND_MS);
}

static void stop(struct cadre_operator *o)
{
    o->stopping = true;
    deciding_stop(o->deciding);
    if (o->binding)
        binding_stop(o->binding);
    o->stop_by_ms = loop_now_ms(o->loop) + STOP_GRACE_MS;
    loop_timer_arm(o->drain_timer, 0);
}

static void on_signal(void *ctx, int signo)
{
    struct cadre_operator *o = ctx;
    log_info("stopping", "signal", signo == SIGTERM ? "SIGTERM" : "SIGINT", NULL);
    if (o->stopping)
        loop_stop(o->loop); // the user asked twice
    else
        stop(o);
}

static int build_client(struct cadre_operator *o, struct err *err)
{
    const char *path = o->options->kubeconfig, *home = getenv("HOME");
    _cleanup_(free_p) char *at_home = xasprintf("%s/.kube/config", home ? home : "");
    if (!path && !getenv("KUBERNETES_SERVICE_HOST"))
        path = at_home;
    int r = kube_config_load(path, o->options->context, &o->config, err);
    if (r < 0)
        return r;
    const char *host = strstr(o->config.server, "://");
    o->rest = (struct metrics_rest){o->metrics, host ? host + 3 : o->config.server};
    struct kube_client_options co = {
        .observe = metrics_rest_observe, .observe_ctx = &o->rest, .may_decide = may_decide, .may_decide_ctx = o};
    return kube_client_new(o->loop, &o->config, &co, &o->client, err);
}

static void on_binding_failed(void *ctx, const struct err *err)
{
    struct cadre_operator *o = ctx;
    log_error("the operator cannot take calls: exiting", "error", err->msg, NULL);
    o->exit_code = 1;
    if (!o->stopping)
        stop(o);
}

static int build_binding(struct cadre_operator *o, struct err *err)
{
    const struct binding_options bo = {
        .loop = o->loop,
        .client = o->client,
        .stores = o->stores,
        .metrics = o->metrics,
        .options = o->options,
        .ns = o->options->lease_ns ? o->options->lease_ns : o->config.ns,
        .seed = rand_u64(&o->rand),
        .failed = on_binding_failed,
        .seen = on_seen,
        .ctx = o,
    };
    if (!o->options->listen[0])
        return 0;
    o->binding = binding_new(&bo, err);
    return o->binding ? 0 : err->code;
}

static void on_excluded(void *ctx, const char *ns, const char *pod)
{
    struct cadre_operator *o = ctx;
    tell_excluded(o, ns, pod);
    if (o->deciding)
        deciding_look(o->deciding);
}

static void build_controllers(struct cadre_operator *o)
{
    o->recorder = recorder_new(o->loop, o->client, "cadre.dev/operator", o->identity, o->metrics);
    if (!o->options->ns[0])
        o->excluded =
            excluded_namespaces_new(o->loop, o->stores[KIND_POD], EXCLUDED_NAMESPACES_LINGER_MS, on_excluded, o);
    const struct group_controller_options go = {
        .client = o->client,
        .stores = o->stores,
        .agents = o->binding ? binding_agents(o->binding) : NULL,
        .router = o->binding ? binding_router(o->binding) : NULL,
        .reports = o->binding ? binding_reports(o->binding) : NULL,
        .excluded = o->excluded,
        .recorder = o->recorder,
        .metrics = o->metrics,
        .clock = loop_clock(o->loop),
        .seed = rand_u64(&o->rand),
    };
    struct group_controller *groups = group_controller_new(o->loop, &go);
    if (o->binding)
        binding_attach(o->binding, groups);
    o->deciding =
        deciding_new(o->loop, o->client, o->stores, groups, placementgroup_controller_new(o->loop, groups, &go));
    o->is_leader = metrics_gauge(o->metrics, "leader_election_master_status", "1 while this process leads, else 0",
                                 "name=\"cadre-operator\"");
}

static int build(struct cadre_operator *o, struct err *err)
{
    rand_seed_system(&o->rand);
    snprintf(o->identity, sizeof o->identity, "%s_%016" PRIx64, o->options->identity, rand_u64(&o->rand));
    o->loop = loop_new();
    o->metrics = metrics_new();
    process_metrics(o->metrics, o->loop);
    int r = build_client(o, err);
    if (r < 0 || o->options->check)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(mirrors); i++)
        o->stores[mirrors[i].kind] = store_new(mirrors[i].kind);
    r = build_binding(o, err);
    if (r < 0)
        return r;
    build_controllers(o);
    struct health_options ho = {o->options->http_address, o->metrics, is_ready, o};
    r = health_start(o->loop, &ho, &o->health, err);
    if (r < 0)
        return r;
    o->drain_timer = loop_timer_new(o->loop, drain, o);
    o->around_timer = loop_timer_new(o->loop, look_around, o);
    o->signals[0] = loop_signal_new(o->loop, SIGTERM, on_signal, o);
    o->signals[1] = loop_signal_new(o->loop, SIGINT, on_signal, o);
    o->outage = outage_new(o->loop, o->client, o->options->ns, on_recovered, o);
    for (size_t i = 0; i < ARRAY_LEN(mirrors); i++)
        mirror_start(o, &mirrors[i]);
    return 0;
}

static void take_down(struct cadre_operator *o)
{
    for (size_t i = 0; i < ARRAY_LEN(mirrors); i++)
        reflector_stop(o->reflectors[mirrors[i].kind]);
    election_free(o->election);
    binding_free(o->binding);
    kube_client_free(o->client); // it ends all requests, so it goes before the parts that wait for them
    outage_free(o->outage);
    deciding_free(o->deciding);
    excluded_namespaces_free(o->excluded);
    recorder_free(o->recorder);
    health_stop(o->health);
    for (size_t i = 0; i < ARRAY_LEN(mirrors); i++)
        store_free(o->stores[mirrors[i].kind]);
    loop_timer_free(o->drain_timer);
    loop_timer_free(o->around_timer);
    loop_signal_free(o->signals[0]);
    loop_signal_free(o->signals[1]);
    loop_observe(o->loop, NULL, NULL);
    metrics_free(o->metrics);
    kube_config_done(&o->config);
    loop_free(o->loop);
}

int main(int argc, char **argv)
{
    struct operator_options options;
    int code = operator_options_parse(argc, argv, &options);
    if (code >= 0)
        return code;
    // Unused memory above these sizes goes back to the kernel after the first lists, and when idle.
    mem_keep(KEPT_BYTES, KEPT_BYTES, KEPT_BYTES / 8);
    log_setup(options.log_level, options.log_format);
    signal(SIGPIPE, SIG_IGN);
    struct cadre_operator o = {.options = &options};
    struct err err = ERR_INIT;
    if (build(&o, &err) < 0) {
        log_error("cannot start", "error", err.msg, NULL);
        o.exit_code = 1;
    } else if (options.check) {
        const char *home = options.lease_ns ? options.lease_ns : o.config.ns;
        o.exit_code = preflight_run(o.loop, o.client, &o.config,
                                    &(struct preflight_options){options.ns, home, options.keys_secret});
    } else {
        loop_run(o.loop);
    }
    take_down(&o);
    return o.exit_code;
}
