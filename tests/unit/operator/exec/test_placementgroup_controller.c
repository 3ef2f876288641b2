// SPDX-License-Identifier: Apache-2.0
// A PlacementGroup on two nodes, from its object to its pods, through its controller and the registry of agents.
#include "tests/unit/operator/exec/controller_case.h"

#include "common/base/str.h"
#include "operator/exec/placementgroup_controller.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/support/patience.h"
#include "tests/unit/support/store_gone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct {
    struct controller_case c;
    struct placementgroup_controller *controller;
    struct agents *agents;
    struct connected_agent *agent;
    struct arena arena;
    int version;
    const char *pod; // the pod of the last request to create one
} t;

static const char *version(void)
{
    return arena_printf(&t.arena, "\"resourceVersion\":\"%d\"", ++t.version);
}

static void put_pool(const char *status)
{
    store_put_json(t.c.stores[KIND_PLACEMENTGROUP],
                   arena_printf(&t.arena,
                                "{\"metadata\":{\"name\":\"pool\",\"namespace\":\"ml\",\"uid\":\"u-pool\",%s,"
                                "\"generation\":1},\"spec\":{\"bundles\":[{\"count\":1,\"resources\":{\"cpu\":\"1\"}}]}"
                                ",\"status\":%s}",
                                version(), status));
}

// Returns the text with `more` after the first `mark`.
static const char *with(const char *text, const char *mark, const char *more)
{
    const char *at = strstr(text, mark);
    assert_non_null(at);
    at += strlen(mark);
    return arena_printf(&t.arena, "%.*s%s%s", (int)(at - text), text, more, at);
}

// The pod after kube-scheduler and the kubelet have changed it.
static const char *running(const char *body, const char *node)
{
    const char *meta = arena_printf(&t.arena, "\"uid\":\"u-pod\",%s,", version());
    const char *pod = with(body, "\"metadata\":{", meta);
    pod = with(pod, "\"spec\":{", arena_printf(&t.arena, "\"nodeName\":\"%s\",", node));
    return with(pod, "{",
                "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]},");
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    controller_case_init(&t.c);
    t.agents = agents_new(&(struct agents_config){.clock = loop_clock(t.c.loop)});
    controller_case_start(&t.c, t.agents, NULL);
    controller_case_put_node(&t.c, "n2");
    group_controller_setup(t.c.controller, &(struct agent_setup){.image = "i", .url = "wss://o", .ca_pem = "CA"});
    t.controller = placementgroup_controller_new(t.c.loop, t.c.controller,
                                                 &(struct group_controller_options){
                                                     .client = t.c.client,
                                                     .stores = t.c.stores,
                                                     .agents = t.agents,
                                                     .recorder = t.c.recorder,
                                                     .metrics = t.c.metrics,
                                                     .clock = loop_clock(t.c.loop),
                                                     .seed = 1,
                                                 });
    put_pool("{}");
    reconciler_start(placementgroup_controller_reconciler(t.controller));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (t.agent)
        agents_leave(t.agents, t.agent);
    reconciler_stop(placementgroup_controller_reconciler(t.controller));
    stub_client_cancel(t.c.client);
    placementgroup_controller_free(t.controller);
    controller_case_stop(&t.c);
    agents_free(t.agents);
    controller_case_done(&t.c);
    arena_done(&t.arena);
    return 0;
}

static void answer(struct stub_call *call)
{
    const struct kube_request *r = &call->request;
    const char *body = r->verb == VERB_PATCH_MERGE || r->verb == VERB_CREATE ? arena_strdup(&t.arena, r->body) : "{}";
    if (r->verb == VERB_PATCH_MERGE) {
        const char *status = strstr(body, "\"status\":{") + strlen("\"status\":");
        put_pool(arena_strndup(&t.arena, status, strlen(status) - 1));
        stub_fail(call, ERR_CONFLICT, "the watch was quicker");
    } else {
        if (r->verb == VERB_CREATE && r->kind == KIND_POD && !r->dry_run)
            t.pod = body;
        stub_answer(call, 201, r->dry_run ? body : "{}");
    }
}

static void turn(void)
{
    loop_run_once(t.c.loop, 20);
    while (stub_waiting(t.c.client))
        answer(stub_next(t.c.client));
}

#define UNTIL(condition) TURN_UNTIL(turn(), condition, t.pod ? t.pod : "")

static bool made_on(const char *node)
{
    return t.pod && strstr(t.pod, arena_printf(&t.arena, "\"values\":[\"%s\"]", node));
}

static bool says(const char *type, const char *text)
{
    const struct object *o = store_get(t.c.stores[KIND_PLACEMENTGROUP], "ml", "pool");
    const struct placementgroup_status *s = &placementgroup_of(o)->status;
    const struct condition *c = condition_find(s->conditions, s->n_conditions, type);
    return c && strstr(c->message, text);
}

static void lose_gpu(void)
{
    const struct agent_identity id = {.ns = "ml",
                                      .group = "pool",
                                      .of_placementgroup = true,
                                      .pod = "pool-plg-0-0",
                                      .pod_uid = "u-pod",
                                      .node = "n1"};
    static const char hello[] = "{\"role\":\"agent\",\"version\":1,\"groups\":[],\"gpus\":[{\"index\":0,\"uuid\":"
                                "\"GPU-a\",\"name\":\"H200\",\"state\":\"Lost\",\"xid\":79}]}";
    struct err err = ERR_INIT;
    if (agents_join(t.agents, &id, hello, strlen(hello), NULL, NULL, &t.agent, &err) < 0)
        fail_msg("%s", err.msg);
}

// A group has deleted the pod because of a lost GPU. The next pod is on another node.
static void bundles_whose_gpu_is_lost_move_off_the_node(void **state)
{
    (void)state;
    UNTIL(made_on("n1"));
    const char *first = running(t.pod, "n1");
    store_put_json(t.c.stores[KIND_POD], first);
    UNTIL(says(COND_READY, "all 1 bundles are ready"));
    lose_gpu();
    turn();
    assert_true(says(COND_READY, "all 1 bundles are ready")); // the groups on it report the loss
    store_put_json(t.c.stores[KIND_POD],
                   with(running(t.pod, "n1"), "\"metadata\":{", "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","));
    UNTIL(says(COND_READY, "is lost: GPULost"));
    t.pod = NULL;
    store_gone(t.c.stores[KIND_POD], "ml", "pool-plg-0-0");
    UNTIL(t.pod);
    assert_true(made_on("n2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bundles_whose_gpu_is_lost_move_off_the_node, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
