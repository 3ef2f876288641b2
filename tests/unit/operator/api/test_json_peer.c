// SPDX-License-Identifier: Apache-2.0
// Compares the JSON reader with an independent one, cJSON. On each document of the tests and on thousands of mutations,
// both accept the same texts and see the same values, except for the differences in this list. cJSON
//
//   accepts what RFC 8259 forbids   control characters as blanks and inside strings, invalid UTF-8, a byte order mark,
//                                   numbers such as 01, 1. and -.5; U+0000 in a string, which ends its C string,
//                                   and any \u without four digits, as if it were U+0000
//   accepts 1000 levels             our reader accepts 128
//   reads numbers as doubles
//   keeps no text                   a number that it writes has the same value as a double, not the same digits
//
// docs/adr/0005-json-reader.md says why that matters to this project.
#include "common/base/json.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENT_MAX = 256 * 1024, MUTATED_MAX = 4096, MUTATIONS = 20000 };

// Both readers accept the whole text or nothing. cJSON needs a NUL after the text, and a length that includes it.
static cJSON *peer_parse(const char *text, size_t len)
{
    _cleanup_(free_p) char *copy = xmalloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return cJSON_ParseWithLengthOpts(copy, len + 1, NULL, true);
}

static bool is_control(const char *text, size_t len, size_t at)
{
    return at < len && (unsigned char)text[at] < 0x20;
}

static bool in_number(const char *text, size_t len, size_t at)
{
    return at < len && text[at] && strchr("0123456789+-.eE", text[at]);
}

static bool ends_nul(const char *text, size_t len, size_t at)
{
    return at >= 3 && at < len && memcmp(text + at - 3, "0000", 4) == 0;
}

static bool is_hex(const char *text, size_t len, size_t at)
{
    return at < len && text[at] && strchr("0123456789abcdefABCDEF", text[at]);
}

static bool in_character(const char *text, size_t len, size_t at)
{
    return (at < len && (unsigned char)text[at] >= 0x80) || (at && (unsigned char)text[at - 1] >= 0x80);
}

static size_t count_open(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '[' || text[i] == '{';
    return n;
}

enum difference { CONTROL, NOT_UTF8, MARK, NUMBER, NUL, DEPTH, DIFFERENCES };

// Returns why cJSON accepts a text that our reader refuses, from our message and the byte that it names; -1: there is
// no good reason.
static int why_refused(const char *text, size_t len, const struct err *err)
{
    if (err->code == ERR_LIMIT)
        return count_open(text, len) > JSON_DEPTH_MAX ? DEPTH : -1;
    const char *place = strstr(err->msg, "at byte ");
    size_t at = place ? strtoul(place + strlen("at byte "), NULL, 10) : len;
    if (strstr(err->msg, "not UTF-8"))
        return in_character(text, len, at) ? NOT_UTF8 : -1;
    if (strstr(err->msg, "bad \\u escape"))
        return ends_nul(text, len, at) || !is_hex(text, len, at) ? NUL : -1;
    if (is_control(text, len, at))
        return CONTROL;
    if (at == 0 && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return MARK;
    return in_number(text, len, at) || (at && in_number(text, len, at - 1)) ? NUMBER : -1;
}

static bool same_text(const char *text, size_t len, const char *peer)
{
    return peer && strlen(peer) == len && memcmp(text, peer, len) == 0;
}

static bool same_value(const struct json *v, const cJSON *peer, struct arena *a)
{
    switch (v->type) {
    case JSON_NULL:
        return cJSON_IsNull(peer);
    case JSON_BOOL:
        return v->text[0] == 't' ? cJSON_IsTrue(peer) : cJSON_IsFalse(peer);
    case JSON_NUMBER:
        return cJSON_IsNumber(peer) && strtod(arena_strndup(a, v->text, v->len), NULL) == peer->valuedouble;
    case JSON_STRING:
        return cJSON_IsString(peer) && strcmp(json_str(v, a), peer->valuestring) == 0;
    case JSON_LIST:
    case JSON_OBJECT:
        break;
    }
    const cJSON *child = peer->child;
    if (v->type == JSON_LIST ? !cJSON_IsArray(peer) : !cJSON_IsObject(peer))
        return false;
    JSON_FOREACH(item, v) {
        if (!child || (v->type == JSON_OBJECT && !same_text(item->key, item->key_len, child->string)) ||
            !same_value(item, child, a))
            return false;
        child = child->next;
    }
    return !child;
}

struct tally {
    size_t texts, accepted, seen[DIFFERENCES];
};

static void compare(const char *text, size_t len, struct tally *t)
{
    struct arena a = ARENA_INIT;
    struct json *root = NULL;
    struct err err = ERR_INIT;
    const char *exact = arena_memdup(&a, text, len); // a sanitizer sees a read after the text
    int r = json_parse(exact, len, NULL, &a, &root, &err);
    cJSON *peer = peer_parse(text, len);
    int why = 0;
    bool same = true;
    if (r == 0 && peer)
        same = same_value(root, peer, &a);
    else if (peer)
        why = why_refused(text, len, &err);
    else if (r == 0)
        why = -1; // our reader never accepts a text that cJSON refuses
    cJSON_Delete(peer);
    arena_done(&a);
    if (!same || why < 0)
        fail_msg("the readers differ (%s): %.*s", same ? err.msg : "values", (int)len, text);
    t->texts++;
    t->accepted += r == 0;
    t->seen[why] += (r == 0) != (peer != NULL);
}

// The files of the golden tests and of the fuzz corpus. `seeds` are the small ones of them that are JSON.
static struct {
    struct buf items[2048];
    const struct buf *seeds[2048];
    size_t n, n_seeds;
} corpus;

static bool is_json(const struct buf *b)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    bool ok = json_parse(buf_str(b), b->len, NULL, &a, &root, &err) == 0;
    arena_done(&a);
    return ok;
}

