// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/ws/ws_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

struct ws_fixture f;
struct ws_peer p;
struct certs certs;

int world_setup_all(void **state)
{
    (void)state;
    certs_make(&certs);
    return 0;
}

int world_teardown_all(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

int world_setup(void **state)
{
    (void)state;
    p = (struct ws_peer){0};
    ws_fixture_start(&f, &(struct ws_server_config){
                             .cert_pem = certs.server_cert, .key_pem = certs.server_key, .max_message = 8 * MIB});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    return 0;
}

int world_teardown(void **state)
{
    (void)state;
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    return 0;
}

void world_restart(const struct ws_server_config *config, const char *address)
{
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    ws_fixture_start(&f, config);
    ws_fixture_listen(&f, address, false);
}

void open_peer(const struct ws_client_config *config)
{
    ws_peer_start(&p, &f, config);
    WS_UNTIL(&f, p.opened || p.closed);
    assert_string_equal(p.err.msg, "");
    WS_UNTIL(&f, f.session);
}

bool seen(const char *text)
{
    return strstr(buf_str(&f.trace), text) != NULL;
}

void echo_both_kinds(void)
{
    struct err err = ERR_INIT;
    ws_peer_send(&p, "grüße");
    assert_int_equal(ws_client_message(p.client, false, "\0\1", 2, &err), 0);
    ws_peer_send(&p, "");
    WS_UNTIL(&f, p.got.len >= 14);
    assert_int_equal(p.got.len, 14);
    assert_memory_equal(p.got.data, "grüße|b:\0\1||", 14);
}
