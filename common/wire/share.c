// SPDX-License-Identifier: Apache-2.0
#include "common/wire/share.h"

#include "common/base/le.h"
#include "common/base/mem.h"

#include <stdlib.h>

struct share_lent { // free numbers form a chain
    struct blob *blob;
    uint32_t next;
};

struct share_borrowed {
    uint32_t id; // the peer's number
    struct area *area;
};

struct offer {        // an area that the peer of a share knows
    struct list link; // of the share
    struct area_watch watch;
    struct share *share;
    struct area *area;
};

enum { NONE = UINT32_MAX };

void share_init(struct share *s, const struct share_config *config)
{
    *s = (struct share){.config = *config, .on = true, .free_lent = NONE};
    list_init(&s->offers);
}

static void offer_free(struct offer *o)
{
    list_remove(&o->watch.link);
    list_remove(&o->link);
    free(o);
}

void share_done(struct share *s)
{
    if (!s->on)
        return;
    s->on = s->lends = false;
    LIST_FOREACH(l, &s->offers)
        offer_free(CONTAINER_OF(l, struct offer, link));
    for (size_t i = 0; i < s->n_borrowed; i++) {
        s->borrowed[i].area->give = NULL;
        area_unref(s->borrowed[i].area);
    }
    for (uint32_t i = 0; i < s->n_lent; i++)
        blob_unref(TAKE_PTR(s->lent[i].blob));
    free(s->borrowed);
    free(s->lent);
    *s = (struct share){.on = false};
}

static void write_memory(char out[SHARE_MEMORY], uint32_t id, int fd, size_t size)
{
    le_put_u32(out, id);
    le_put_u32(out + 4, (uint32_t)fd);
    le_put_u64(out + 8, size);
}

static void send_memory(struct share *s, uint32_t id, int fd, size_t size)
{
    char body[SHARE_MEMORY];
    write_memory(body, id, fd, size);
    s->config.send(s->config.ctx, RECORD_MEMORY, body, sizeof body);
}

static void tell_gone(struct area_watch *w)
{
    struct offer *o = CONTAINER_OF(w, struct offer, watch);
    send_memory(o->share, o->area->id, -1, 0);
    offer_free(o);
}

static void note_offer(struct share *s, struct area *a)
{
    struct offer *o = xmalloc(sizeof *o);
    *o = (struct offer){.share = s, .area = a, .watch.gone = tell_gone};
    area_watch(a, &o->watch);
    list_append(&s->offers, &o->link);
}

void share_offer(struct share *s, struct area *a)
{
    note_offer(s, a);
    send_memory(s, a->id, a->fd, a->size);
}

// Records from the peer

static struct share_borrowed *find(const struct share *s, uint32_t id)
{
    for (size_t i = 0; i < s->n_borrowed; i++)
        if (s->borrowed[i].id == id)
            return &s->borrowed[i];
    return NULL;
}

static void give_back(struct area *a, const char *data, uint32_t tag)
{
    struct share *s = a->ctx;
    char body[4];
    (void)data;
    le_put_u32(body, tag);
    s->config.send(s->config.ctx, RECORD_RETURN, body, sizeof body);
}

static void forget_borrowed(struct share *s, struct share_borrowed *b)
{
    struct area *a = b->area;
    *b = s->borrowed[--s->n_borrowed];
    a->give = NULL; // the peer needs no RETURN
    area_unref(a);
}

