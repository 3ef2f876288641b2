// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_queue.h"

#include "common/base/mem.h"

#include <stdlib.h>

enum { FREE_MAX = 4096 }; // this much of an answer can be queued even if no memory is left

struct message {
    struct list link;
    bool text;
    size_t len, sent, cost;
    size_t charged;
    struct quota *quota; // NULL = not counted
    struct parts parts;
};

void ws_queue_init(struct ws_queue *q, size_t max_bytes)
{
    *q = (struct ws_queue){0};
    record_writer_init(&q->records, max_bytes);
    list_init(&q->messages);
}

static void message_free(struct ws_queue *q, struct message *m)
{
    q->message_bytes -= m->cost - m->sent;
    list_remove(&m->link);
    quota_refund(m->quota, m->charged);
    quota_unref(m->quota);
    parts_done(&m->parts);
    free(m);
}

void ws_queue_done(struct ws_queue *q)
{
    record_writer_done(&q->records);
    LIST_FOREACH(l, &q->messages)
        message_free(q, CONTAINER_OF(l, struct message, link));
    quota_unref(TAKE_PTR(q->quota));
    q->high = false;
}

void ws_queue_charge(struct ws_queue *q, struct quota *quota)
{
    quota_unref(q->quota);
    q->quota = quota_ref(quota);
}

size_t ws_queue_bytes(const struct ws_queue *q)
{
    return q->records.queue.bytes + q->message_bytes;
}

static struct message *message_new(struct ws_queue *q, size_t len, size_t uncharged, struct err *err)
{
    size_t cost = sizeof(struct message) + len, charge = sizeof(struct message) + uncharged;
    if (q->message_bytes > q->records.queue.max_bytes || cost > q->records.queue.max_bytes - q->message_bytes) {
        err_set(err, ERR_LIMIT, "cannot queue a message of %zu bytes: %zu wait already, the peer reads too slowly", len,
                q->message_bytes);
        return NULL;
    }
    bool charged = quota_charge(q->quota, charge);
    if (!charged && (charge > FREE_MAX || q->message_bytes)) {
        err_set(err, ERR_LIMIT,
                "no room for a message of %zu bytes: data that waits for this peer, or for others of its namespace, "
                "uses all memory of the namespace; they must read it",
                len);
        return NULL;
    }
    struct message *m = xcalloc(1, sizeof *m);
    *m = (struct message){.len = len, .cost = cost, .charged = charge, .quota = charged ? quota_ref(q->quota) : NULL};
    list_append(&q->messages, &m->link);
    q->message_bytes += cost;
    return m;
}

int ws_queue_parts(struct ws_queue *q, bool text, struct parts *parts, struct err *err)
{
    struct message *m = message_new(q, parts->len, parts_uncharged(parts), err);
    if (m) {
        m->text = text;
        parts_move(&m->parts, parts);
    }
    parts_done(parts);
    return m ? 0 : err->code;
}

int ws_queue_message(struct ws_queue *q, bool text, const void *data, size_t len, struct err *err)
{
    struct message *m = message_new(q, len, len, err);
    if (!m)
        return err->code;
    m->text = text;
    parts_add_copy(&m->parts, data, len, NULL);
    return 0;
}

bool ws_queue_drained(struct ws_queue *q)
{
    size_t bytes = ws_queue_bytes(q);
    if (bytes > WS_HIGH_MARK)
        q->high = true;
    if (!q->high || bytes > WS_LOW_MARK)
        return false;
    q->high = false;
    return true;
}

static void fill_message(struct ws_queue *q, char *out, size_t size, struct ws_chunk *ret)
{
    struct message *m = CONTAINER_OF(q->messages.next, struct message, link);
    size_t n = MIN(size, m->len - m->sent);
    *ret = (struct ws_chunk){m->sent   ? FRAME_CONTINUATION
                             : m->text ? FRAME_TEXT
                                       : FRAME_BINARY,
                             m->sent + n == m->len, n};
    parts_read(&m->parts, out, n);
    m->sent += n;
    q->message_bytes -= n;
    if (ret->fin)
        message_free(q, m);
}

bool ws_queue_fill(struct ws_queue *q, char *out, size_t size, struct ws_chunk *ret)
{
    if (list_empty(&q->messages)) {
        *ret = (struct ws_chunk){FRAME_BINARY, true, record_writer_fill(&q->records, out, size)};
        return ret->len > 0;
    }
    fill_message(q, out, size, ret);
    return true;
}

bool ws_queue_gather(struct ws_queue *q, char *out, size_t size, struct gather *g, struct ws_chunk *ret)
{
    if (list_empty(&q->messages)) {
        *ret = (struct ws_chunk){FRAME_BINARY, true, record_writer_gather(&q->records, out, size, g)};
        return ret->len > 0;
    }
    fill_message(q, out, size, ret);
    gather_add(g, out, ret->len, NULL);
    return true;
}
