// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/ticket.h"

#include "common/base/buf.h"
#include "common/base/str.h"
#include "operator/identity/base64.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { MAC_SIZE = 32, ID_SIZE = 6 };

// The domain and its NUL come before the text, so no text of one domain can be a text of the other.
static void make_mac(const uint8_t key[INSTALL_KEY_SIZE], const char *domain, const char *text, uint8_t ret[MAC_SIZE])
{
    struct buf data = BUF_INIT(strlen(domain) + 1 + strlen(text));
    size_t n = 0;
    (void)buf_append(&data, domain, strlen(domain) + 1);
    (void)buf_puts(&data, text);
    if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key, INSTALL_KEY_SIZE, (const unsigned char *)data.data,
                   data.len, ret, MAC_SIZE, &n) ||
        n != MAC_SIZE)
        abort(); // no memory: SHA-256 itself is always there
    buf_done(&data);
}

static const char *ticket_mac(const uint8_t key[INSTALL_KEY_SIZE], const char *text, struct arena *a)
{
    uint8_t mac[MAC_SIZE];
    make_mac(key, "cadre.dev/ticket/v1", text, mac);
    return base64_encode(BASE64_URL, mac, sizeof mac, a);
}

static bool uid_valid(const char *uid)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = strlen(uid);
    return n > 0 && n < sizeof((struct ticket *)0)->group_uid && strspn(uid, allowed) == n;
}

const char *ticket_write(const uint8_t key[INSTALL_KEY_SIZE], const struct ticket *t, struct arena *a)
{
    if (!uid_valid(t->group_uid))
        return NULL;
    const char *text =
        arena_printf(a, "%s.%" PRIu32 ".%" PRIu32 ".%" PRIu64, t->group_uid, t->attempt, t->rank, t->serial);
    return arena_printf(a, "%s.%s", text, ticket_mac(key, text, a));
}

// Reads a decimal number that ends at a dot or at the end of the text. Moves *at to the byte after it and its dot.
static bool take_number(const char **at, uint64_t max, uint64_t *ret)
{
    const char *s = *at;
    uint64_t n = 0;
    if (*s < '0' || *s > '9')
        return false;
    for (; *s >= '0' && *s <= '9'; s++) {
        uint64_t digit = (uint64_t)(*s - '0');
        if (n > (max - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    if (*s && *s != '.')
        return false;
    *at = *s ? s + 1 : s;
    *ret = n;
    return true;
}

static bool ticket_parse(const char *text, struct ticket *ret)
{
    const char *at = strchr(text, '.');
    uint64_t attempt, rank;
    if (!at || (size_t)(at - text) >= sizeof ret->group_uid)
        return false;
    *ret = (struct ticket){0};
    memcpy(ret->group_uid, text, (size_t)(at - text));
    at++;
    if (!take_number(&at, UINT32_MAX, &attempt) || !take_number(&at, UINT32_MAX, &rank) ||
        !take_number(&at, UINT64_MAX, &ret->serial) || *at)
        return false;
    ret->attempt = (uint32_t)attempt;
    ret->rank = (uint32_t)rank;
    return uid_valid(ret->group_uid);
}

int ticket_read(const uint8_t key[INSTALL_KEY_SIZE], const char *text, struct ticket *ret, struct err *err)
{
    struct arena a = ARENA_INIT;
    const char *mac = strnlen(text, TICKET_LEN_MAX + 1) <= TICKET_LEN_MAX ? strrchr(text, '.') : NULL;
    bool right = false;
    if (mac) {
        const char *signed_text = arena_strndup(&a, text, (size_t)(mac - text));
        const char *want = ticket_mac(key, signed_text, &a);
        size_t n = strlen(want);
        // The length is not secret, but the place of the first difference would be.
        right = strlen(mac + 1) == n && CRYPTO_memcmp(mac + 1, want, n) == 0 && ticket_parse(signed_text, ret);
    }
    arena_done(&a);
    return right ? 0
                 : err_set(err, ERR_UNAUTHORIZED,
                           "the ticket is refused: it was not made by this operator; worker processes get theirs from "
                           "the agent that starts them");
}

const char *peer_secret(const uint8_t key[INSTALL_KEY_SIZE], const char *group_uid, uint32_t attempt, struct arena *a)
{
    uint8_t mac[MAC_SIZE];
    make_mac(key, "cadre.dev/peer-secret/v1", arena_printf(a, "%" PRIu32 ".%s", attempt, group_uid), mac);
    return str_hex(mac, sizeof mac, arena_alloc(a, 2 * sizeof mac + 1));
}

const char *replica_proof(const uint8_t key[INSTALL_KEY_SIZE], const char *name, const char *instance, struct arena *a)
{
    uint8_t mac[MAC_SIZE];
    make_mac(key, "cadre.dev/replica/v1", arena_printf(a, "%s/%s", instance, name), mac);
    return str_hex(mac, sizeof mac, arena_alloc(a, 2 * sizeof mac + 1));
}

const char *install_key_id(const uint8_t key[INSTALL_KEY_SIZE], struct arena *a)
{
    uint8_t mac[MAC_SIZE];
    make_mac(key, "cadre.dev/install-key-id/v1", "", mac);
    return str_hex(mac, ID_SIZE, arena_alloc(a, 2 * ID_SIZE + 1));
}
