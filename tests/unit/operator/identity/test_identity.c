// SPDX-License-Identifier: Apache-2.0
// Tests the whole identity against a server: the requests, and how the parts work together.
#include "operator/identity/identity.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/operator/identity/issuer.h"
#include "tests/unit/support/kube_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define SECRET "/api/v1/namespaces/cadre-system/secrets/cadre-keys"
enum { TURNS_MAX = 2000 };

static struct {
    struct kube_fixture *f;
    struct identity *identity;
    struct authority authority;
    struct issuer_key key;
    struct arena a;
    const char *jwks, *secret, *last_patch;
    int keys, errors;
    // for a client
    int answers;
    struct err err;
    char user[64];
} t;

// A Secret that can be read and patched once. The tests need no more of an API server.
static bool serve_secret(const struct fakeapi_request *r, struct fakeapi_rule *ret)
{
    if (str_eq(r->method, "PATCH")) {
        struct json *root;
        struct err err = ERR_INIT;
        char *body = arena_strdup(&t.a, r->body);
        if (json_parse(body, strlen(body), NULL, &t.a, &root, &err) < 0)
            return false;
        const struct json *data = json_get(root, "data");
        t.last_patch = r->content_type ? arena_strdup(&t.a, r->content_type) : "";
        t.secret =
            arena_printf(&t.a, "{\"metadata\":{\"resourceVersion\":\"2\"},\"data\":%.*s}", (int)data->len, data->text);
    }
    ret->body = t.secret;
    return true;
}

static bool serve(void *ctx, const struct fakeapi_request *r, struct fakeapi_rule *ret)
{
    (void)ctx;
    if (str_eq(r->target, SECRET))
        return serve_secret(r, ret);
    // The real server answers with application/jwk-set+json, or 406 if the client does not accept it.
    if (str_eq(r->target, "/openid/v1/jwks") && str_eq(r->method, "GET") && strstr(r->accept, "*/*"))
        ret->body = t.jwks;
    else if (str_eq(r->target, "/apis/authentication.k8s.io/v1/tokenreviews"))
        ret->body = "{\"status\":{\"authenticated\":true,\"audiences\":[\"cadre\"],\"user\":{\"username\":\"anna\"}}}";
    else if (str_eq(r->target, "/apis/authorization.k8s.io/v1/subjectaccessreviews"))
        ret->body = strstr(r->body, "\"namespace\":\"ml\"") ? "{\"status\":{\"allowed\":true}}"
                                                            : "{\"status\":{\"allowed\":false}}";
    return ret->body != NULL;
}

static void on_keys(void *ctx, const struct vault_keys *keys)
{
    (void)ctx, (void)keys;
    t.keys++;
}

static void on_error(void *ctx, const struct err *err)
{
    (void)ctx;
    t.errors++;
    t.err = *err;
}

static void on_client(void *ctx, const struct client_user *who, int64_t expires_ms, const struct err *err)
{
    (void)ctx, (void)expires_ms;
    t.answers++;
    t.err = *err;
    snprintf(t.user, sizeof t.user, "%s", who && who->name ? who->name : "");
}

static int setup(void **state)
{
    (void)state;
    static const char *const dns[] = {"cadre-operator.cadre-system.svc", "localhost"};
    memset(&t, 0, sizeof t);
    t.f = fixture_new(false);
    t.key = issuer_key_new("k", "RS256");
    t.jwks = issuer_jwks(&t.key, 1, &t.a);
    t.secret = "{\"metadata\":{\"resourceVersion\":\"1\"}}";
    fakeapi_handler(t.f->api, serve, NULL);
    t.identity = identity_new(t.f->loop, fixture_client(t.f),
                              &(struct vault_options){.ns = "cadre-system",
                                                      .name = "cadre-keys",
                                                      .names = {dns, ARRAY_LEN(dns)},
                                                      .reread_ms = 20,
                                                      .on_keys = on_keys,
                                                      .on_error = on_error});
    t.authority = identity_authority(t.identity);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    identity_free(t.identity);
    fixture_free(t.f);
    EVP_PKEY_free(t.key.key);
    arena_done(&t.a);
    return 0;
}

// The keys of the install and of the cluster's tokens are there. So a text that is not a token is refused at once.
static bool ready(void)
{
    struct pod_claims pod;
    struct err err = ERR_INIT;
    return t.keys > 0 && t.authority.pod(t.authority.ctx, "token", &t.a, &pod, &err) != ERR_UNAVAILABLE;
}

static void wait_ready(void)
{
    for (int i = 0; i < TURNS_MAX && !ready(); i++)
        loop_run_once(t.f->loop, 100);
    assert_true(ready());
}

static void wait_keys(int times)
{
    while (t.keys < times)
        loop_run_once(t.f->loop, 100);
}

static void wait_answer(void)
{
    for (int i = 0; i < TURNS_MAX && !t.answers; i++)
        loop_run_once(t.f->loop, 100);
    assert_int_equal(t.answers, 1);
    t.answers = 0;
}

static void before_it_is_ready_all_are_asked_to_come_again(void **state)
{
    (void)state;
    struct pod_claims pod;
    struct ticket ticket = {.group_uid = "g"};
    const struct authority *who = &t.authority;
    assert_int_equal(who->pod(who->ctx, "token", &t.a, &pod, &t.err), ERR_UNAVAILABLE);
    assert_int_equal(who->ticket(who->ctx, "ticket", &ticket, &t.err), ERR_UNAVAILABLE);
    assert_null(who->ticket_text(who->ctx, &ticket, &t.a));
    assert_null(who->peer_secret(who->ctx, &ticket, &t.a));
}

