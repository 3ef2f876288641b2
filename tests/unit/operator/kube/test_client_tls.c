// SPDX-License-Identifier: Apache-2.0
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "common/base/mem.h"
#include "tests/unit/support/kube_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct kube_fixture *f;
static struct answer a;

static int setup(void **state)
{
    (void)state;
    f = fixture_new(true);
    fakeapi_rule(f->api, &(struct fakeapi_rule){.body = "{}"});
    a = ANSWER_INIT;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_free(f);
    answer_done(&a);
    return 0;
}

static void assert_answer(int code, const char *part)
{
    send_get(f, "a", 0, &a);
    assert_true(answer_wait(f, &a));
    assert_string_equal(err_name(a.err.code), err_name(code));
    if (!strstr(a.err.msg, part))
        fail_msg("\"%s\" does not say \"%s\"", a.err.msg, part);
}

static void assert_refused(const char *part)
{
    struct err err = ERR_INIT;
    struct kube_client *c = NULL;
    assert_string_equal(err_name(kube_client_new(f->loop, &f->config, NULL, &c, &err)), "INVALID");
    assert_null(c);
    if (!strstr(err.msg, part) || !strstr(err.msg, "kubeconfig /etc/test.conf, context test: "))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
}

static void a_server_signed_by_the_authority_is_trusted(void **state)
{
    (void)state;
    f->config.cert_pem = f->certs.client_cert;
    f->config.key_pem = f->certs.client_key;
    assert_answer(0, "");
}

