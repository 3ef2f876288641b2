// SPDX-License-Identifier: Apache-2.0
#include "common/wire/ref.h"

#include "common/base/fiber.h"
#include "common/base/json_scan.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/peer_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "cadre:"
#define VERSION "1:"
#define MEMBER "\"$ref\""
enum { CHECK_LEN = 8, PART_UNITS = 256 }; // PART_UNITS: cost of reading or writing a part

// Writing

void ref_id_write(uint64_t id, char out[REF_ID_SIZE])
{
    for (int i = 15; i >= 0; i--, id >>= 4)
        out[i] = "0123456789abcdef"[id & 15];
    out[REF_ID_SIZE - 1] = '\0';
}

void ref_write(const struct ref *r, struct buf *out)
{
    size_t begin = out->len;
    buf_printf(out, PREFIX VERSION "%s:%c:", r->uid, r->form);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct ref_part *p = &r->parts[i];
        fiber_spend(PART_UNITS);
        buf_printf(out, "%s%" PRIu32 ".%" PRIu32 ".%016" PRIx64 ".%" PRIu64 ".%c", i ? "," : "", p->rank, p->attempt,
                   p->id, p->bytes, p->kind);
    }
    buf_printf(out, ":%08" PRIx32, (uint32_t)str_hash(buf_str(out) + begin, out->len - begin));
}

void ref_write_json(const struct ref *r, struct buf *out)
{
    buf_puts(out, "{" MEMBER ":\"");
    ref_write(r, out);
    buf_puts(out, "\"}");
}

// Reading

struct ref_cursor {
    const char *p, *end;
};