static int add_file(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)where;
    if (type != FTW_F || st->st_size > DOCUMENT_MAX || corpus.n == ARRAY_LEN(corpus.items))
        return 0;
    struct buf *b = &corpus.items[corpus.n++];
    *b = BUF_INIT(DOCUMENT_MAX);
    FILE *f = fopen(path, "re");
    char chunk[4096];
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        buf_append(b, chunk, n);
    if (f)
        fclose(f);
    if (strstr(path, "corpus/object/")) // the first byte is the kind of the object
        buf_consume(b, MIN(b->len, 1u));
    if (b->len <= MUTATED_MAX && is_json(b))
        corpus.seeds[corpus.n_seeds++] = b;
    return 0;
}

static int load(void **state)
{
    (void)state;
    nftw("tests/golden", add_file, 16, FTW_PHYS);
    nftw("tests/fuzz/corpus", add_file, 16, FTW_PHYS);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    for (size_t i = 0; i < corpus.n; i++)
        buf_done(&corpus.items[i]);
    return 0;
}

static void both_read_every_document_alike(void **state)
{
    (void)state;
    struct tally t = {0};
    for (size_t i = 0; i < corpus.n; i++)
        compare(buf_str(&corpus.items[i]), corpus.items[i].len, &t);
    assert_true(t.texts > 200);
    assert_true(t.accepted > 100);
}

static void splice(struct buf *b, size_t at, size_t drop, const char *put, size_t n)
{
    _cleanup_(free_p) char *tail = xmalloc(b->len + 1);
    drop = MIN(drop, b->len - at);
    size_t tail_len = b->len - at - drop;
    memcpy(tail, buf_str(b) + at + drop, tail_len);
    b->len = at;
    buf_append(b, put, n);
    buf_append(b, tail, tail_len);
}

static void mutate(struct buf *b, struct rand *r)
{
    static const char *const tokens[] = {
        "{",        "}",
        "[",        "]",
        ",",        ":",
        "\"",       "\\",
        "null",     "true",
        "false",    "0",
        "-",        ".",
        "e",        "E+",
        "1.5",      "01",
        "-0",       "1e999",
        "\\u",      "\\n",
        "\\/",      "\\x",
        "\\u00e",   "\\u0000",
        "\\ud83d",  "\\ude00",
        "\x1f",     "\t",
        "\xff",     "\xc3",
        "\xc3\xa9", "{}",
        "[]",       "\"a\":1,",
        "\"a\":{}", "123456789012345678901234567890",
    };
    size_t at = rand_below(r, b->len + 1);
    char byte = (char)rand_below(r, 256);
    const char *token = tokens[rand_below(r, ARRAY_LEN(tokens))];
    const struct buf *other = corpus.seeds[rand_below(r, corpus.n_seeds)];
    size_t from = rand_below(r, other->len + 1), n = rand_below(r, 64);
    switch (rand_below(r, 5)) {
    case 0:
        splice(b, at, 1, &byte, 1);
        break;
    case 1:
        splice(b, at, rand_below(r, 16), "", 0);
        break;
    case 2:
        splice(b, at, rand_below(r, 2), token, strlen(token));
        break;
    case 3:
        splice(b, at, 0, buf_str(other) + from, MIN(other->len - from, n));
        break;
    default:
        b->len = at; // cut off
    }
}

// Each reason to refuse a text. Some are rare, and depend on the documents.
static bool all_seen(const struct tally *t)
{
    for (int i = CONTROL; i <= NUL; i++)
        if (i != MARK && !t->seen[i])
            return false;
    return true;
}

static void both_read_mutations_alike(void **state)
{
    (void)state;
    struct rand r;
    struct tally t = {0};
    rand_seed(&r, 20260101);
    size_t n_texts = 0;
    for (; n_texts < MUTATIONS || (n_texts < 10 * MUTATIONS && !all_seen(&t)); n_texts++) {
        const struct buf *from = corpus.seeds[rand_below(&r, corpus.n_seeds)];
        _cleanup_(buf_done) struct buf b = BUF_INIT(DOCUMENT_MAX * 2);
        buf_append(&b, buf_str(from), from->len);
        for (uint64_t n = rand_below(&r, 4); n-- > 0;)
            mutate(&b, &r);
        compare(buf_str(&b), b.len, &t);
    }
    assert_int_equal(t.texts, n_texts);
    print_message("%zu of %zu mutations are JSON\n", t.accepted, t.texts);
    assert_true(t.accepted > n_texts / 10);
    assert_true(t.accepted < n_texts * 9 / 10);
    assert_true(all_seen(&t));
}