static char *write_temp(const char *text)
{
    char *path = xstrdup("/tmp/cadre-pem-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void certificates_may_be_files(void **state)
{
    (void)state;
    char *ca = write_temp(f->certs.ca), *cert = write_temp(f->certs.client_cert),
         *key = write_temp(f->certs.client_key);
    f->config.ca_pem = NULL;
    f->config.ca_file = ca;
    f->config.cert_file = cert;
    f->config.key_file = key;
    assert_answer(0, "");
    char *files[] = {ca, cert, key};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        unlink(files[i]);
        free(files[i]);
    }
}

static void a_server_of_another_authority_is_not_trusted(void **state)
{
    (void)state;
    f->config.ca_pem = f->certs.other_ca;
    assert_answer(ERR_IO, "the certificate of https://127.0.0.1:");
    assert_non_null(strstr(a.err.msg, "does certificate-authority belong to this cluster?"));
}

static void nor_is_one_that_only_the_system_could_vouch_for(void **state)
{
    (void)state;
    f->config.ca_pem = NULL;
    assert_answer(ERR_IO, "cannot be trusted");
}

static void unless_nobody_wants_to_know(void **state)
{
    (void)state;
    f->config.ca_pem = NULL;
    f->config.insecure = true;
    assert_answer(0, "");
}

static void tls_server_name_is_what_the_certificate_has_to_say(void **state)
{
    (void)state;
    f->config.tls_server_name = "kubernetes";
    assert_answer(0, "");
}

static void another_tls_server_name_is_refused(void **state)
{
    (void)state;
    f->config.tls_server_name = "elsewhere";
    assert_answer(ERR_IO, "elsewhere");
    assert_non_null(strstr(a.err.msg, "cannot be trusted"));
}

static void plain_http_behind_https_is_named(void **state)
{
    (void)state;
    struct fakeapi *plain = fakeapi_new(f->loop, NULL);
    char url[64];
    snprintf(url, sizeof url, "https%s", fakeapi_url(plain) + strlen("http"));
    f->config.server = url;
    assert_answer(ERR_IO, "does not speak TLS; is it an http:// address?");
    kube_client_free(TAKE_PTR(f->client));
    fakeapi_free(plain);
}

static void an_expired_client_certificate_is_found_before_it_is_used(void **state)
{
    (void)state;
    f->config.cert_pem = f->certs.expired_cert;
    f->config.key_pem = f->certs.client_key;
    assert_refused("client certificate expired on 2020-01-02 03:04:05 UTC; get a new one");
    f->config.cert_pem = f->certs.future_cert;
    assert_refused("client certificate is not valid before 2999-01-01 00:00:00 UTC; is the clock right?");
}

static void one_that_expires_later_is_named_when_it_is_refused(void **state)
{
    (void)state;
    f->config.cert_pem = f->certs.client_cert;
    f->config.key_pem = f->certs.client_key;
    fakeapi_rules_clear(f->api);
    fakeapi_rule(f->api, &(struct fakeapi_rule){.status = 401, .body = "{\"message\":\"Unauthorized\"}"});
    assert_answer(ERR_UNAUTHORIZED, "credentials of kubeconfig /etc/test.conf, context test; have they expired?");
    answer_done(&a);
    f->config.cert_pem = f->certs.expired_cert; // as if time had passed
    assert_answer(ERR_UNAUTHORIZED, "context test; client certificate expired on 2020-01-02 03:04:05 UTC");
}

static void a_key_has_to_belong_to_its_certificate(void **state)
{
    (void)state;
    f->config.cert_pem = f->certs.client_cert;
    f->config.key_pem = f->certs.other_key;
    assert_refused("client key does not belong to the client certificate");
    f->config.key_pem = NULL;
    assert_refused("a client certificate is given without its key");
    f->config.cert_pem = NULL;
    f->config.key_pem = f->certs.client_key;
    assert_refused("a client key is given without its certificate");
}

static void what_is_not_pem_is_named(void **state)
{
    (void)state;
    f->config.cert_pem = "hello";
    f->config.key_pem = f->certs.client_key;
    assert_refused("client certificate is not a certificate in PEM form");
    f->config.cert_pem = f->certs.client_cert;
    f->config.key_pem = "hello";
    assert_refused("client key holds no private key in PEM form");
    f->config.key_pem = f->certs.encrypted_key;
    assert_refused("client key is encrypted, which is not supported; store it without a passphrase");
    f->config.ca_pem = "hello";
    assert_refused("certificate authority holds no certificate in PEM form");
    f->config.ca_pem = f->certs.expired_cert;
    assert_refused("certificate authority expired on 2020-01-02 03:04:05 UTC");
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    f->config.ca_pem = NULL;
    f->config.ca_file = "/nowhere/ca.crt";
    assert_refused("certificate authority: cannot read /nowhere/ca.crt: No such file or directory");
    char *empty = write_temp("");
    f->config.ca_file = empty;
    assert_refused(" holds no certificate in PEM form");
    unlink(empty);
    free(empty);
}

static void one_good_authority_of_a_bundle_is_enough(void **state)
{
    (void)state;
    char *bundle = xasprintf("%s%s%s", f->certs.expired_cert, f->certs.other_ca, f->certs.ca);
    f->config.ca_pem = bundle;
    assert_answer(0, "");
    kube_client_free(TAKE_PTR(f->client));
    free(bundle);
}

static void a_watch_and_requests_work_over_tls(void **state)
{
    (void)state;
    struct answer stream = ANSWER_INIT;
    fakeapi_rules_clear(f->api);
    fakeapi_rule(f->api, &(struct fakeapi_rule){.target = "watch", .body = "{\"a\":1}\n", .split = 1});
    fakeapi_rule(f->api, &(struct fakeapi_rule){.body = "{}"});
    send_watch(f, 0, &stream);
    assert_answer(0, "");
    assert_true(answer_wait(f, &stream));
    assert_int_equal(stream.err.code, 0);
    assert_string_equal(stream.body.data, "{\"a\":1}\n");
    answer_done(&stream);
}

static void new_connections_go_on_with_the_tls_session_of_an_earlier_one(void **state)
{
    (void)state;
    struct answer b = ANSWER_INIT;
    f->config.cert_pem = f->certs.client_cert;
    f->config.key_pem = f->certs.client_key;
    assert_answer(0, "");
    answer_done(&a);
    fakeapi_close_idle(f->api);
    send_get(f, "b", 0, &b);
    assert_answer(0, "");
    assert_true(answer_wait(f, &b));
    answer_done(&b);
    assert_int_equal(fakeapi_connections(f->api), 3);
    assert_false(fakeapi_at(f->api, 0)->resumed);
    assert_true(fakeapi_at(f->api, 1)->resumed);
    assert_true(fakeapi_at(f->api, 2)->resumed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_server_signed_by_the_authority_is_trusted),
        TEST(certificates_may_be_files),
        TEST(a_server_of_another_authority_is_not_trusted),
        TEST(nor_is_one_that_only_the_system_could_vouch_for),
        TEST(unless_nobody_wants_to_know),
        TEST(tls_server_name_is_what_the_certificate_has_to_say),
        TEST(another_tls_server_name_is_refused),
        TEST(plain_http_behind_https_is_named),
        TEST(an_expired_client_certificate_is_found_before_it_is_used),
        TEST(one_that_expires_later_is_named_when_it_is_refused),
        TEST(a_key_has_to_belong_to_its_certificate),
        TEST(what_is_not_pem_is_named),
        TEST(a_file_that_is_not_there_is_named),
        TEST(one_good_authority_of_a_bundle_is_enough),
        TEST(a_watch_and_requests_work_over_tls),
        TEST(new_connections_go_on_with_the_tls_session_of_an_earlier_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