static bool take(struct ref_cursor *c, char what)
{
    bool there = c->p < c->end && *c->p == what;
    c->p += there;
    return there;
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ref_id_read(const char *text, size_t len, uint64_t *ret)
{
    uint64_t id = 0;
    if (len != REF_ID_SIZE - 1)
        return false;
    for (size_t i = 0; i < len; i++) {
        int digit = hex_of(text[i]);
        if (digit < 0)
            return false;
        id = id << 4 | (unsigned)digit;
    }
    *ret = id;
    return true;
}

static bool take_number(struct ref_cursor *c, uint64_t max, uint64_t *ret)
{
    uint64_t n = 0;
    const char *begin = c->p;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
        uint64_t digit = (uint64_t)(*c->p - '0');
        if (n > (max - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *ret = n;
    return c->p > begin;
}

static bool take_part(struct ref_cursor *c, struct ref_part *ret)
{
    uint64_t rank, attempt;
    fiber_spend(PART_UNITS);
    if (!take_number(c, UINT32_MAX - 1, &rank) || !take(c, '.') || !take_number(c, UINT32_MAX, &attempt) ||
        !take(c, '.') || c->end - c->p < REF_ID_SIZE - 1 || !ref_id_read(c->p, REF_ID_SIZE - 1, &ret->id))
        return false;
    c->p += REF_ID_SIZE - 1;
    if (!take(c, '.') || !take_number(c, INT64_MAX, &ret->bytes) || !take(c, '.') || c->p == c->end)
        return false;
    ret->rank = (uint32_t)rank;
    ret->attempt = (uint32_t)attempt;
    ret->kind = (enum ref_kind) * c->p++;
    return ret->kind == REF_JSON || ret->kind == REF_BATCH || ret->kind == REF_BODIES;
}

static bool take_uid(struct ref_cursor *c, char out[REF_UID_MAX + 1])
{
    const char *colon = memchr(c->p, ':', (size_t)(c->end - c->p));
    size_t len = colon ? (size_t)(colon - c->p) : 0;
    if (len == 0 || len > REF_UID_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (c->p[i] <= ' ' || c->p[i] > '~' || c->p[i] == '"' || c->p[i] == '\\')
            return false;
    memcpy(out, c->p, len);
    out[len] = '\0';
    c->p = colon + 1;
    return true;
}

static bool check_is_right(const char *text, size_t len)
{
    uint32_t want = (uint32_t)str_hash(text, len - CHECK_LEN - 1), got = 0;
    for (size_t i = len - CHECK_LEN; i < len; i++) {
        int digit = hex_of(text[i]);
        if (digit < 0)
            return false;
        got = got << 4 | (unsigned)digit;
    }
    return text[len - CHECK_LEN - 1] == ':' && want == got;
}

static uint32_t count_parts(const struct ref_cursor *c)
{
    uint32_t n = 1;
    for (const char *p = c->p; p < c->end; p++)
        n += *p == ',';
    return n;
}

static bool take_parts(struct ref_cursor *c, struct arena *a, struct ref *ret)
{
    ret->n = count_parts(c);
    if (ret->n > REF_PARTS_MAX || (ret->form == REF_ONE && ret->n != 1))
        return false;
    ret->parts = arena_array(a, ret->n, sizeof *ret->parts);
    for (uint32_t i = 0; i < ret->n; i++)
        if ((i && !take(c, ',')) || !take_part(c, &ret->parts[i]))
            return false;
    return c->p == c->end;
}

int ref_parse(const char *text, size_t len, struct arena *a, struct ref *ret, struct err *err)
{
    static const char begin[] = PREFIX VERSION;
    const size_t n = sizeof begin - 1;
    int shown = (int)MIN(len, (size_t)60);
    if (len > REF_TEXT_MAX || len < n + CHECK_LEN + 1 || memcmp(text, begin, n) != 0)
        return err_set(err, ERR_INVALID, "\"%.*s\" is not a reference that is known here", shown, text);
    if (!check_is_right(text, len))
        return err_set(err, ERR_INVALID, "the reference \"%.*s...\" is damaged: its checksum does not match", shown,
                       text);
    struct ref_cursor c = {text + n, text + len - CHECK_LEN - 1};
    bool good = take_uid(&c, ret->uid) && c.p < c.end;
    if (good) {
        ret->form = (enum ref_form) * c.p++;
        good = (ret->form == REF_ONE || ret->form == REF_LIST || ret->form == REF_JOINED) && take(&c, ':') &&
               take_parts(&c, a, ret);
    }
    return good ? 0 : err_set(err, ERR_INVALID, "\"%.*s...\" is not a valid reference", shown, text);
}

// In JSON

// The end of the object that begins here. It must have no escapes and nothing nested, as all references.
static const char *object_end(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '"') {
            const char *behind = json_string_end(p, end);
            if (!behind || memchr(p, '\\', (size_t)(behind - p)))
                return NULL;
            p = behind - 1;
        } else if (*p == '\\' || *p == '{' || *p == '[') {
            return NULL;
        } else if (*p == '}') {
            return p + 1;
        }
    }
    return NULL;
}

static bool string_of(const struct json_item *m, const char **ret, size_t *ret_len)
{
    if (m->len < 2 || m->text[0] != '"')
        return false;
    *ret = m->text + 1;
    *ret_len = m->len - 2;
    return true;
}

static void read_member(const struct json_item *m, struct ref_found *f)
{
    uint64_t until;
    if (json_item_is(m, "$ref"))
        (void)string_of(m, &f->text, &f->text_len);
    else if (json_item_is(m, "at"))
        (void)string_of(m, &f->at, &f->at_len);
    else if (json_item_is(m, "key"))
        (void)string_of(m, &f->key, &f->key_len);
    else if (json_item_is(m, "owner"))
        (void)string_of(m, &f->owner, &f->owner_len);
    else if (json_item_is(m, "until") &&
             take_number(&(struct ref_cursor){m->text, m->text + m->len}, INT64_MAX, &until))
        f->until = (int64_t)until;
}

static bool read_object(const char *json, const char *end, struct ref_found *ret)
{
    struct json_scan s;
    struct json_item m;
    int got;
    const char *after = object_end(json, end);
    if (!after || !json_scan_begin(&s, json, (size_t)(after - json)))
        return false;
    *ret = (struct ref_found){.json = json, .len = (size_t)(after - json)};
    while ((got = json_scan_next(&s, &m)) > 0)
        read_member(&m, ret);
    return got == 0 && ret->text && ret->text_len >= sizeof PREFIX - 1 &&
           memcmp(ret->text, PREFIX, sizeof PREFIX - 1) == 0;
}

// Searching for a rare byte is many times as fast as searching for a word.
static const char *find_member(const char *json, size_t len)
{
    const char *sign = memchr(json, MEMBER[1], len);
    if (!sign)
        return NULL;
    const char *from = sign > json ? sign - 1 : json;
    return memmem(from, len - (size_t)(from - json), MEMBER, sizeof MEMBER - 1);
}

// A brace before the quoted name cannot be part of a string: in valid JSON, the quote would end the string.
bool ref_next(const char *json, size_t len, size_t *at, struct ref_found *ret)
{
    const char *end = json + len;
    while (*at < len) {
        const char *p = find_member(json + *at, len - *at), *brace = p;
        if (!p)
            break;
        size_t from = *at;
        *at = (size_t)(p - json) + sizeof MEMBER - 1;
        while (brace > json + from && json_is_space(brace[-1]))
            brace--;
        if (brace == json + from || brace[-1] != '{' || !read_object(brace - 1, end, ret))
            continue;
        *at = (size_t)(ret->json - json) + ret->len;
        return true;
    }
    return false;
}

bool ref_mentioned(const char *json, size_t len)
{
    return len >= sizeof MEMBER + sizeof PREFIX && len <= REF_ARGS_MAX && find_member(json, len) != NULL;
}

bool ref_mentioned_in(const char *a, size_t a_len, const char *b, size_t b_len)
{
    enum { REST = sizeof MEMBER - 2 }; // bytes of the word on one side of the seam
    char seam[2 * REST];
    size_t before = MIN(a_len, (size_t)REST), behind = MIN(b_len, (size_t)REST);
    memcpy(seam, a + a_len - before, before);
    memcpy(seam + before, b, behind);
    return find_member(a, a_len) || find_member(seam, before + behind) || find_member(b, b_len);
}

bool ref_is(const char *json, size_t len, struct ref_found *ret)
{
    size_t at = 0;
    while (len && json_is_space(*json)) {
        json++;
        len--;
    }
    while (len && json_is_space(json[len - 1]))
        len--;
    return ref_next(json, len, &at, ret) && ret->json == json && ret->len == len;
}

static void key_text(uint64_t id, int64_t until, char out[96])
{
    snprintf(out, 96, "cadre.dev/object/v1/%016" PRIx64 ".%" PRId64, id, until);
}

void ref_key(const char *secret, uint64_t id, int64_t until, char out[REF_KEY_SIZE])
{
    char text[96];
    key_text(id, until, text);
    peer_key(secret, text, out);
}

bool ref_key_good(const char *secret, uint64_t id, int64_t until, const char *key, size_t len)
{
    char text[96];
    key_text(id, until, text);
    return peer_key_good(secret, text, key, len);
}
