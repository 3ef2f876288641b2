// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/uplinks.h"

#include "common/base/str.h"

void uplinks_init(struct uplinks *t, const struct uplink_config *config)
{
    struct err unusable = ERR_INIT; // dialing reports it
    *t = (struct uplinks){.config = *config};
    list_init(&t->leaving);
    if (!str_starts(config->settings->address, "unix:"))
        t->addresses = ws_addresses_new(config->loop, config->settings->address, &unusable);
    t->config.addresses = t->addresses;
    t->config.memory = &t->memory;
    t->now = uplink_new(&t->config, NULL, NULL);
}

static void drop(struct uplinks *t, struct uplink *u)
{
    t->n_leaving--;
    uplink_free(u);
}

void uplinks_done(struct uplinks *t)
{
    LIST_FOREACH(l, &t->leaving)
        drop(t, CONTAINER_OF(l, struct uplink, link));
    uplink_free(TAKE_PTR(t->now));
    ws_addresses_free(t->addresses);
    memory_free(t->memory);
}

bool uplinks_move(struct uplinks *t, struct err *why)
{
    struct uplink *old = t->now;
    if (t->n_leaving == UPLINKS_LEAVING_MAX)
        return false;
    err_set(why, ERR_UNAVAILABLE, "the proxy at %s said goodbye", old->where);
    t->n_leaving++;
    list_append(&t->leaving, &old->link);
    t->now = uplink_new(&t->config, old, why);
    return true;
}

void uplinks_flush(struct uplinks *t)
{
    uplink_flush(t->now);
    LIST_FOREACH(l, &t->leaving)
        uplink_flush(CONTAINER_OF(l, struct uplink, link));
}

bool uplinks_sweep(struct uplinks *t)
{
    uint32_t before = t->n_leaving;
    LIST_FOREACH(l, &t->leaving) {
        struct uplink *u = CONTAINER_OF(l, struct uplink, link);
        if (u->n_sent == 0 && u->state == UPLINK_LEAVING)
            uplink_leave(u, FRAME_CLOSE_GOING_AWAY, "the client has moved to another replica");
        if (uplink_gone(u))
            drop(t, u);
    }
    return t->n_leaving != before;
}

void uplinks_end(struct uplinks *t, const char *reason)
{
    uplink_leave(t->now, FRAME_CLOSE_NORMAL, reason);
    LIST_FOREACH(l, &t->leaving)
        uplink_leave(CONTAINER_OF(l, struct uplink, link), FRAME_CLOSE_NORMAL, reason);
}

bool uplinks_gone(const struct uplinks *t)
{
    bool gone = uplink_gone(t->now);
    LIST_FOREACH(l, &t->leaving)
        gone = gone && uplink_gone(CONTAINER_OF(l, struct uplink, link));
    return gone;
}
