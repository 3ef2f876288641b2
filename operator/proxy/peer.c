// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void peer_init(struct peer *p, struct list *changes, struct record_writer *out, void *owner)
{
    *p = (struct peer){.out = out, .owner = owner, .read = true, .changes = changes};
    list_init(&p->changed);
}

void peer_done(struct peer *p)
{
    list_remove(&p->changed);
    free(TAKE_PTR(p->close_reason));
    p->out = NULL;
}

void peer_changed(struct peer *p)
{
    if (p->out && list_empty(&p->changed))
        list_append(p->changes, &p->changed);
}

void peer_close(struct peer *p, int code, const char *fmt, ...)
{
    if (p->close_code)
        return;
    char reason[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    p->close_code = code;
    p->close_reason = xstrdup(reason);
    peer_changed(p);
}

bool peer_pause(struct peer *p, bool pause, uint32_t id, uint32_t rank)
{
    const struct record_header h = {.type = pause ? RECORD_HOLD : RECORD_GO, .call = id, .rank = rank};
    struct err err = ERR_INIT;
    if (!p->out || p->close_code) // there is nobody to tell
        return true;
    if (record_writer_copy(p->out, &h, NULL, 0, &err) < 0)
        return false;
    peer_changed(p);
    return true;
}
