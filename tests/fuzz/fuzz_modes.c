// SPDX-License-Identifier: Apache-2.0
// One call to four ranks and what they answer: a byte each for the modes, a u16 each for the lengths of head, arguments
// and one result, these, and another result; two ranks give the one, two the other. Whatever it is, the call is
// answered once, a batch that anybody gets can be read, and in the end nothing is charged.
#include "common/base/mem.h"
#include "common/wire/batch.h"
#include "common/wire/body_list.h"
#include "operator/proxy/router.h"
#include "operator/proxy/session.h"
#include "tests/unit/clock_fake.h"

#include <stdlib.h>
#include <string.h>

enum { WORLD = 4, FRONT = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

struct end {
    struct record_writer out;
    struct record_reader reader;
};

struct scene {
    struct clock_fake clock;
    struct router r;
    struct member *members[WORLD];
    struct end ranks[WORLD], caller;
    struct session *session;
    struct scatter_source head, args, results[2];
    uint8_t dispatch, execute;
    unsigned n_answers;
};

static void end_init(struct end *e)
{
    record_writer_init(&e->out, 4 << 20);
    record_reader_init(&e->reader, &(struct record_reader_config){.whole = true});
}

static void end_done(struct end *e)
{
    record_writer_done(&e->out);
    record_reader_done(&e->reader);
}

static void scene_init(struct scene *s)
{
    static const struct mesh_dim train[] = {{"dp", 2}, {"tp", 2}}, generation[] = {{"dp", 4}};
    static const struct mesh meshes[] = {{"m", train, 2}, {"g", generation, 1}};
    static const char hello[] = "{\"methods\":[{\"name\":\"f\",\"dispatch\":\"DP_COMPUTE_PROTO\",\"execute\":\"ALL\"},"
                                "{\"name\":\"s\",\"dispatch\":\"SPLIT\",\"execute\":\"ALL\",\"split\":{\"index\":[1,0,"
                                "1,0]},\"collect\":{\"ranks\":[2,1]}}]}";
    struct err err = ERR_INIT;
    clock_fake_init(&s->clock, 0, 0);
    router_init(&s->r, &(struct router_config){.clock = &s->clock.clock,
                                               .total_bytes = 1 << 22,
                                               .session_bytes = 1 << 20,
                                               .high_mark = 1 << 18,
                                               .low_mark = 1 << 16,
                                               .total_calls = 4,
                                               .session_calls = 4,
                                               .member_calls = 4,
                                               .ready_wait_ms = 1000,
                                               .task_wait_ms = 1000});
    router_group_set(&s->r, &(struct group_facts){.uid = "u",
                                                  .ns = "ml",
                                                  .name = "g",
                                                  .world = WORLD,
                                                  .attempt = 1,
                                                  .oldest = 1,
                                                  .meshes = meshes,
                                                  .n_meshes = 2});
    for (uint32_t i = 0; i < WORLD; i++) {
        end_init(&s->ranks[i]);
        must(router_join(&s->r, &(struct member_identity){"u", 1, i, "p", "n", NULL}, hello, sizeof hello - 1,
                         &s->ranks[i].out, NULL, &s->members[i], &err) == 0);
    }
    end_init(&s->caller);
    s->session = session_new(&s->r, "ml", "g", &s->caller.out, NULL);
}

static void scene_done(struct scene *s)
{
    session_end(s->session);
    end_done(&s->caller);
    for (uint32_t i = 0; i < WORLD; i++) {
        router_leave(&s->r, s->members[i]);
        end_done(&s->ranks[i]);
    }
    clock_fake_advance(&s->clock, 2000);
    router_tick(&s->r);
    router_turn(&s->r);
    while (router_changed(&s->r))
        ;
    must(s->r.n_calls == 0 && quota_used(s->r.bytes) == 0);
    router_done(&s->r);
}

static void send_call(struct scene *s)
{
    size_t len = 4 + s->head.len + s->args.len;
    char *body = xmalloc(len); // of just that size, so that a read behind it is seen
    struct err err = ERR_INIT;
    record_call_prefix(body, (uint32_t)s->head.len);
    memcpy(body + 4, s->head.data, s->head.len);
    memcpy(body + 4 + s->head.len, s->args.data, s->args.len);
    struct record rec = {
        .h = {.type = RECORD_CALL, .call = 7, .rank = RECORD_GROUP, .dispatch = s->dispatch, .execute = s->execute},
        .body = body,
        .len = len,
        .seq = 1};
    must(session_record(s->session, &rec, UINT64_MAX, &err) == 0);
    free(body);
}

// The next record of a connection, or false; `take` has it while it is valid.
static void read_all(struct scene *s, struct end *e, void (*take)(struct scene *, const struct record *))
{
    char *message = xmalloc(RECORD_MESSAGE);
    struct record rec;
    struct err err = ERR_INIT;
    for (size_t n; (n = record_writer_fill(&e->out, message, RECORD_MESSAGE)) > 0;) {
        const char *p = message;
        while (record_reader_next(&e->reader, &p, &n, &rec, &err) > 0)
            take(s, &rec);
    }
    free(message);
}

static void rank_takes(struct scene *s, const struct record *rec)
{
    struct record_call call;
    struct batch b;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    if (rec->h.type != RECORD_CALL)
        return;
    must(record_call_decode(rec->body, rec->len, &call, &err) == 0);
    bool split =
        rec->h.dispatch == RECORD_DP_COMPUTE_PROTO && rec->h.execute == RECORD_ALL && !(rec->h.flags & RECORD_REFS);
    must(!split || batch_read(call.args, call.args_len, &a, &b, &err) == 0);
    arena_done(&a);
    const struct scatter_source *result = &s->results[rec->h.rank % 2];
    struct record answer = {.h = {.type = RECORD_RESULT, .call = rec->h.call, .rank = rec->h.rank},
                            .body = result->data,
                            .len = result->len};
    must(router_member_record(&s->r, s->members[rec->h.rank], &answer, &err) == 0);
}

static void caller_takes(struct scene *s, const struct record *rec)
{
    struct body_list l;
    struct err err = ERR_INIT;
    must(rec->h.call == 7 && (rec->h.type == RECORD_RESULT || rec->h.type == RECORD_ERROR));
    s->n_answers++;
    if (rec->h.type == RECORD_RESULT && rec->h.rank == RECORD_GROUP && body_list_is(rec->body, rec->len))
        must(body_list_read(rec->body, rec->len, &l, &err) == 0);
}

static struct scatter_source cut(const uint8_t **data, size_t *left, size_t len)
{
    struct scatter_source s = {(const char *)*data, MIN(len, *left)};
    *data += s.len;
    *left -= s.len;
    return s;
}

static size_t u16(const uint8_t *p)
{
    return (size_t)p[0] | (size_t)p[1] << 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FRONT)
        return 0;
    struct scene s = {.dispatch = data[0] % RECORD_DISPATCH_COUNT, .execute = data[1] % RECORD_EXECUTE_COUNT};
    const uint8_t *at = data + FRONT;
    size_t left = size - FRONT;
    s.head = cut(&at, &left, u16(data + 2));
    s.args = cut(&at, &left, u16(data + 4));
    s.results[0] = cut(&at, &left, u16(data + 6));
    s.results[1] = cut(&at, &left, left);
    scene_init(&s);
    send_call(&s);
    for (uint32_t i = 0; i < WORLD; i++)
        read_all(&s, &s.ranks[i], rank_takes);
    read_all(&s, &s.caller, caller_takes);
    must(s.n_answers == 1 || s.session->peer.close_code);
    scene_done(&s);
    return 0;
}
