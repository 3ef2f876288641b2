// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/sdk/c/sdk_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    sdk_proxy_init(&f->proxy);
    *state = f;
    return 0;
}

int teardown(void **state)
{
    struct fixture *f = *state;
    cadre_client_close(f->client);
    sdk_proxy_done(&f->proxy);
    free(f);
    return 0;
}

cadre_client_options options_of(const struct fixture *f)
{
    cadre_client_options o;
    cadre_client_options_init(&o);
    o.address = f->proxy.url;
    o.ns = "ml";
    o.group = "llama";
    return o;
}

void open_with(struct fixture *f, const cadre_client_options *o)
{
    if (cadre_client_open(o, &f->client, &f->error) != CADRE_CLIENT_OK)
        fail_msg("%s", f->error.message);
}

void open_client(struct fixture *f)
{
    cadre_client_options o = options_of(f);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    open_with(f, &o);
}

cadre_client_request request_of(const char *method)
{
    cadre_client_request r;
    cadre_client_request_init(&r, method);
    r.timeout_ms = PATIENCE_MS;
    return r;
}

// The result of a blocking call, as text; an error as "CODE message".
const char *call(struct fixture *f, const cadre_client_request *r)
{
    static char text[2048];
    cadre_client_json result = {NULL, 0};
    cadre_client_code code = cadre_client_call(f->client, r, &result, &f->error);
    if (code == CADRE_CLIENT_OK)
        snprintf(text, sizeof text, "%.*s", (int)(result.len > 1000 ? 1000 : result.len), result.text);
    else
        snprintf(text, sizeof text, "%s %s", cadre_client_code_name(code), f->error.message);
    return text;
}

const char *call_method(struct fixture *f, const char *method, const char *args)
{
    cadre_client_request r = request_of(method);
    if (args)
        r.args = (cadre_client_json){args, strlen(args)};
    return call(f, &r);
}

static void on_done(void *ctx, const cadre_client_answer *a)
{
    struct outcome *o = ctx;
    o->n++;
    o->id = a->id;
    if (a->error) {
        o->code = a->error->code;
        o->error = *a->error;
    }
    if (a->result.text)
        snprintf(o->text, sizeof o->text, "%.*s", (int)(a->result.len > 255 ? 255 : a->result.len), a->result.text);
    else
        snprintf(o->text, sizeof o->text, "%.255s", a->error->message);
    if (o->to_cancel)
        cadre_client_cancel(o->f->client, o->to_cancel);
}

uint64_t start(struct fixture *f, cadre_client_request r, struct outcome *o)
{
    uint64_t id = 0;
    r.done = on_done;
    r.ctx = o;
    if (cadre_client_start(f->client, &r, &id, &f->error) != CADRE_CLIENT_OK)
        fail_msg("%s", f->error.message);
    return id;
}

uint64_t start_method(struct fixture *f, const char *method, struct outcome *o)
{
    return start(f, request_of(method), o);
}

void wait_for(struct fixture *f, const struct outcome *o)
{
    while (!o->n)
        cadre_client_wait(f->client, PATIENCE_MS);
    assert_int_equal(o->n, 1);
}

void turn_a_little(struct fixture *f)
{
    cadre_client_process(f->client);
    poll(NULL, 0, 5);
}

void until_saw(struct fixture *f, const char *text, size_t n)
{
    TURN_UNTIL(turn_a_little(f), sdk_proxy_saw(&f->proxy, text) >= n, text);
}
