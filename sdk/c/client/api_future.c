// SPDX-License-Identifier: Apache-2.0
// The public functions for answers that are kept, and for waiting.
#include "common/base/mem.h"
#include "sdk/c/client/client.h"
#include "sdk/c/client/client_threads.h"
#include "sdk/c/client/future.h"

#include <inttypes.h>
#include <stdlib.h>

static bool is_open(const struct cadre_client *c, uint64_t id)
{
    const struct pending *p = pendings_find(&c->calls, id);
    return p && !p->answered;
}

static void refuse_taken(uint64_t id, struct err *err)
{
    err_set(err, ERR_INVALID,
            "no answer to call %" PRIu64 ": it was taken or forgotten, or the call did not ask to keep it", id);
}

cadre_client_code cadre_client_get(cadre_client *c, uint64_t id, cadre_client_json *ret, cadre_client_error *error)
{
    struct err err = ERR_INIT;
    const struct pending *open = pendings_find(&c->calls, id);
    if (open && open->keep && c->turning && !open->answered) {
        err_set(&err, ERR_INVALID, "a callback cannot wait for a call");
        return fault_return(error, &err);
    }
    while (open && open->keep && is_open(c, id))
        client_turn(c, INT64_MAX);
    struct pending *p = pendings_find(&c->calls, id); // a callback may have forgotten it
    if (!p || !p->answered) {
        refuse_taken(id, &err);
        return fault_return(error, &err);
    }
    cadre_client_code code = p->fault ? p->fault->code : CADRE_CLIENT_OK;
    if (p->fault && error)
        *error = *p->fault;
    blob_unref(c->taken);
    c->taken = TAKE_PTR(p->result);
    if (c->taken && ret && !p->fault)
        *ret = p->text;
    future_drop(c, p);
    return code;
}

// Waits for a call. NULL: there is no such call, or it is still open.
static struct pending *await_answer(cadre_client *c, uint64_t id, int64_t end)
{
    const struct pending *open = pendings_find(&c->calls, id);
    while (open && open->keep && is_open(c, id) && client_pass(c, end))
        ;
    struct pending *p = pendings_find(&c->calls, id); // another thread may have taken or forgotten it meanwhile
    return p && p->answered ? p : NULL;
}

cadre_client_code cadre_client_take(cadre_client *c, uint64_t id, int64_t timeout_ms, cadre_client_json *ret,
                                    void **ret_memory, cadre_client_error *error)
{
    struct err err = ERR_INIT;
    cadre_client_code code = CADRE_CLIENT_OK;
    *ret_memory = NULL;
    client_enter(c);
    struct pending *p = await_answer(c, id, client_end_of(timeout_ms));
    if (p) {
        code = p->fault ? p->fault->code : CADRE_CLIENT_OK;
        if (p->fault && error)
            *error = *p->fault;
        *ret = p->text;
        *ret_memory = TAKE_PTR(p->result);
        future_drop(c, p);
    } else if (!is_open(c, id)) {
        refuse_taken(id, &err);
        code = fault_return(error, &err);
    }
    client_leave_waiting(c);
    return code;
}

void cadre_client_give_back(cadre_client *c, void *memory)
{
    client_enter(c);
    blob_unref(memory);
    client_leave(c);
}

static void forget(struct cadre_client *c, uint64_t id)
{
    struct pending *p = pendings_find(&c->calls, id);
    if (p && p->answered) {
        future_drop(c, p);
    } else if (p && p->keep) {
        p->keep = false;
        c->n_promised--;
    }
}

void cadre_client_forget(cadre_client *c, uint64_t id)
{
    client_enter(c);
    forget(c, id);
    client_leave(c);
}

int cadre_client_done(const cadre_client *c, uint64_t id)
{
    client_enter((cadre_client *)c);
    bool done = !is_open(c, id);
    client_leave((cadre_client *)c);
    return done;
}

