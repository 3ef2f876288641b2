// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/future.h"

#include "common/base/mem.h"

#include <stdlib.h>

struct notice {
    struct list link; // of the client
    uint64_t id;
};

void future_notify(struct cadre_client *c, uint64_t id)
{
    struct notice *n = xmalloc(sizeof *n);
    n->id = id;
    list_append(&c->notices, &n->link);
}

uint64_t future_notified(struct cadre_client *c)
{
    if (list_empty(&c->notices))
        return 0;
    struct notice *n = CONTAINER_OF(list_pop(&c->notices), struct notice, link);
    uint64_t id = n->id;
    free(n);
    return id;
}

void future_keep(struct cadre_client *c, struct pending *p, const struct record *r, const cadre_client_error *error)
{
    struct err err = ERR_INIT;
    p->answered = true;
    c->n_kept++;
    c->n_promised--;
    list_append(c->threads ? &c->handed_out : &c->finished, &p->link);
    if (p->watched)
        future_notify(c, p->id);
    if (r && (p->result = r->blob ? blob_ref(r->blob) : blob_copy(r->body, r->len, c->quota)))
        p->text = (cadre_client_json){r->blob ? r->body : p->result->data, r->len};
    if (p->result && !error)
        return;
    p->fault = xmalloc(sizeof *p->fault);
    if (error) {
        *p->fault = *error;
        return;
    }
    err_set(&err, ERR_LIMIT, "%s() ran, but there is no room to keep %zu bytes of its result: %zu bytes are in use",
            p->method, r->len, quota_used(c->quota));
    fault_from(p->fault, &err, true);
}

void future_drop(struct cadre_client *c, struct pending *p)
{
    list_remove(&p->link);
    blob_unref(TAKE_PTR(p->result));
    free(TAKE_PTR(p->fault));
    c->n_kept--;
    pendings_give(&c->calls, p);
}

void futures_done(struct cadre_client *c)
{
    LIST_FOREACH(l, &c->finished)
        future_drop(c, CONTAINER_OF(l, struct pending, link));
    LIST_FOREACH(l, &c->handed_out)
        future_drop(c, CONTAINER_OF(l, struct pending, link));
    while (future_notified(c))
        ;
    blob_unref(c->taken);
}
