// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/vault.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/identity/keys.h"
#include "operator/kube/inquiry.h"

#include <stdlib.h>
#include <string.h>

enum {
    REREAD_MS = 60 * 60 * 1000, // certificates are renewed days before they expire
    RETRY_MS = 1000,
    RETRY_MAX_MS = 5 * 1000,
    REQUEST_TIMEOUT_MS = 10 * 1000,
    PATIENCE_LOOKS = 3, // reads until another replica that remembers the keys has restored them
    TELL_AGAIN_MS = 60 * 1000,
    STOP_MS = 8 * 1000,
    STOP_RETRY_MS = 100,
    FORMER_MAX = 4,
};

struct vault {
    struct loop *loop;
    struct kube_client *client;
    struct vault_options options;
    struct arena texts; // strings of the options
    struct loop_timer *timer;
    struct inquiry *inquiry;
    struct rand rand;
    int failures; // in a row
    struct err told;
    int64_t told_ms;
    int64_t patient_since_ms; // 0: the vault does not wait for another replica
    int64_t stop_by_ms;       // 0: the vault is not stopping
    bool again;               // vault_look() was called while an inquiry was under way
    bool stopped;
    // Keys in use:
    struct arena kept;
    struct keys keys;
    struct vault_keys shown;
    uint8_t former[FORMER_MAX][INSTALL_KEY_SIZE];
    char *metadata; // of the Secret, from the last read
    // Keys that are being written to the Secret:
    struct arena draft;
    struct keys found, drafted;
    bool created;
};

static const struct keys *memory_of(const struct vault *v)
{
    return v->shown.install ? &v->keys : NULL;
}

static void wait_ms(struct vault *v, int64_t ms)
{
    loop_timer_arm(v->timer, ms);
}

static void next_look(struct vault *v)
{
    v->failures = 0;
    if (v->stop_by_ms)
        v->stopped = true;
    else
        wait_ms(v, v->again ? 0 : rand_range(&v->rand, v->options.reread_ms * 9 / 10, v->options.reread_ms * 11 / 10));
}

static int64_t retry_max_ms(const struct vault *v)
{
    return MIN(v->options.reread_ms, RETRY_MAX_MS);
}

static void next_try(struct vault *v)
{
    int64_t ms = v->options.retry_ms;
    for (int i = 0; i < v->failures && ms < retry_max_ms(v); i++)
        ms *= 2;
    v->failures++;
    ms = MIN(ms, v->stop_by_ms ? STOP_RETRY_MS : retry_max_ms(v));
    wait_ms(v, rand_range(&v->rand, ms / 2, ms));
}

// --- what there is to say

static void tell(struct vault *v, const struct err *err)
{
    bool again = v->told.code == err->code && str_eq(v->told.msg, err->msg);
    if (again && loop_now_ms(v->loop) < v->told_ms + TELL_AGAIN_MS)
        return;
    v->told = *err;
    v->told_ms = loop_now_ms(v->loop);
    if (v->options.on_error)
        v->options.on_error(v->options.ctx, err);
}

static void tell_error(struct vault *v, const struct err *why, const char *verb)
{
    const struct vault_options *o = &v->options;
    struct err err = *why;
    if (why->code == ERR_FORBIDDEN)
        err_set(&err, why->code,
                "the operator may not %s the Secret %s/%s%s: its Role there needs get, list, watch, patch and create "
                "on secrets with "
                "resourceNames [%s], see the chart's rbac, or create it yourself: kubectl create secret generic %s -n "
                "%s (%.200s)",
                verb, o->ns, o->name, memory_of(v) ? ", and continues with the keys that it remembers" : "", o->name,
                o->name, o->ns, why->msg);
    else
        err_wrap(&err, "the Secret %s/%s", o->ns, o->name);
    arena_done(&v->draft);
    next_try(v);
    tell(v, &err);
}