static int take_memory(struct share *s, const char *body, size_t len, struct err *err)
{
    if (len != SHARE_MEMORY)
        return err_set(err, ERR_PROTO, "a MEMORY of %zu bytes", len);
    uint32_t id = le_get_u32(body);
    uint64_t size = le_get_u64(body + 8);
    struct share_borrowed *known = find(s, id);
    if (id == SHARE_TAKEN)
        return 1;
    if (known && size == 0) {
        forget_borrowed(s, known);
        return 0;
    }
    if (known || size == 0)
        return err_set(err, ERR_PROTO, "a MEMORY of area %u, which is%s known", id, known ? "" : " not");
    if (s->n_borrowed == SHARE_AREAS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d areas of memory", SHARE_AREAS_MAX);
    struct area *a = s->config.open(s->config.ctx, (int)le_get_u32(body + 4), (size_t)size, err);
    if (!a)
        return err->code;
    a->give = give_back;
    a->ctx = s;
    s->borrowed = xrealloc(s->borrowed, s->n_borrowed + 1, sizeof *s->borrowed);
    s->borrowed[s->n_borrowed++] = (struct share_borrowed){id, a};
    send_memory(s, SHARE_TAKEN, -1, 0);
    return 0;
}

static int take_returned(struct share *s, const char *body, size_t len, struct err *err)
{
    if (len % 4)
        return err_set(err, ERR_PROTO, "a RETURN of %zu bytes", len);
    for (size_t i = 0; i < len; i += 4) {
        uint32_t n = le_get_u32(body + i);
        if (n >= s->n_lent || !s->lent[n].blob)
            return err_set(err, ERR_PROTO, "a RETURN of %u, which was not lent", n);
        struct blob *b = TAKE_PTR(s->lent[n].blob);
        s->lent[n].next = s->free_lent;
        s->free_lent = n;
        blob_unref(b);
    }
    return 0;
}

int share_record(struct share *s, uint8_t type, const char *body, size_t len, struct err *err)
{
    if (!s->on)
        return err_set(err, ERR_PROTO, "a %s, although no memory is shared here", record_type_name(type));
    return type == RECORD_MEMORY ? take_memory(s, body, len, err) : take_returned(s, body, len, err);
}

int share_borrow(struct share *s, const char *descriptor, size_t len, struct blob **ret, struct err *err)
{
    if (!s->on || len != SHARE_DESCRIPTOR)
        return err_set(err, ERR_PROTO, "a reference of %zu bytes%s", len, s->on ? "" : " to memory that is not shared");
    const struct share_borrowed *b = find(s, le_get_u32(descriptor));
    uint64_t offset = le_get_u64(descriptor + 8), n = le_get_u64(descriptor + 16);
    if (!b || n < SHARE_MIN || offset > b->area->size || n > b->area->size - offset)
        return err_set(err, ERR_PROTO, "a reference outside of its area, or too short: area %u, %llu bytes at %llu",
                       le_get_u32(descriptor), (unsigned long long)n, (unsigned long long)offset);
    *ret = blob_in_area(b->area, b->area->base + offset, (size_t)n, le_get_u32(descriptor + 4));
    return 0;
}

// Lending

static bool has_room(const struct share *s)
{
    return s->free_lent != NONE || s->n_lent < SHARE_LENT_MAX;
}

bool share_takes(const struct share *s, const struct record_part *p)
{
    return s && s->lends && p->len >= SHARE_MIN && p->blob->area && has_room(s);
}

static uint32_t lend(struct share *s, struct blob *b)
{
    uint32_t n = s->free_lent;
    if (n != NONE) {
        s->free_lent = s->lent[n].next;
    } else {
        MEM_GROW(s->lent, s->n_lent, s->size_lent);
        n = s->n_lent++;
    }
    s->lent[n] = (struct share_lent){.blob = blob_ref(b)};
    return n;
}

bool share_has_lent(const struct share *s, const struct area *a)
{
    for (uint32_t i = 0; i < s->n_lent; i++)
        if (s->lent[i].blob && s->lent[i].blob->area == a)
            return true;
    return false;
}

static bool knows(const struct share *s, const struct area *a)
{
    LIST_FOREACH(l, &s->offers)
        if (CONTAINER_OF(l, struct offer, link)->area == a)
            return true;
    return false;
}

size_t share_write(struct share *s, const struct record_header *h, const struct record_part *p, char *out)
{
    struct area *a = p->blob->area;
    size_t used = 0;
    if (!knows(s, a)) {
        const struct record_header memory = {.type = RECORD_MEMORY, .rank = RECORD_GROUP, .len = SHARE_MEMORY};
        record_header_encode(out, &memory);
        write_memory(out + RECORD_HEADER_SIZE, a->id, a->fd, a->size);
        used = RECORD_HEADER_SIZE + SHARE_MEMORY;
        note_offer(s, a);
    }
    struct record_header shared = *h;
    shared.flags |= RECORD_SHARED;
    shared.len = SHARE_DESCRIPTOR;
    record_header_encode(out + used, &shared);
    used += RECORD_HEADER_SIZE;
    le_put_u32(out + used, a->id);
    le_put_u32(out + used + 4, lend(s, p->blob));
    le_put_u64(out + used + 8, (uint64_t)(p->blob->data + p->offset - a->base));
    le_put_u64(out + used + 16, p->len);
    return used + SHARE_DESCRIPTOR;
}