int cadre_client_watch(cadre_client *c, uint64_t id)
{
    client_enter(c);
    struct pending *p = pendings_find(&c->calls, id);
    bool found = p && p->keep && c->threads;
    if (found && p->answered) {
        future_notify(c, id);
        client_tell(c);
    }
    if (found)
        p->watched = true;
    client_leave(c);
    return found;
}

// Both return the id of the next one. 0: the time is over, or none can come.

static uint64_t next_watched(struct cadre_client *c, int64_t end)
{
    bool in_time = true;
    while (list_empty(&c->notices) && in_time)
        in_time = client_watch(c, end);
    return future_notified(c);
}

static uint64_t next_finished(struct cadre_client *c, int64_t end)
{
    bool in_time = true;
    while (list_empty(&c->finished) && c->n_promised && !c->turning && in_time)
        in_time = client_pass(c, end);
    if (list_empty(&c->finished))
        return 0;
    struct list *l = list_pop(&c->finished);
    list_append(&c->handed_out, l);
    return CONTAINER_OF(l, struct pending, link)->id;
}

uint64_t cadre_client_next(cadre_client *c, int64_t timeout_ms)
{
    client_enter(c);
    int64_t end = client_end_of(timeout_ms);
    uint64_t id = c->threads ? next_watched(c, end) : next_finished(c, end);
    client_leave(c);
    return id;
}

// Several

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int check_ids(const struct cadre_client *c, const uint64_t *ids, size_t n, struct err *err)
{
    uint64_t *sorted = xmalloc(MAX(n, (size_t)1) * sizeof *sorted);
    memcpy(sorted, ids, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_ids);
    for (size_t i = 0; i < n && !err->code; i++)
        if (!pendings_knows(&c->calls, sorted[i]))
            err_set(err, ERR_INVALID, "%" PRIu64 " is not the id of a call of this client", sorted[i]);
        else if (i > 0 && sorted[i] == sorted[i - 1])
            err_set(err, ERR_INVALID, "call %" PRIu64 " is given twice", sorted[i]);
    free(sorted);
    return err->code;
}

static size_t count_ready(const struct cadre_client *c, const uint64_t *ids, size_t n)
{
    size_t ready = 0;
    for (size_t i = 0; i < n; i++)
        ready += !is_open(c, ids[i]);
    return ready;
}

// Moves ready calls, at most `max`, to the front. Both parts keep their order.
static size_t part(const struct cadre_client *c, uint64_t *ids, size_t n, size_t max)
{
    uint64_t *rest = xmalloc(n * sizeof *rest);
    size_t ready = 0, n_rest = 0;
    for (size_t i = 0; i < n; i++)
        if (ready < max && !is_open(c, ids[i]))
            ids[ready++] = ids[i];
        else
            rest[n_rest++] = ids[i];
    memcpy(ids + ready, rest, n_rest * sizeof *rest);
    free(rest);
    return ready;
}

static void await_some(struct cadre_client *c, const uint64_t *ids, size_t n, size_t num_returns, int64_t end)
{
    size_t ready = count_ready(c, ids, n);
    bool in_time = true;
    while (ready < num_returns && in_time && !c->turning) {
        uint64_t enough = c->answered + (num_returns - ready); // looking at all ids takes time
        do
            in_time = client_pass(c, end);
        while (in_time && c->answered < enough);
        ready = count_ready(c, ids, n);
    }
}

cadre_client_code cadre_client_wait_for(cadre_client *c, uint64_t *ids, size_t n, size_t num_returns,
                                        int64_t timeout_ms, size_t *ret_ready, cadre_client_error *error)
{
    struct err err = ERR_INIT;
    if (num_returns < 1 || num_returns > n) {
        err_set(&err, ERR_INVALID, "cannot wait for %zu of %zu calls: wait for at least 1, and at most all of them",
                num_returns, n);
        return fault_return(error, &err);
    }
    client_enter(c);
    if (check_ids(c, ids, n, &err) == 0) {
        await_some(c, ids, n, num_returns, client_end_of(timeout_ms));
        *ret_ready = part(c, ids, n, num_returns);
    }
    client_leave_waiting(c);
    return err.code ? fault_return(error, &err) : CADRE_CLIENT_OK;
}
