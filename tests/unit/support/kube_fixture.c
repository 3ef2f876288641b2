// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/kube_fixture.h"

#include "common/base/mem.h"
#include "tests/unit/support/patience.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <string.h>

struct kube_fixture *fixture_new(bool tls)
{
    struct kube_fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    if (tls)
        certs_make(&f->certs);
    f->api = fakeapi_new(f->loop, tls ? &f->certs : NULL);
    f->config = (struct kube_config){
        .source = "kubeconfig /etc/test.conf, context test",
        .server = fakeapi_url(f->api),
        .ns = "default",
        .ca_pem = f->certs.ca,
    };
    return f;
}

struct kube_client *fixture_client(struct kube_fixture *f)
{
    struct err err = ERR_INIT;
    if (!f->client && kube_client_new(f->loop, &f->config, &f->options, &f->client, &err) < 0)
        abort();
    return f->client;
}

void fixture_free(struct kube_fixture *f)
{
    kube_client_free(f->client);
    fakeapi_free(f->api);
    loop_free(f->loop);
    certs_done(&f->certs);
    free(f);
}

void answer_done(struct answer *a)
{
    buf_done(&a->body);
    *a = ANSWER_INIT;
}

void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct answer *a = ctx;
    a->calls++;
    a->err = *err;
    if (response) {
        a->status = response->http_status;
        (void)buf_append(&a->body, response->body, response->len);
    }
}

static void on_data(void *ctx, const char *bytes, size_t n)
{
    struct answer *a = ctx;
    a->pieces++;
    (void)buf_append(&a->body, bytes, n);
}

static void on_end(void *ctx, const struct err *err)
{
    on_answer(ctx, NULL, err);
}

const struct kube_stream_ops answer_stream = {on_data, on_end};

uint64_t send_get(struct kube_fixture *f, const char *name, int64_t timeout_ms, struct answer *a)
{
    const struct kube_request r = {.verb = VERB_GET, .kind = KIND_POD, .ns = "ml", .name = name};
    return kube_send(fixture_client(f), &r, timeout_ms, on_answer, a);
}

uint64_t send_create(struct kube_fixture *f, const char *body, struct answer *a)
{
    const struct kube_request r = {
        .verb = VERB_CREATE, .kind = KIND_POD, .ns = "ml", .name = "llama-0-1", .body = body};
    return kube_send(fixture_client(f), &r, 0, on_answer, a);
}

uint64_t send_watch(struct kube_fixture *f, int64_t idle_ms, struct answer *a)
{
    const struct kube_request r = {.verb = VERB_WATCH, .kind = KIND_POD, .resource_version = "1", .bookmarks = true};
    return kube_stream(fixture_client(f), &r, idle_ms, &answer_stream, a);
}

void assert_message(const struct answer *a, int code, const char *part)
{
    assert_int_equal(a->calls, 1);
    assert_string_equal(err_name(a->err.code), err_name(code));
    if (!strstr(a->err.msg, part))
        fail_msg("\"%s\" does not say \"%s\"", a->err.msg, part);
}

static int64_t patience(struct kube_fixture *f)
{
    return loop_now_ms(f->loop) + PATIENCE_MS;
}

static bool turn_until(struct kube_fixture *f, int64_t end)
{
    loop_run_once(f->loop, 100);
    return loop_now_ms(f->loop) < end;
}

bool answer_wait(struct kube_fixture *f, const struct answer *a)
{
    int64_t end = patience(f);
    while (!a->calls && turn_until(f, end))
        ;
    return a->calls > 0;
}

bool fixture_wait_count(struct kube_fixture *f, int requests)
{
    int64_t end = patience(f);
    while (fakeapi_count(f->api) < requests && turn_until(f, end))
        ;
    return fakeapi_count(f->api) >= requests;
}

bool fixture_wait_streams(struct kube_fixture *f, int streams)
{
    int64_t end = patience(f);
    while (fakeapi_streams(f->api, NULL) < streams && turn_until(f, end))
        ;
    return fakeapi_streams(f->api, NULL) >= streams;
}

void fixture_turn(struct kube_fixture *f, int turns)
{
    while (turns-- > 0)
        loop_run_once(f->loop, 1);
}