static void tell_filled(struct vault *v)
{
    const struct vault_options *o = &v->options;
    struct arena *a = &v->draft;
    const char *back = memory_of(v) ? keys_put_back(&v->found, &v->keys, &v->drafted, a) : NULL, *what = NULL;
    if (back && v->created)
        what =
            arena_printf(a, "somebody deleted the Secret %s/%s: it is back, with the keys that the operator remembers",
                         o->ns, o->name);
    else if (back)
        what = arena_printf(a, "the Secret %s/%s lacked %s: the operator put back what it remembers", o->ns, o->name,
                            back);
    else if (!keys_trusted(&v->found))
        what = arena_printf(a, "the Secret %s/%s had no keys: the operator made new keys", o->ns, o->name);
    if (what && o->on_filled)
        o->on_filled(o->ctx, what);
}

// --- the keys

static void remember_former(struct vault *v)
{
    size_t n = 0;
    uint8_t former[FORMER_MAX][INSTALL_KEY_SIZE];
    memcpy(former[n++], v->keys.install, INSTALL_KEY_SIZE);
    for (size_t i = 0; i < v->shown.n_former && n < FORMER_MAX; i++)
        if (memcmp(v->former[i], v->drafted.install, INSTALL_KEY_SIZE) != 0)
            memcpy(former[n++], v->former[i], INSTALL_KEY_SIZE);
    memcpy(v->former, former, sizeof former);
    explicit_bzero(former, sizeof former);
    v->shown.n_former = n;
}

static void show(struct vault *v)
{
    v->shown = (struct vault_keys){
        .install = v->keys.install,
        .ca_pem = v->keys.ca_cert,
        .cert_pem = v->keys.cert,
        .key_pem = v->keys.key,
        .id = keys_id(&v->keys, &v->kept),
        .former = v->former,
        .n_former = v->shown.n_former,
    };
    if (v->options.on_keys)
        v->options.on_keys(v->options.ctx, &v->shown);
}

// The Secret now has the content of the draft, or had it before.
static void adopt(struct vault *v)
{
    v->told = ERR_INIT;
    v->patient_since_ms = 0;
    next_look(v);
    if (v->stopped || keys_equal(&v->keys, &v->drafted)) {
        arena_done(&v->draft);
        return;
    }
    if (memory_of(v) && memcmp(v->keys.install, v->drafted.install, INSTALL_KEY_SIZE) != 0)
        remember_former(v);
    arena_done(&v->kept);
    v->kept = v->draft;
    v->draft = ARENA_INIT;
    v->keys = v->drafted;
    show(v);
}

// --- the Secret

static void on_written(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct vault *v = ctx;
    (void)response;
    v->inquiry = NULL;
    if (err->code == ERR_CONFLICT) { // another replica was first, and its keys are as good
        arena_done(&v->draft);
        wait_ms(v, rand_range(&v->rand, 0, v->options.retry_ms / 4));
    } else if (err->code) {
        tell_error(v, err, "write");
    } else {
        tell_filled(v);
        adopt(v);
    }
}

static void write_draft(struct vault *v, const char *patch)
{
    struct kube_request r = {
        .verb = VERB_PATCH_MERGE,
        .kind = KIND_SECRET,
        .ns = v->options.ns,
        .name = v->options.name,
        .body = patch,
    };
    v->inquiry = inquiry_send(v->client, &r, REQUEST_TIMEOUT_MS, on_written, v);
}

// Pods do not trust new keys, so a replica that remembers the former keys goes first.
static bool waits_for_others(struct vault *v)
{
    const struct vault_options *o = &v->options;
    struct err err = ERR_INIT;
    if (memory_of(v) || !o->trusted || !o->trusted(o->ctx))
        return false;
    if (!v->patient_since_ms)
        v->patient_since_ms = loop_now_ms(v->loop);
    int64_t waited_ms = loop_now_ms(v->loop) - v->patient_since_ms;
    int64_t patience_ms = PATIENCE_LOOKS * retry_max_ms(v);
    if (waited_ms >= patience_ms)
        return false;
    arena_done(&v->draft);
    wait_ms(v, rand_range(&v->rand, o->retry_ms / 4, o->retry_ms / 2));
    if (waited_ms < o->retry_ms) // the list of pods may not be read yet
        return true;
    err_set(&err, ERR_UNAVAILABLE,
            "the Secret %s/%s has no keys, and pods may trust former keys: the operator makes new keys unless another "
            "replica puts the former keys back within %d s",
            o->ns, o->name, (int)(patience_ms / 1000));
    tell(v, &err);
    return true;
}

