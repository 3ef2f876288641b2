// SPDX-License-Identifier: Apache-2.0
// A peer of this host that lends memory and gives back ours: records of a length and a type each, one after the other.
// Type 'b' is a descriptor of memory that it lends, any other a MEMORY or RETURN. Borrowed bytes lie in an area that
// the peer has.
#include "common/wire/share.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { AREA_SIZE = 1 << 20, KEPT_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char memory[AREA_SIZE];

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void send(void *ctx, enum record_type type, const char *body, size_t len)
{
    (void)ctx, (void)body;
    must((type == RECORD_MEMORY || type == RECORD_RETURN) && len > 0);
}

static void end(struct area *a)
{
    free(a);
}

static struct area *open_area(void *ctx, int fd, size_t size, struct err *err)
{
    (void)ctx;
    if (fd % 4 == 3 || size > AREA_SIZE) {
        err_set(err, ERR_INVALID, "it cannot be mapped");
        return NULL;
    }
    struct area *a = xcalloc(1, sizeof *a);
    *a = (struct area){.fd = fd, .base = memory, .size = size, .end = end};
    area_init(a);
    return a;
}

// Something of ours that the peer may give back.
static void lend(struct share *s, struct area *own, struct record_header *h)
{
    char out[SHARE_ROOM];
    struct blob *b = blob_in_area(own, memory, SHARE_MIN, 0);
    const struct record_part part = {b, 0, SHARE_MIN};
    if (share_takes(s, &part))
        must(share_write(s, h, &part, out) <= sizeof out);
    blob_unref(b);
}

static void borrow(struct share *s, const char *text, size_t len, struct blob **kept, size_t *n)
{
    struct err err = ERR_INIT;
    struct blob *b;
    if (share_borrow(s, text, len, &b, &err) < 0) {
        must(err.code == ERR_PROTO && err.msg[0]);
        return;
    }
    must(b->data >= memory && b->len <= (size_t)(memory + AREA_SIZE - b->data));
    if (*n < KEPT_MAX)
        kept[(*n)++] = b;
    else
        blob_unref(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct share s;
    struct area *own = xcalloc(1, sizeof *own);
    struct record_header h = {.type = RECORD_RESULT, .call = 1};
    struct blob *kept[KEPT_MAX];
    size_t n = 0;
    *own = (struct area){.fd = 9, .base = memory, .size = AREA_SIZE, .end = end};
    area_init(own);
    share_init(&s, &(struct share_config){.send = send, .open = open_area});
    share_offer(&s, own);
    bool good = true;
    for (const char *at = (const char *)data, *stop = at + size; good && stop - at >= 2;) {
        size_t len = MIN((uint8_t)at[0], (size_t)(stop - at - 2));
        struct err err = ERR_INIT;
        if (at[1] == 'b')
            borrow(&s, at + 2, len, kept, &n);
        else
            good = share_record(&s, at[1] & 1 ? RECORD_MEMORY : RECORD_RETURN, at + 2, len, &err) >= 0;
        must(good || err.msg[0]);
        lend(&s, own, &h);
        at += 2 + len;
    }
    while (n)
        blob_unref(kept[--n]);
    share_done(&s);
    area_unref(own);
    return 0;
}
