// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/noise.h"

#include "common/base/mem.h"
#include "operator/kube/config.h"
#include "operator/kube/kube_client.h"

#include <stdio.h>
#include <stdlib.h>

enum { LIST_MS = 60 * 1000 };

struct noise {
    struct noise_options options;
    struct kube_config config;
    struct loop *loop;
    struct kube_client *client; // only while it lasts
    struct loop_timer *timer;
    int under_way;
    double lists, refused;
};

static void observe(void *ctx, const char *method, int http_status, int64_t micros)
{
    struct noise *n = ctx;
    (void)method;
    (void)micros;
    n->lists += http_status == 200;
    n->refused += http_status == 429;
}

static void list_more(void *ctx);

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct noise *n = ctx;
    (void)response;
    (void)err; // refused or given up: it has cost what it has
    n->under_way--;
    if (!n->options.per_second)
        loop_timer_arm(n->timer, 0);
}

static void list_more(void *ctx)
{
    struct noise *n = ctx;
    int more = n->options.per_second ? 1 : n->options.at_once;
    for (; n->under_way < n->options.at_once && more; more--) {
        n->under_way++;
        kube_get_path(n->client, "/api/v1/nodes", LIST_MS, on_answer, n);
    }
    if (n->options.per_second)
        loop_timer_arm(n->timer, MAX(1000 / n->options.per_second, 1));
}

void noise_begin(struct noise *n)
{
    struct err err = ERR_INIT;
    if (!n)
        return;
    struct kube_client_options options = {
        .max_in_flight = n->options.at_once, .user_agent = "noise", .observe = observe, .observe_ctx = n};
    if (kube_client_new(n->loop, &n->config, &options, &n->client, &err) < 0) {
        fprintf(stderr, "bench-groups: %s: %s\n", n->options.kubeconfig, err.msg);
        exit(1);
    }
    loop_timer_arm(n->timer, 0);
}

void noise_end(struct noise *n)
{
    if (!n)
        return;
    kube_client_free(TAKE_PTR(n->client)); // answers all that is under way
    loop_timer_disarm(n->timer);
}

struct noise *noise_new(struct loop *loop, const struct noise_options *options)
{
    struct err err = ERR_INIT;
    struct noise *n = xcalloc(1, sizeof *n);
    n->options = *options;
    n->loop = loop;
    n->timer = loop_timer_new(loop, list_more, n);
    if (kube_config_load(options->kubeconfig, NULL, &n->config, &err) < 0) {
        fprintf(stderr, "bench-groups: %s: %s\n", options->kubeconfig, err.msg);
        exit(1);
    }
    return n;
}

void noise_free(struct noise *n)
{
    if (!n)
        return;
    loop_timer_free(n->timer);
    kube_config_done(&n->config);
    free(n);
}

double noise_lists(const struct noise *n)
{
    return n->lists;
}

double noise_refused(const struct noise *n)
{
    return n->refused;
}
