// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/proxy/proxy_objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The rank says that it keeps object 16 + rank.
void keeps(struct world *w, uint32_t rank, uint32_t id, char kind)
{
    char text[96];
    snprintf(text, sizeof text, "{\"id\":\"%016x\",\"bytes\":5,\"kind\":\"%c\"}", 16 + rank, kind);
    worker_says(&w->f, &w->workers[rank], id, text);
}

void all_keep(struct world *w, const char *args, char kind)
{
    for (uint32_t i = 0; i < WORLD; i++)
        keeps(w, i, worker_takes(&w->workers[i], args), kind);
}

// The next answer is a reference.
const char *reference(struct world *w, struct arena *a, struct ref *ret)
{
    const char *got = client_hears(&w->c), *json = got ? strchr(got, '{') : NULL;
    struct ref_found f;
    struct err err = ERR_INIT;
    if (!json || !ref_is(json, strlen(json), &f))
        fail_msg("%s is not an answer with a reference", got ? got : "nothing");
    const char *text = arena_strndup(a, f.json, f.len);
    assert_int_equal(ref_parse(f.text, f.text_len, a, ret, &err), 0);
    return text;
}

const char *kept_by_all(struct world *w, struct arena *a)
{
    struct ref ref;
    sends_group(w, 90, KEEP, "[1]");
    all_keep(w, "[1]", REF_JSON);
    return reference(w, a, &ref);
}

const char *kept_by_one(struct world *w, struct arena *a)
{
    struct ref ref;
    sends(w, (struct call_text){.id = 91, .rank = 2, .head = KEEP, .args = "[1]"});
    keeps(w, 2, worker_takes(&w->workers[2], "[1]"), REF_JSON);
    return reference(w, a, &ref);
}

struct wire_record *takes(struct world *w, uint32_t rank, enum record_type type)
{
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    if (!r || r->h.type != type)
        fail_msg("rank %u got %s, not a %s", rank, r ? record_type_name(r->h.type) : "nothing", record_type_name(type));
    return r;
}

void is_told_to_free(struct world *w, uint32_t rank, const char *body)
{
    struct wire_record *r = takes(w, rank, RECORD_FREE);
    assert_string_equal(r->body, body);
    free(r);
}

void gets_nothing(struct world *w, uint32_t rank)
{
    assert_null(wire_next(&w->workers[rank].wire));
}

// Sends a batch to the group.
void sends_cut(struct world *w, uint32_t id, const char *head, const char *args)
{
    sends(w, (struct call_text){.id = id,
                                .rank = RECORD_GROUP,
                                .dispatch = RECORD_DP_COMPUTE_PROTO,
                                .execute = RECORD_ALL,
                                .head = head,
                                .args = args});
}
