// SPDX-License-Identifier: Apache-2.0
#include "common/wire/handshake.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define KEY "dGhlIHNhbXBsZSBub25jZQ==" // RFC 6455, 1.3
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static void the_example_of_the_rfc_holds(void **state)
{
    (void)state;
    char key[HANDSHAKE_KEY_SIZE], accept[HANDSHAKE_ACCEPT_SIZE];
    handshake_key((const uint8_t *)"the sample nonce", key);
    assert_string_equal(key, KEY);
    handshake_accept(key, accept);
    assert_string_equal(accept, ACCEPT);
}

static void a_request_asks_for_what_was_said(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(HANDSHAKE_HEAD_MAX);
    struct err err = ERR_INIT;
    const struct handshake_header headers[] = {{"Authorization", "Bearer abc"}};
    const struct handshake_request request = {"op:8443", "/v1/calls?x=1", "cadre.v1, cadre.v1.json", headers, 1};
    assert_int_equal(handshake_request_write(&out, &request, KEY, &err), 0);
    assert_string_equal(buf_str(&out), "GET /v1/calls?x=1 HTTP/1.1\r\nHost: op:8443\r\nUpgrade: websocket\r\n"
                                       "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY
                                       "\r\nSec-WebSocket-Protocol: cadre.v1, cadre.v1.json\r\n"
                                       "Authorization: Bearer abc\r\n\r\n");
    buf_done(&out);
}

static void a_value_cannot_smuggle_in_a_header(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(HANDSHAKE_HEAD_MAX);
    struct err err = ERR_INIT;
    const struct handshake_header evil[] = {{"Authorization", "a\r\nX-Evil: 1"}};
    assert_int_equal(handshake_request_write(&out, &(struct handshake_request){"h", "/", NULL, evil, 1}, KEY, &err),
                     ERR_INVALID);
    assert_int_equal(
        handshake_request_write(&out, &(struct handshake_request){.host = "h", .path = "/ HTTP/1.1"}, KEY, &err),
        ERR_INVALID);
    assert_int_equal(handshake_request_write(&out, &(struct handshake_request){.host = "h", .path = ""}, KEY, &err),
                     ERR_INVALID);
    buf_done(&out);
}

static struct err answer(const char *text, const char *subprotocols, char protocol[HANDSHAKE_PROTOCOL_SIZE])
{
    struct err err = ERR_INIT;
    size_t head = handshake_head_len(text, strlen(text));
    assert_true(head > 0);
    int r = handshake_answer_check(text, head, text + head, strlen(text) - head, KEY, subprotocols, protocol, &err);
    assert_int_equal(r, err.code);
    return err;
}

#define SWITCH "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"

