// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/ticket.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define UID "3f1c7a2e-9b7d-4c44-8d0e-6a1f0c9e2b11"
static const uint8_t key[INSTALL_KEY_SIZE] = "an install's key, 32 bytes long";
static const uint8_t other_key[INSTALL_KEY_SIZE] = "another install's key, 32 bytes";

static void refused(const char *text)
{
    struct ticket t;
    struct err err = ERR_INIT;
    if (ticket_read(key, text, &t, &err) != ERR_UNAUTHORIZED)
        fail_msg("accepted: %s", text);
    assert_non_null(strstr(err.msg, "the ticket is refused"));
}

static void a_ticket_comes_back_as_it_was_written(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct ticket cases[] = {{UID, 1, 0, 0}, {UID, UINT32_MAX, UINT32_MAX, UINT64_MAX}, {"a", 0, 10, 100}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ticket t;
        struct err err = ERR_INIT;
        const char *text = ticket_write(key, &cases[i], &a);
        assert_true(strlen(text) <= TICKET_LEN_MAX);
        assert_int_equal(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
                         strlen(text));
        assert_int_equal(ticket_read(key, text, &t, &err), 0);
        assert_string_equal(t.group_uid, cases[i].group_uid);
        assert_int_equal(t.attempt, cases[i].attempt);
        assert_int_equal(t.rank, cases[i].rank);
        assert_true(t.serial == cases[i].serial);
        assert_string_equal(ticket_write(key, &t, &a), text);
    }
    arena_done(&a);
}

static void the_longest_uid_fits(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct ticket t = {.attempt = UINT32_MAX, .rank = UINT32_MAX, .serial = UINT64_MAX}, back;
    struct err err = ERR_INIT;
    memset(t.group_uid, 'x', sizeof t.group_uid - 1);
    assert_int_equal(ticket_read(key, ticket_write(key, &t, &a), &back, &err), 0);
    assert_string_equal(back.group_uid, t.group_uid);
    arena_done(&a);
}

static void a_uid_that_could_be_read_as_something_else_gets_no_ticket(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct ticket cases[] = {{"", 1, 0, 0}, {"a.1", 1, 0, 0}, {"a b", 1, 0, 0}, {"a\n", 1, 0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_null(ticket_write(key, &cases[i], &a));
    arena_done(&a);
}

static void every_changed_character_is_noticed(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct ticket t = {UID, 2, 1, 7};
    const char *good = ticket_write(key, &t, &a);
    for (size_t i = 0; good[i]; i++) {
        char *bad = arena_strdup(&a, good);
        bad[i] = bad[i] == '1' ? '2' : '1';
        refused(bad);
        refused(arena_strndup(&a, good, i));
    }
    refused(arena_printf(&a, "%s=", good));
    refused(arena_printf(&a, " %s", good));
    refused(arena_printf(&a, "%s\n", good));
    arena_done(&a);
}

static void what_is_no_ticket_is_refused(void **state)
{
    (void)state;
    char long_text[TICKET_LEN_MAX + 2];
    memset(long_text, '.', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    const char *cases[] = {"", ".", "....", "x", UID ".1.0.0", UID ".1.0.0.", long_text};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused(cases[i]);
}

static void another_install_has_other_tickets_and_secrets(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct ticket t = {UID, 2, 1, 7};
    refused(ticket_write(other_key, &t, &a));
    assert_string_not_equal(peer_secret(key, UID, 1, &a), peer_secret(other_key, UID, 1, &a));
    arena_done(&a);
}

static void the_peer_secret_is_one_attempts(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *secret = peer_secret(key, UID, 1, &a);
    assert_int_equal(strlen(secret), 64);
    assert_int_equal(strspn(secret, "0123456789abcdef"), 64);
    assert_string_equal(peer_secret(key, UID, 1, &a), secret);
    assert_string_not_equal(peer_secret(key, UID, 2, &a), secret);
    assert_string_not_equal(peer_secret(key, "other", 1, &a), secret);
    // The parts are never mixed up: group "1.x", attempt 1 is not group "x", attempt 11.
    assert_string_not_equal(peer_secret(key, "1.x", 1, &a), peer_secret(key, "x", 11, &a));
    arena_done(&a);
}

static void a_proof_is_one_replicas(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *proof = replica_proof(key, "operator-0", "1", &a);
    assert_int_equal(strlen(proof), 64);
    assert_string_equal(replica_proof(key, "operator-0", "1", &a), proof);
    assert_string_not_equal(replica_proof(key, "operator-1", "1", &a), proof);
    assert_string_not_equal(replica_proof(key, "operator-0", "2", &a), proof);
    assert_string_not_equal(replica_proof(other_key, "operator-0", "1", &a), proof);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_comes_back_as_it_was_written),
        cmocka_unit_test(a_proof_is_one_replicas),
        cmocka_unit_test(the_longest_uid_fits),
        cmocka_unit_test(a_uid_that_could_be_read_as_something_else_gets_no_ticket),
        cmocka_unit_test(every_changed_character_is_noticed),
        cmocka_unit_test(what_is_no_ticket_is_refused),
        cmocka_unit_test(another_install_has_other_tickets_and_secrets),
        cmocka_unit_test(the_peer_secret_is_one_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
