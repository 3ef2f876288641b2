// SPDX-License-Identifier: Apache-2.0
// A client that speaks JSON-RPC, one message a line, in front of a group of two ranks. A line that begins with '='
// is instead what rank 0 answers to its oldest call, and with '!' what it answers as an error. After a '~' the message
// is read as a long one, and each '_' stands for JSON_LONG blanks. Whatever it says, each answer is a JSON document,
// and in the end nothing is charged.
#include "common/base/json.h"
#include "operator/proxy/jsonrpc.h"
#include "operator/proxy/router.h"
#include "operator/proxy/tenant.h"
#include "tests/unit/clock_fake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

struct rank {
    struct record_writer out;
    struct record_reader reader;
    struct member *member;
    uint32_t calls[256];
    unsigned n;
};

static void rank_init(struct router *r, struct rank *k, uint32_t rank)
{
    static const char hello[] = "{\"methods\":[{\"name\":\"add\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"}]}";
    struct err err = ERR_INIT;
    k->n = 0;
    record_writer_init(&k->out, 1 << 20);
    record_reader_init(&k->reader, &(struct record_reader_config){.whole = true});
    must(router_join(r, &(struct member_identity){"u", 1, rank, "p", "n", NULL}, hello, sizeof hello - 1, &k->out, NULL,
                     &k->member, &err) == 0);
}

static void rank_done(struct router *r, struct rank *k)
{
    router_leave(r, k->member);
    record_writer_done(&k->out);
    record_reader_done(&k->reader);
}

static void rank_reads(struct rank *k)
{
    static char message[RECORD_MESSAGE];
    struct record rec;
    struct err err = ERR_INIT;
    for (size_t n; (n = record_writer_fill(&k->out, message, sizeof message)) > 0;) {
        const char *p = message;
        while (record_reader_next(&k->reader, &p, &n, &rec, &err) > 0)
            if (rec.h.type == RECORD_CALL && k->n < 256)
                k->calls[k->n++] = rec.h.call;
    }
}

static void rank_answers(struct router *r, struct rank *k, enum record_type type, const char *body, size_t len)
{
    struct err err = ERR_INIT;
    rank_reads(k);
    if (!k->n)
        return;
    struct record rec = {.h = {.type = (uint8_t)type, .call = k->calls[0]}, .body = body, .len = len};
    memmove(k->calls, k->calls + 1, --k->n * sizeof *k->calls);
    must(router_member_record(r, k->member, &rec, &err) == 0);
}

static bool next_answer(struct jsonrpc *j, struct parts *ret)
{
    bool got;
    while (!(got = jsonrpc_next(j, ret)) && jsonrpc_busy(j))
        (void)tenants_next_turn(j->session->router);
    return got;
}

static void take_answers(struct jsonrpc *j)
{
    struct parts parts;
    while (next_answer(j, &parts)) {
        size_t len = parts.len;
        char *text = malloc(len + 1);
        must(text != NULL);
        must(parts_read(&parts, text, len) == len);
        text[len] = '\0';
        parts_done(&parts);
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct json *root;
        // A result is looked at only as far as that it cannot break out; the envelope around it is ours.
        if (json_parse(text, len, NULL, &a, &root, &err) == 0)
            must(json_str_is(json_get(root, "jsonrpc"), "2.0") &&
                 !json_get(root, "result") != !json_get(root, "error"));
        else
            must(strstr(text, ",\"result\":") != NULL);
        arena_done(&a);
        free(text);
    }
}

static void long_line(struct jsonrpc *j, const char *line, size_t len)
{
    size_t most = JSONRPC_HEAD_MAX + len;
    for (size_t i = 0; i < len && most < 1 << 19; i++)
        most += line[i] == '_' ? JSON_LONG : 0;
    struct blob *b = blob_new(most, NULL);
    must(b != NULL);
    char *begin = b->data + JSONRPC_HEAD_MAX, *p = begin, *end = b->data + most;
    for (size_t i = 0; i < len && p < end; i++) {
        size_t n = line[i] == '_' ? MIN((size_t)(end - p), (size_t)JSON_LONG) : 1;
        memset(p, line[i] == '_' ? ' ' : line[i], n);
        p += n;
    }
    jsonrpc_input_long(j, b, begin, (size_t)(p - begin));
    blob_unref(b);
}

static void one_line(struct router *r, struct jsonrpc *j, struct rank ranks[2], const char *line, size_t len)
{
    char *exact = malloc(len ? len : 1); // its own allocation, so that a read behind it is seen
    must(exact != NULL);
    memcpy(exact, line, len);
    if (len && (exact[0] == '=' || exact[0] == '!')) {
        rank_answers(r, &ranks[0], exact[0] == '=' ? RECORD_RESULT : RECORD_ERROR, exact + 1, len - 1);
        rank_answers(r, &ranks[1], RECORD_RESULT, "1", 1);
    } else if (len && exact[0] == '~') {
        long_line(j, exact + 1, len - 1);
    } else {
        jsonrpc_input(j, exact, len);
    }
    take_answers(j);
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct clock_fake clock;
    struct router r;
    struct jsonrpc j;
    struct rank ranks[2];
    clock_fake_init(&clock, 0, 0);
    router_init(&r, &(struct router_config){.clock = &clock.clock,
                                            .total_bytes = 1 << 22,
                                            .session_bytes = 1 << 18,
                                            .high_mark = 1 << 16,
                                            .low_mark = 1 << 14,
                                            .total_calls = 64,
                                            .session_calls = 32,
                                            .member_calls = 16,
                                            .ready_wait_ms = 1000,
                                            .task_wait_ms = 1000});
    router_group_set(&r,
                     &(struct group_facts){.uid = "u", .ns = "ml", .name = "g", .world = 2, .attempt = 1, .oldest = 1});
    rank_init(&r, &ranks[0], 0);
    rank_init(&r, &ranks[1], 1);
    jsonrpc_init(&j, &r, "ml", "g", 1 << 20, NULL);
    const char *p = (const char *)data, *end = p + size;
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((eol ? eol : end) - p);
        one_line(&r, &j, ranks, p, len);
        p += len + 1;
    }
    jsonrpc_done(&j);
    rank_done(&r, &ranks[0]);
    rank_done(&r, &ranks[1]);
    router_tick(&r);
    router_turn(&r);
    must(quota_used(r.bytes) == 0);
    router_done(&r);
    return 0;
}