static void take_secret(struct vault *v, const struct kube_response *response)
{
    struct err err = ERR_INIT;
    const char *patch = NULL;
    int64_t wall_ms = loop_wall_ms(v->loop);
    int r = keys_decode(response->body, response->len, &v->draft, &v->found, &err);
    if (r == 0) {
        free(v->metadata);
        v->metadata = xstrdup(v->found.metadata);
        r = keys_complete(&v->found, memory_of(v), v->options.names, wall_ms, &v->draft, &v->drafted, &patch, &err);
    }
    if (r < 0)
        tell_error(v, &err, "read");
    else if (!patch)
        adopt(v);
    else if (keys_trusted(&v->found) || !waits_for_others(v))
        write_draft(v, patch);
}

static void on_created(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct vault *v = ctx;
    v->inquiry = NULL;
    v->created = !err->code;
    if (err->code)
        tell_error(v, err, "create");
    else
        take_secret(v, response);
}

// Creates the Secret empty, then fills it like an existing one. If two replicas do this, only one writes its keys.
static void create_secret(struct vault *v)
{
    struct kube_request r = {
        .verb = VERB_APPLY,
        .kind = KIND_SECRET,
        .ns = v->options.ns,
        .name = v->options.name,
        .body = keys_secret(v->options.name, v->metadata, &v->draft),
    };
    if (!waits_for_others(v))
        v->inquiry = inquiry_send(v->client, &r, REQUEST_TIMEOUT_MS, on_created, v);
}

static void on_read(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct vault *v = ctx;
    v->inquiry = NULL;
    if (err->code == ERR_NOT_FOUND)
        create_secret(v);
    else if (err->code)
        tell_error(v, err, "read");
    else
        take_secret(v, response);
}

static void on_timer(void *ctx)
{
    struct vault *v = ctx;
    struct kube_request r = {.verb = VERB_GET, .kind = KIND_SECRET, .ns = v->options.ns, .name = v->options.name};
    v->created = v->again = false;
    v->inquiry = inquiry_send(v->client, &r, REQUEST_TIMEOUT_MS, on_read, v);
}

void vault_stop(struct vault *v)
{
    if (v->stop_by_ms)
        return;
    v->stop_by_ms = loop_now_ms(v->loop) + v->options.stop_ms;
    v->stopped = !memory_of(v);
    inquiry_drop(TAKE_PTR(v->inquiry));
    arena_done(&v->draft);
    loop_timer_disarm(v->timer);
    if (!v->stopped)
        wait_ms(v, 0);
}

bool vault_idle(const struct vault *v)
{
    return v->stopped || loop_now_ms(v->loop) >= v->stop_by_ms;
}

// --- its life

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
    if (!v->options.stop_ms)
        v->options.stop_ms = STOP_MS;
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
    free(v->metadata);
    explicit_bzero(v->former, sizeof v->former);
    explicit_bzero(&v->keys, sizeof v->keys);
    explicit_bzero(&v->found, sizeof v->found);
    explicit_bzero(&v->drafted, sizeof v->drafted);
    free(v);
}

void vault_look(struct vault *v)
{
    if (v->inquiry)
        v->again = true;
    else if (!v->stopped)
        wait_ms(v, 0);
}

void vault_retry_now(struct vault *v)
{
    if (v->failures && !v->inquiry)
        wait_ms(v, 0);
}

const struct vault_keys *vault_get_keys(const struct vault *v)
{
    return v->shown.install ? &v->shown : NULL;
}
