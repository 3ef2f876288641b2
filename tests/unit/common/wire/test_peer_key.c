// SPDX-License-Identifier: Apache-2.0
// Proofs between processes that share a secret.
#include "common/wire/peer_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

// printf what | openssl dgst -sha256 -hmac secret
static void a_key_is_the_hmac_of_the_text(void **state)
{
    (void)state;
    char key[PEER_KEY_SIZE];
    peer_key("Jefe", "what do ya want for nothing?", key); // RFC 4231, case 2
    assert_string_equal(key, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void only_that_key_of_that_length_is_good(void **state)
{
    (void)state;
    char key[PEER_KEY_SIZE];
    peer_key("secret", "text", key);
    assert_true(peer_key_good("secret", "text", key, 64));
    assert_false(peer_key_good("secret", "text", key, 63));
    assert_false(peer_key_good("secret", "other", key, 64));
    assert_false(peer_key_good("another", "text", key, 64));
    key[3] = (char)(key[3] == 'a' ? 'b' : 'a');
    assert_false(peer_key_good("secret", "text", key, 64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_the_hmac_of_the_text),
        cmocka_unit_test(only_that_key_of_that_length_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
