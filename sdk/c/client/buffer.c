// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/buffer.h"

#include "common/base/mem.h"

#include <stdlib.h>

struct buffer {
    struct list link; // in client->buffers
    struct blob *blob;
};

static struct buffer *find(const struct cadre_client *c, const void *data)
{
    LIST_FOREACH(l, &c->buffers) {
        struct buffer *b = CONTAINER_OF(l, struct buffer, link);
        if (b->blob->data == data)
            return b;
    }
    return NULL;
}

static void drop(struct buffer *b)
{
    list_remove(&b->link);
    blob_unref(b->blob);
    free(b);
}

char *buffer_new(struct cadre_client *c, size_t len)
{
    struct blob *blob = uplink_blob(c->uplinks.now, len, c->quota);
    if (!blob)
        return NULL;
    struct buffer *b = xcalloc(1, sizeof *b);
    b->blob = blob;
    list_init(&b->link);
    list_append(&c->buffers, &b->link);
    return blob->data;
}

void buffer_free(struct cadre_client *c, const void *data)
{
    struct buffer *b = data ? find(c, data) : NULL;
    if (b)
        drop(b);
}

void buffers_done(struct cadre_client *c)
{
    LIST_FOREACH(l, &c->buffers)
        drop(CONTAINER_OF(l, struct buffer, link));
}

struct blob *buffer_of(const struct cadre_client *c, const void *data, size_t len)
{
    const struct buffer *b = find(c, data);
    // A buffer that was made before the proxy offered shared memory is better copied there: then it goes by reference.
    return b && b->blob->len == len && (b->blob->area || uplink_lends(c->uplinks.now, len)) ? blob_ref(b->blob) : NULL;
}