static void both_read_every_escape_alike(void **state)
{
    (void)state;
    struct tally t = {0};
    char text[16];
    for (unsigned code = 1; code < 0x110000; code += code < 0x10000 ? 1 : 101) {
        if (code < 0x10000)
            snprintf(text, sizeof text, "\"\\u%04x\"", code);
        else
            snprintf(text, sizeof text, "\"\\u%04x\\u%04X\"", 0xd800 + ((code - 0x10000) >> 10),
                     0xdc00 + ((code - 0x10000) & 0x3ff));
        compare(text, strlen(text), &t);
    }
    assert_int_equal(t.texts - t.accepted, 0x800); // halves of a pair
}

static void every_difference_of_the_list_is_one(void **state)
{
    (void)state;
    const struct {
        enum difference what;
        const char *text;
        size_t len;
    } cases[] = {
#define CASE(what, text) {what, text, sizeof(text) - 1}
        CASE(CONTROL, "[1,\v2]"),
        CASE(CONTROL, "\"a\nb\""),
        CASE(CONTROL, "{}\0"),
        CASE(NOT_UTF8, "\"\xff\""),
        CASE(NOT_UTF8, "\"\xed\xa0\x80\""),
        CASE(MARK, "\xef\xbb\xbf{}"),
        CASE(NUMBER, "01"),
        CASE(NUMBER, "[1.]"),
        CASE(NUMBER, "-.5"),
        CASE(NUL, "\"a\\u0000b\""),
        CASE(NUL, "{\"\\u0000\":1}"),
        CASE(NUL, "\"\\u00ex\""),
#undef CASE
    };
    struct tally t = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t before = t.seen[cases[i].what];
        compare(cases[i].text, cases[i].len, &t);
        if (t.seen[cases[i].what] != before + 1)
            fail_msg("no such difference: %s", cases[i].text);
    }
    char deep[2 * JSON_DEPTH_MAX + 2];
    memset(deep, '[', sizeof deep / 2);
    memset(deep + sizeof deep / 2, ']', sizeof deep / 2);
    compare(deep, sizeof deep, &t);
    assert_int_equal(t.seen[DEPTH], 1);
}

static void duplicate_names_are_kept_by_both_and_the_first_is_found(void **state)
{
    (void)state;
    const char *text = "{\"a\":1,\"A\":2,\"a\":3}";
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    int64_t n = 0;
    cJSON *peer = peer_parse(text, strlen(text));
    int first = cJSON_GetObjectItemCaseSensitive(peer, "a")->valueint, size = cJSON_GetArraySize(peer);
    cJSON_Delete(peer);
    assert_int_equal(json_parse(text, strlen(text), NULL, &a, &root, &err), 0);
    assert_true(json_i64(json_get(root, "a"), &n));
    size_t count = json_count(root);
    arena_done(&a);
    assert_int_equal(n, first);
    assert_int_equal(count, size);
}

static bool peer_writes_back(const char *text)
{
    cJSON *peer = peer_parse(text, strlen(text));
    char *written = cJSON_PrintUnformatted(peer);
    bool same = strcmp(written, text) == 0;
    cJSON_free(written);
    cJSON_Delete(peer);
    return same;
}

static bool we_write_back(const char *text)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    bool same = json_parse(text, strlen(text), NULL, &a, &root, &err) == 0 && root->len == strlen(text) &&
                memcmp(root->text, text, root->len) == 0;
    arena_done(&a);
    return same;
}

// A pod template must reach the API server as the user wrote it.
static void only_we_write_back_what_was_read(void **state)
{
    (void)state;
    const char *texts[] = {
        "{\"n\":9007199254740993}",    // 2^53 + 1
        "{\"n\":1234567890123456789}", // a device id, nanoseconds
        "{\"n\":0.10000000000000000001}", "{\"n\":1.50}",        "{\"n\":1e3}",
        "{\"s\":\"\\u00e9\\/\"}",         "{ \"blank\" : [ ] }",
    };
    assert_true(peer_writes_back("{\"n\":[1,null,true,\"x\"]}"));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_true(we_write_back(texts[i]));
        if (peer_writes_back(texts[i]))
            fail_msg("cJSON can do it, too: %s", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_read_every_document_alike),
        cmocka_unit_test(both_read_mutations_alike),
        cmocka_unit_test(both_read_every_escape_alike),
        cmocka_unit_test(every_difference_of_the_list_is_one),
        cmocka_unit_test(duplicate_names_are_kept_by_both_and_the_first_is_found),
        cmocka_unit_test(only_we_write_back_what_was_read),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
