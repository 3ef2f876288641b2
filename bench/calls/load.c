// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/load.h"

#include "bench/calls/caller.h"
#include "bench/calls/latency.h"
#include "bench/lib/proc.h"
#include "common/base/mem.h"

#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    cadre_client *client;
    cadre_client_request request;
    struct latency latency;
    int64_t end;
    struct flight { // a call, and the one that follows it
        struct run *run;
        int64_t began;
    } * flights;
};

static void *write_text(size_t bytes)
{
    char *text = xmalloc(bytes + 4);
    memset(text, 'x', bytes + 4);
    memcpy(text, "[\"", 2);
    memcpy(text + bytes + 2, "\"]", 2);
    return text;
}

static void start(struct flight *flight, int64_t now)
{
    cadre_client_request request = flight->run->request;
    cadre_client_error error;
    request.ctx = flight;
    flight->began = now;
    if (cadre_client_start(flight->run->client, &request, NULL, &error) != CADRE_CLIENT_OK)
        caller_die("call", &error);
}

static void on_done(void *ctx, const cadre_client_answer *answer)
{
    struct flight *flight = ctx;
    int64_t now = proc_now_us();
    if (answer->error)
        caller_die("call", answer->error);
    latency_add(&flight->run->latency, now - flight->began);
    if (now < flight->run->end)
        start(flight, now);
}

static void call_in_turn(struct run *r)
{
    cadre_client_error error;
    int64_t began, now = proc_now_us();
    do { // at least once, also if this process has not run for a while
        began = now;
        if (cadre_client_call(r->client, &r->request, NULL, &error) != CADRE_CLIENT_OK)
            caller_die("call", &error);
        now = proc_now_us();
        latency_add(&r->latency, now - began);
    } while (now < r->end);
}

static void call_many(struct run *r, unsigned in_flight)
{
    r->flights = xcalloc(in_flight, sizeof *r->flights);
    for (unsigned i = 0; i < in_flight; i++) {
        r->flights[i].run = r;
        start(&r->flights[i], proc_now_us());
    }
    while (cadre_client_pending(r->client) > 0)
        cadre_client_wait(r->client, -1);
    free(r->flights);
}

double load_rate(cadre_client *c, const struct load_call *call, double seconds, double *ret_p50_us)
{
    struct run r = {.client = c};
    cadre_client_error error;
    cadre_client_json result;
    cadre_client_request_init(&r.request, call->method);
    r.request.group = call->group;
    void *args = call->batch ? caller_batch("U8", 1, call->bytes, &r.request.batch_len) : write_text(call->bytes);
    r.request.rank = call->batch ? 0 : -1; // what comes back is then the batch, not a list of it
    if (call->batch)
        r.request.batch = args;
    else if (call->args)
        r.request.args = (cadre_client_json){call->args, strlen(call->args)};
    else
        r.request.args = (cadre_client_json){args, call->bytes + 4};
    r.request.done = on_done;
    for (int i = 0; i < LOAD_WARM; i++) // connected, ready, and memory mapped
        if (cadre_client_call(c, &r.request, &result, &error) != CADRE_CLIENT_OK)
            caller_die(call->method, &error);
    if (call->batch && (result.len != r.request.batch_len || memcmp(result.text, args, result.len) != 0))
        fprintf(stderr, "bench: %s() of a batch gives another one back\n", call->method), exit(1);
    int64_t begin = proc_now_us();
    r.end = begin + (int64_t)(seconds * 1e6);
    if (call->in_flight > 1)
        call_many(&r, call->in_flight);
    else
        call_in_turn(&r);
    free(args);
    return latency_finish(&r.latency, proc_now_us() - begin, ret_p50_us);
}
