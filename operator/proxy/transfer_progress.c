// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/transfer_progress.h"

#include "operator/proxy/proxy_group.h"

#include <inttypes.h>

#define BYTES_MAX ((int64_t)1 << 48) // of one rank: the sum over 32,767 ranks fits into an int64_t

int transfer_progress_take(struct member *m, const struct record *rec, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root = NULL;
    int64_t done, bytes;
    bool good = !rec->h.flags && json_parse(rec->body, rec->len, NULL, &a, &root, err) == 0 &&
                json_i64(json_get(root, "done"), &done) && json_i64(json_get(root, "bytes"), &bytes) && done >= 0 &&
                done <= bytes && bytes <= BYTES_MAX;
    if (good)
        m->transfer = (struct member_transfer){done, bytes};
    return good ? 0 : err_set(err, ERR_PROTO, "PROGRESS: rank %u must say \"done\" of \"bytes\"", m->rank);
}

// Returns true if a has a smaller part of its bytes than b.
static bool is_behind(const struct member_transfer *a, const struct member_transfer *b)
{
    return (double)a->done * (double)b->bytes < (double)b->done * (double)a->bytes;
}

void transfer_progress_write(const struct group *g, struct json_writer *w)
{
    const struct member *slowest = NULL;
    int64_t done = 0, bytes = 0, ranks = 0, complete = 0;
    for (uint32_t i = 0; i < g->world; i++) {
        const struct member *m = g->ranks[i].member;
        if (!m || !m->transfer.bytes)
            continue;
        ranks++;
        done += m->transfer.done;
        bytes += m->transfer.bytes;
        complete += m->transfer.done == m->transfer.bytes;
        if (!slowest || is_behind(&m->transfer, &slowest->transfer))
            slowest = m;
    }
    if (slowest)
        writer_print(w, "transfer",
                     "{'done':%" PRId64 ",'bytes':%" PRId64 ",'ranks':%" PRId64 ",'complete':%" PRId64
                     ",'slowest':%" PRId64 "}",
                     done, bytes, ranks, complete, (int64_t)slowest->rank);
}
