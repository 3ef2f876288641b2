// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/session_state.h"

#include "operator/proxy/tenant.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LET_IN = 8 }; // most bodies that raise the marks

void session_order_unref(struct session_order *o)
{
    if (--o->refs)
        return;
    assert(!o->lasting && !o->bookkeeping);
    free(o);
}

bool session_ended(const struct session *s)
{
    return !list_empty(&s->ended);
}

// Between the two marks, nothing changes.
void session_flow(struct session *s)
{
    if (!s->peer.out)
        return;
    const struct router_config *config = &s->router->config;
    size_t charged = quota_used(s->quota), queued = s->peer.out->queue.bytes;
    bool over = s->peer.out->queue.uncharged; // its answers, or answers of others in its namespace, fill the share
    if (s->peer.read && !over && MAX(charged, queued) <= config->high_mark) // nearly always
        return;
    // Each body that passes may use this much: the bytes that arrive before a HOLD has taken effect. Arguments that
    // wait for groups may use as much in all, so that the client's other calls are read, and also a cancel of the one
    // that waits.
    size_t body = 2 * config->pause_mark, let_in = MIN(s->n_streams, (uint32_t)LET_IN) * body;
    size_t waiting = s->parked + MIN(s->waiting, LET_IN * body);
    // Calls run as long as they like. If the client was not read meanwhile, its renewals would wait, and its groups
    // would be deleted. The limit of its calls bounds their bookkeeping.
    waiting += s->order->bookkeeping;
    size_t used = MAX(charged - MIN(charged, waiting), queued);
    if (s->peer.read ? !over && used <= config->high_mark + let_in : over || used >= config->low_mark + let_in)
        return;
    s->peer.read = !s->peer.read;
    if (s->peer.read)
        list_remove(&s->stopped);
    else
        list_append(&s->router->stopped, &s->stopped);
    peer_changed(&s->peer);
}

bool session_takes_body(const struct session *s)
{
    const struct record_queue *q = &s->peer.out->queue;
    return !q->uncharged && q->bytes <= s->router->config.high_mark;
}

static int sent(struct session *s, int r, const struct err *err)
{
    peer_changed(&s->peer);
    if (r < 0)
        peer_close(&s->peer, ERR_LIMIT, "the client reads its answers too slowly: %s", err->msg);
    return r;
}

int session_send(struct session *s, const struct record_header *h, const struct record_part *parts, size_t n)
{
    struct err err = ERR_INIT;
    if (!s->peer.out || s->peer.close_code)
        return ERR_GONE;
    return sent(s, record_writer_push(s->peer.out, h, parts, n, &err), &err);
}

int session_copy(struct session *s, const struct record_header *h, const void *body, size_t len)
{
    struct err err = ERR_INIT;
    if (!s->peer.out || s->peer.close_code)
        return ERR_GONE;
    return sent(s, record_writer_copy(s->peer.out, h, body, len, &err), &err);
}

void session_fail(struct session *s, uint32_t id, const struct call_failure *f, const char *trace, bool unsent,
                  bool again)
{
    const struct record_header h = {
        .type = RECORD_ERROR, .call = id, .rank = f->rank >= 0 ? (uint32_t)f->rank : RECORD_GROUP};
    _cleanup_(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
    call_failure_encode(f, trace, unsent, again, &body);
    session_copy(s, &h, body.data, body.len);
    s->router->n_errors[call_failure_kind(f)]++;
}

void session_answer(struct session *s, uint32_t id, const char *json, size_t len)
{
    session_copy(s, &(struct record_header){.type = RECORD_RESULT, .call = id, .rank = RECORD_GROUP}, json, len);
}

void session_refuse(struct session *s, uint32_t id, const struct err *err)
{
    struct call_failure f;
    call_failure_from(&f, err);
    session_fail(s, id, &f, "", true, false);
}

static bool is_found(const struct session *s, const struct call_head *head)
{
    return s->found && s->found_at == s->router->n_group_changes && head->group &&
           strncmp(s->found->name, head->group, head->group_len) == 0 && !s->found->name[head->group_len];
}

struct group *session_group(struct session *s, const struct call_head *head, struct err *err)
{
    char key[GROUP_KEY_SIZE];
    if (is_found(s, head))
        return s->found;
    const char *name = head->group, *slash = name ? memchr(name, '/', head->group_len) : NULL;
    size_t ns_len = strlen(s->tenant->ns);
    if (slash && ((size_t)(slash - name) != ns_len || memcmp(name, s->tenant->ns, ns_len) != 0)) {
        err_set(err, ERR_FORBIDDEN, "this connection is for the groups of namespace %s; open another one for %.*s",
                s->tenant->ns, (int)head->group_len, name);
        return NULL;
    }
    if (slash)
        snprintf(key, sizeof key, "%.*s", (int)head->group_len, name);
    else if (name)
        group_key(key, s->tenant->ns, name, head->group_len);
    else
        snprintf(key, sizeof key, "%s", s->group);
    struct group *g = key[0] ? map_get(&s->router->by_key, key) : NULL;
    if (!g && !key[0])
        err_set(err, ERR_INVALID, "the call names no \"group\", and neither does the path of this connection");
    else if (!g)
        err_set(err, ERR_NOT_FOUND, "there is no WorkerGroup %s", key);
    s->found = g;
    s->found_at = s->router->n_group_changes;
    return g;
}
