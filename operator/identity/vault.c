// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/vault.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/identity/inquiry.h"
#include "operator/identity/keys.h"

#include <stdlib.h>
#include <string.h>

enum { REREAD_MS = 60 * 1000, RETRY_MS = 1000, REQUEST_TIMEOUT_MS = 10 * 1000 };

struct vault {
    struct loop *loop;
    struct kube_client *client;
    struct vault_options options;
    struct arena texts; // of the options
    struct loop_timer *timer;
    struct inquiry *inquiry;
    struct rand rand;
    int failures; // in a row
    // In use:
    struct arena kept;
    struct keys keys;
    struct vault_keys shown;
    // On their way into the Secret:
    struct arena draft;
    struct keys drafted;
};

static void wait_ms(struct vault *v, int64_t ms)
{
    loop_timer_arm(v->timer, ms);
}

static void next_look(struct vault *v)
{
    v->failures = 0;
    wait_ms(v, rand_range(&v->rand, v->options.reread_ms * 9 / 10, v->options.reread_ms * 11 / 10));
}

static void next_try(struct vault *v)
{
    int64_t ms = v->options.retry_ms;
    for (int i = 0; i < v->failures && ms < v->options.reread_ms; i++)
        ms *= 2;
    v->failures++;
    ms = MIN(ms, v->options.reread_ms);
    wait_ms(v, rand_range(&v->rand, ms / 2, ms));
}

static void tell_error(struct vault *v, const struct err *why, const char *verb)
{
    const struct vault_options *o = &v->options;
    struct err err = *why;
    if (why->code == ERR_NOT_FOUND)
        err_set(&err, why->code,
                "the Secret %s/%s does not exist: the chart creates it empty and the operator fills it; without the "
                "chart: kubectl create secret generic %s -n %s",
                o->ns, o->name, o->name, o->ns);
    else if (why->code == ERR_FORBIDDEN)
        err_set(&err, why->code,
                "the operator may not %s the Secret %s/%s: its Role there needs get and patch on secrets with "
                "resourceNames [%s], see the chart's rbac (%.300s)",
                verb, o->ns, o->name, o->name, why->msg);
    else
        err_wrap(&err, "the Secret %s/%s", o->ns, o->name);
    next_try(v);
    if (o->on_error)
        o->on_error(o->ctx, &err);
}

static bool keys_equal(const struct keys *a, const struct keys *b)
{
    return a->has_install == b->has_install && memcmp(a->install, b->install, INSTALL_KEY_SIZE) == 0 &&
           str_eq(a->ca_cert, b->ca_cert) && str_eq(a->cert, b->cert) && str_eq(a->key, b->key);
}

// The draft has become the Secret's content, or always was.
static void adopt(struct vault *v)
{
    next_look(v);
    if (keys_equal(&v->keys, &v->drafted)) {
        arena_done(&v->draft);
        return;
    }
    arena_done(&v->kept);
    v->kept = v->draft;
    v->draft = ARENA_INIT;
    v->keys = v->drafted;
    v->shown = (struct vault_keys){v->keys.install, v->keys.ca_cert, v->keys.cert, v->keys.key};
    if (v->options.on_keys)
        v->options.on_keys(v->options.ctx, &v->shown);
}

static void on_written(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct vault *v = ctx;
    (void)response;
    v->inquiry = NULL;
    if (err->code == ERR_CONFLICT) { // another replica was first: its keys are as good
        arena_done(&v->draft);
        wait_ms(v, rand_range(&v->rand, 0, v->options.retry_ms / 4));
    } else if (err->code) {
        arena_done(&v->draft);
        tell_error(v, err, "write");
    } else {
        adopt(v);
    }
}

static void write_draft(struct vault *v, const char *patch)
{
    struct request r = {
        .verb = VERB_PATCH_MERGE,
        .kind = KIND_SECRET,
        .ns = v->options.ns,
        .name = v->options.name,
        .body = patch,
    };
    v->inquiry = inquiry_send(v->client, &r, REQUEST_TIMEOUT_MS, on_written, v);
}

static void on_read(void *ctx, const struct kube_response *response, const struct err *answer)
{
    struct vault *v = ctx;
    struct keys found;
    struct err err = *answer;
    const char *patch = NULL;
    int64_t now_ms = clock_wall_ms(loop_clock(v->loop));
    v->inquiry = NULL;
    int r = err.code ? err.code : keys_decode(response->body, response->len, &v->draft, &found, &err);
    if (r == 0)
        r = keys_complete(&found, v->options.names, now_ms, &v->draft, &v->drafted, &patch, &err);
    if (r < 0) {
        arena_done(&v->draft);
        tell_error(v, &err, "read");
    } else if (patch) {
        write_draft(v, patch);
    } else {
        adopt(v);
    }
}

static void on_timer(void *ctx)
{
    struct vault *v = ctx;
    struct request r = {.verb = VERB_GET, .kind = KIND_SECRET, .ns = v->options.ns, .name = v->options.name};
    v->inquiry = inquiry_send(v->client, &r, REQUEST_TIMEOUT_MS, on_read, v);
}

static void copy_texts(struct vault *v)
{
    struct vault_options *o = &v->options;
    const char **names = arena_array(&v->texts, o->names.n, sizeof *names);
    for (size_t i = 0; i < o->names.n; i++)
        names[i] = arena_strdup(&v->texts, o->names.items[i]);
    o->names.items = names;
    o->ns = arena_strdup(&v->texts, o->ns);
    o->name = arena_strdup(&v->texts, o->name);
}

struct vault *vault_new(struct loop *loop, struct kube_client *client, const struct vault_options *options)
{
    struct vault *v = xcalloc(1, sizeof *v);
    v->loop = loop;
    v->client = client;
    v->options = *options;
    copy_texts(v);
    if (!v->options.reread_ms)
        v->options.reread_ms = REREAD_MS;
    if (!v->options.retry_ms)
        v->options.retry_ms = RETRY_MS;
    rand_seed(&v->rand, options->seed);
    v->timer = loop_timer_new(loop, on_timer, v);
    wait_ms(v, 0);
    return v;
}

void vault_free(struct vault *v)
{
    if (!v)
        return;
    inquiry_drop(v->inquiry);
    loop_timer_free(v->timer);
    arena_done(&v->draft);
    arena_done(&v->kept);
    arena_done(&v->texts);
    explicit_bzero(&v->keys, sizeof v->keys);
    explicit_bzero(&v->drafted, sizeof v->drafted);
    free(v);
}

const struct vault_keys *vault_get_keys(const struct vault *v)
{
    return v->shown.install ? &v->shown : NULL;
}
