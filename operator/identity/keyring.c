// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/keyring.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "operator/identity/jwt.h"
#include "operator/kube/inquiry.h"

#include <stdlib.h>

enum {
    REFRESH_MS = 60 * 60 * 1000,
    RETRY_MS = 1000,
    RETRY_MAX_MS = 5 * 1000, // no agent is admitted until then
    GAP_MS = 10 * 1000,
    REQUEST_TIMEOUT_MS = 10 * 1000,
};

struct keyring {
    struct loop *loop;
    struct kube_client *client;
    struct keyring_options options;
    char *audience;
    struct jwks *keys; // NULL: none yet
    struct loop_timer *timer;
    struct inquiry *inquiry;
    struct rand rand;
    int64_t asked_ms; // mono, when the last request went out
    int failures;     // in a row
    struct err why;   // the last failure
};

static void keyring_failed(struct keyring *k, const struct err *why)
{
    const struct keyring_options *o = &k->options;
    int64_t ms = o->retry_ms;
    for (int i = 0; i < k->failures && ms < o->retry_max_ms; i++)
        ms *= 2;
    ms = MIN(ms, o->retry_max_ms);
    k->failures++;
    k->why = *why;
    if (why->code == ERR_FORBIDDEN)
        err_set(&k->why, why->code,
                "%.500s: the operator needs get on /openid/v1/jwks, which the ClusterRole "
                "system:service-account-issuer-discovery gives (see the chart's rbac)",
                why->msg);
    loop_timer_arm(k->timer, rand_range(&k->rand, ms / 2, ms));
    if (o->on_error)
        o->on_error(o->ctx, &k->why);
}

static void on_keys(void *ctx, const struct kube_response *response, const struct err *answer)
{
    struct keyring *k = ctx;
    struct jwks *found = NULL;
    struct err err = *answer;
    k->inquiry = NULL;
    if (!err.code && jwks_parse(response->body, response->len, &found, &err) < 0)
        err_wrap(&err, "GET /openid/v1/jwks");
    if (err.code) {
        keyring_failed(k, &err);
        return;
    }
    jwks_free(k->keys);
    k->keys = found;
    k->failures = 0;
    loop_timer_arm(k->timer, rand_range(&k->rand, k->options.refresh_ms * 9 / 10, k->options.refresh_ms));
}

static void keyring_ask(void *ctx)
{
    struct keyring *k = ctx;
    if (k->inquiry)
        return;
    k->asked_ms = loop_now_ms(k->loop);
    k->inquiry = inquiry_get_path(k->client, "/openid/v1/jwks", REQUEST_TIMEOUT_MS, on_keys, k);
}

struct keyring *keyring_new(struct loop *loop, struct kube_client *client, const struct keyring_options *options)
{
    struct keyring *k = xcalloc(1, sizeof *k);
    struct keyring_options *o = &k->options;
    k->loop = loop;
    k->client = client;
    *o = *options;
    k->audience = xstrdup(options->audience);
    o->refresh_ms = o->refresh_ms ? o->refresh_ms : REFRESH_MS;
    o->retry_ms = o->retry_ms ? o->retry_ms : RETRY_MS;
    o->retry_max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS;
    o->gap_ms = o->gap_ms ? o->gap_ms : GAP_MS;
    rand_seed(&k->rand, options->seed);
    k->timer = loop_timer_new(loop, keyring_ask, k);
    loop_timer_arm(k->timer, 0);
    return k;
}

void keyring_free(struct keyring *k)
{
    if (!k)
        return;
    inquiry_drop(k->inquiry);
    loop_timer_free(k->timer);
    jwks_free(k->keys);
    free(k->audience);
    free(k);
}

void keyring_retry_now(struct keyring *k)
{
    if (k->failures && !k->inquiry)
        loop_timer_arm(k->timer, 0);
}

// The key is newer than the keyring, or is not of this cluster. Only new keys from the API server can tell. The keyring
// asks for them at most once in gap_ms.
static int unknown_key(struct keyring *k, struct err *err)
{
    if (!k->inquiry && loop_now_ms(k->loop) - k->asked_ms >= k->options.gap_ms)
        keyring_ask(k);
    else if (!k->inquiry && !k->failures)
        return err_set(err, ERR_UNAUTHORIZED, "%.600s", err->msg);
    return err_set(err, ERR_UNAVAILABLE,
                   "%.600s with the keys that are known; the operator is asking the API server for new ones: try again",
                   err->msg);
}

int keyring_pod(struct keyring *k, const char *token, struct arena *a, struct pod_claims *ret, struct err *err)
{
    if (!k->keys)
        return err_set(err, ERR_UNAVAILABLE,
                       "the keys that sign this cluster's tokens have not been read yet: try again%s%.400s",
                       k->failures ? "; " : "", k->failures ? k->why.msg : "");
    const struct jwt_rules rules = {.audience = k->audience, .now_ms = loop_wall_ms(k->loop)};
    int r = jwt_verify(k->keys, token, &rules, a, ret, err);
    return r == ERR_NOT_FOUND ? unknown_key(k, err) : r;
}

int keyring_check(const struct keyring *k, const char *token, struct err *err)
{
    const struct jwt_rules rules = {.audience = k->audience, .now_ms = loop_wall_ms(k->loop)};
    return k->keys ? jwt_check(k->keys, token, &rules, err)
                   : err_set(err, ERR_NOT_FOUND, "the keys that sign this cluster's tokens have not been read yet");
}