static void the_secret_is_filled_by_a_merge_patch(void **state)
{
    (void)state;
    wait_ready();
    assert_int_equal(t.keys, 1);
    assert_int_equal(t.errors, 0);
    assert_string_equal(t.last_patch, "application/merge-patch+json");
}

static void pods_and_processes_are_known(void **state)
{
    (void)state;
    wait_ready();
    const struct authority *who = &t.authority;
    struct pod_claims pod;
    const char *token = issuer_token(&t.key, "[\"cadre\"]", 4000000000, &t.a);
    assert_int_equal(who->pod(who->ctx, token, &t.a, &pod, &t.err), 0);
    assert_string_equal(pod.ns, "ml");
    assert_string_equal(pod.pod, "llama-0-1");
    token = issuer_token(&t.key, "[\"vault\"]", 4000000000, &t.a);
    assert_int_equal(who->pod(who->ctx, token, &t.a, &pod, &t.err), ERR_UNAUTHORIZED);

    struct ticket given = {"group-uid", 2, 3, 4}, shown;
    const char *text = who->ticket_text(who->ctx, &given, &t.a);
    assert_int_equal(who->ticket(who->ctx, text, &shown, &t.err), 0);
    assert_string_equal(shown.group_uid, "group-uid");
    assert_int_equal(shown.rank, 3);
    assert_int_equal(who->ticket(who->ctx, "group-uid.2.3.4.x", &shown, &t.err), ERR_UNAUTHORIZED);
    assert_int_equal(strlen(who->peer_secret(who->ctx, &given, &t.a)), 64);
}

// They have tickets of the former key, and share secrets that were derived from it.
static void processes_go_on_when_the_install_key_changes(void **state)
{
    (void)state;
    wait_ready();
    const struct authority *who = &t.authority;
    struct ticket given = {"group-uid", 2, 3, 4}, shown;
    const char *before = who->ticket_text(who->ctx, &given, &t.a), *secret = who->peer_secret(who->ctx, &given, &t.a);
    // The first of two members with the same name counts.
    const char *data = strstr(t.secret, "\"data\":{") + strlen("\"data\":{");
    t.secret = arena_printf(&t.a, "%.*s\"install.key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\",%s",
                            (int)(data - t.secret), t.secret, data);
    wait_keys(2);
    assert_string_not_equal(who->ticket_text(who->ctx, &given, &t.a), before);
    assert_string_not_equal(who->peer_secret(who->ctx, &given, &t.a), secret);
    assert_int_equal(who->ticket(who->ctx, before, &shown, &t.err), 0);
    assert_int_equal(shown.former, 1);
    assert_string_equal(who->ticket_text(who->ctx, &shown, &t.a), before);
    assert_string_equal(who->peer_secret(who->ctx, &shown, &t.a), secret);
    assert_int_equal(who->ticket(who->ctx, "group-uid.2.3.4.x", &shown, &t.err), ERR_UNAUTHORIZED);
}

static void clients_are_asked_about(void **state)
{
    (void)state;
    const struct authority *who = &t.authority;
    assert_true(who->client(who->ctx, "token", "ml", on_client, NULL) != 0);
    wait_answer();
    assert_int_equal(t.err.code, 0);
    assert_string_equal(t.user, "anna");
    assert_true(who->client(who->ctx, "token", "prod", on_client, NULL) != 0);
    wait_answer();
    assert_int_equal(t.err.code, ERR_FORBIDDEN);
    uint64_t id = who->client(who->ctx, "token", "dev", on_client, NULL);
    who->cancel(who->ctx, id);
    wait_ready();
    assert_int_equal(t.answers, 0);
}

// This needs the keys of the cluster. Without them, the API server is asked about each token.
static void a_forged_token_is_refused_without_asking(void **state)
{
    (void)state;
    const struct authority *who = &t.authority;
    struct issuer_key forger = issuer_key_new("k", "RS256");
    const char *token = issuer_token(&forger, "[\"cadre\"]", 4000000000, &t.a);
    wait_ready();
    assert_int_equal(who->client(who->ctx, token, "ml", on_client, NULL), 0);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.err.code, ERR_UNAUTHORIZED);
    assert_non_null(strstr(t.err.msg, "its signature is wrong"));
    t.answers = 0;
    assert_true(who->client(who->ctx, issuer_token(&t.key, "[\"cadre\"]", 4000000000, &t.a), "ml", on_client, NULL) !=
                0);
    wait_answer();
    assert_int_equal(t.err.code, 0);
    EVP_PKEY_free(forger.key);
}

static void what_is_wrong_is_told(void **state)
{
    (void)state;
    t.secret = "{\"metadata\":{\"resourceVersion\":\"1\"},\"data\":{\"install.key\":\"eA==\"}}";
    for (int i = 0; i < TURNS_MAX && !t.errors; i++)
        loop_run_once(t.f->loop, 100);
    assert_non_null(strstr(t.err.msg, "the Secret cadre-system/cadre-keys: install.key has 1 bytes"));
    assert_false(ready());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(before_it_is_ready_all_are_asked_to_come_again),
        TEST(the_secret_is_filled_by_a_merge_patch),
        TEST(pods_and_processes_are_known),
        TEST(processes_go_on_when_the_install_key_changes),
        TEST(clients_are_asked_about),
        TEST(a_forged_token_is_refused_without_asking),
        TEST(what_is_wrong_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