static void the_right_answer_is_accepted(void **state)
{
    (void)state;
    char protocol[HANDSHAKE_PROTOCOL_SIZE];
    assert_int_equal(answer(SWITCH UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n", NULL, protocol).code, 0);
    assert_string_equal(protocol, "");
    assert_int_equal(answer(SWITCH UPGRADE "sec-websocket-accept:" ACCEPT
                                           "  \r\nSec-WebSocket-Protocol: cadre.v1\r\n\r\n",
                            "x, cadre.v1", protocol)
                         .code,
                     0);
    assert_string_equal(protocol, "cadre.v1");
}

static void wrong_answers_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        SWITCH UPGRADE "\r\n",                                                    // no accept
        SWITCH UPGRADE "Sec-WebSocket-Accept: " KEY "\r\n\r\n",                   // another one
        SWITCH "Upgrade: websocket\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n",  // no Connection
        SWITCH "Connection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n", // no Upgrade
        SWITCH UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Protocol: evil\r\n\r\n",
        SWITCH UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Extensions: x\r\n\r\n",
        SWITCH UPGRADE "Sec-WebSocket-Accept: " ACCEPT "\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
        SWITCH UPGRADE " folded\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "\r\n\r\n",
    };
    char protocol[HANDSHAKE_PROTOCOL_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(answer(wrong[i], "cadre.v1", protocol).code, ERR_PROTO);
}

static void a_refusal_says_why_in_the_words_of_the_server(void **state)
{
    (void)state;
    char protocol[HANDSHAKE_PROTOCOL_SIZE];
    struct err err = answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nmay not!\n", NULL, protocol);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_int_equal(err.http_status, 403);
    assert_string_equal(err.msg, "the server refused with HTTP status 403: may not!");
    err = answer("HTTP/1.1 404 Not Found\r\n\r\n{\"kind\":\"Status\",\"message\":\"services \\\"x\\\" not found\"}\n",
                 NULL, protocol);
    assert_string_equal(err.msg, "the server refused with HTTP status 404: services \"x\" not found");
    err = answer("HTTP/1.1 404 Not Found\r\n\r\n{\"message\":", NULL, protocol);
    assert_string_equal(err.msg, "the server refused with HTTP status 404: {\"message\":");
    err = answer("HTTP/1.1 429 Slow\r\nRetry-After: 3\r\n\r\n", NULL, protocol);
    assert_int_equal(err.code, ERR_THROTTLED);
    assert_int_equal(err.retry_after_ms, 3000);
    assert_int_equal(answer("HTTP/1.1 401 x\r\n\r\n", NULL, protocol).code, ERR_UNAUTHORIZED);
    assert_int_equal(answer("HTTP/1.1 404 x\r\n\r\n", NULL, protocol).code, ERR_NOT_FOUND);
    assert_int_equal(answer("HTTP/1.1 503 x\r\n\r\n", NULL, protocol).code, ERR_UNAVAILABLE);
}

static void the_reason_of_a_refusal_is_waited_for(void **state)
{
    (void)state;
    static const char refusal[] = "HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n\r\nmay not!";
    for (size_t n = 0; n < sizeof refusal - 1; n++)
        assert_false(handshake_answer_complete(refusal, n));
    assert_true(handshake_answer_complete(refusal, sizeof refusal - 1));
    static const char accepted[] = SWITCH UPGRADE "\r\n";
    assert_true(handshake_answer_complete(accepted, sizeof accepted - 1));
    static const char endless[] = "HTTP/1.1 403 x\r\nContent-Length: x\r\n\r\n";
    assert_true(handshake_answer_complete(endless, sizeof endless - 1));
}

static void names_are_offered_whole(void **state)
{
    (void)state;
    assert_true(handshake_offers("cadre.v1, cadre.v1.json", "cadre.v1"));
    assert_true(handshake_offers("cadre.v1,cadre.v1.json", "cadre.v1.json"));
    assert_false(handshake_offers("cadre.v1", "cadre"));
    assert_false(handshake_offers(NULL, "cadre.v1"));
}

static void a_client_reads_the_refusal_that_a_server_writes(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(HANDSHAKE_HEAD_MAX);
    char protocol[HANDSHAKE_PROTOCOL_SIZE];
    assert_int_equal(handshake_refuse_write(&out, 401, "who are you"), 0);
    const struct err err = answer(buf_str(&out), "cadre.v1", protocol);
    assert_string_equal(err.msg, "the server refused with HTTP status 401: who are you");
    buf_done(&out);
}

static void a_head_ends_at_the_empty_line(void **state)
{
    (void)state;
    assert_int_equal(handshake_head_len("", 0), 0);
    assert_int_equal(handshake_head_len("a\r\n\r", 4), 0);
    assert_int_equal(handshake_head_len("a\r\n\r\nrest", 9), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_rfc_holds),
        cmocka_unit_test(a_request_asks_for_what_was_said),
        cmocka_unit_test(a_value_cannot_smuggle_in_a_header),
        cmocka_unit_test(the_right_answer_is_accepted),
        cmocka_unit_test(wrong_answers_are_refused),
        cmocka_unit_test(a_refusal_says_why_in_the_words_of_the_server),
        cmocka_unit_test(the_reason_of_a_refusal_is_waited_for),
        cmocka_unit_test(names_are_offered_whole),
        cmocka_unit_test(a_client_reads_the_refusal_that_a_server_writes),
        cmocka_unit_test(a_head_ends_at_the_empty_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
