// SPDX-License-Identifier: Apache-2.0
// TLS between our client and the server: certificates and names.
#include "tests/unit/common/ws/ws_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void messages_come_back_over_tls(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct ws_tls *tls = ws_tls_new(certs.ca, &err);
    ws_fixture_listen(&f, "127.0.0.1:0", true);
    open_peer(&(struct ws_client_config){.tls = tls});
    echo_both_kinds();
    ws_tls_unref(tls);
}

static void an_untrusted_server_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct ws_tls *other = ws_tls_new(certs.other_ca, &err), *right = ws_tls_new(certs.ca, &err);
    ws_fixture_listen(&f, "127.0.0.1:0", true);
    ws_peer_start(&p, &f, &(struct ws_client_config){.tls = other});
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(p.err.msg, "not trusted"));
    ws_peer_stop(&p);
    ws_peer_start(&p, &f, &(struct ws_client_config){.tls = right, .server_name = "somebody.else"});
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(p.err.msg, "name"));
    ws_peer_stop(&p);
    open_peer(&(struct ws_client_config){.tls = right, .server_name = "kubernetes"});
    ws_tls_unref(other);
    ws_tls_unref(right);
}

static void a_new_certificate_serves_new_connections(void **state)
{
    (void)state;
    struct certs fresh;
    struct err err = ERR_INIT;
    struct ws_peer second = {0};
    certs_make(&fresh);
    struct ws_tls *old_ca = ws_tls_new(certs.ca, &err), *new_ca = ws_tls_new(fresh.ca, &err);
    ws_fixture_listen(&f, "127.0.0.1:0", true);
    open_peer(&(struct ws_client_config){.tls = old_ca});
    assert_int_equal(ws_server_certificate(f.server, fresh.server_cert, certs.server_key, &err), ERR_INVALID);
    assert_int_equal(ws_server_certificate(f.server, "nonsense", certs.server_key, &err), ERR_INVALID);
    assert_int_equal(ws_server_certificate(f.server, fresh.server_cert, fresh.server_key, &err), 0);
    ws_peer_start(&second, &f, &(struct ws_client_config){.tls = new_ca});
    WS_UNTIL(&f, second.opened || second.closed);
    assert_string_equal(second.err.msg, "");
    echo_both_kinds(); // the old connection lives on
    ws_peer_stop(&second);
    ws_tls_unref(old_ca);
    ws_tls_unref(new_ca);
    certs_done(&fresh);
}

static void a_ca_that_is_none_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_null(ws_tls_new("", &err));
    assert_null(ws_tls_new("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &err));
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WS_TEST(messages_come_back_over_tls),
        WS_TEST(an_untrusted_server_is_refused),
        WS_TEST(a_new_certificate_serves_new_connections),
        WS_TEST(a_ca_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, world_setup_all, world_teardown_all);
}
