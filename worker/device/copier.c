// SPDX-License-Identifier: Apache-2.0
#include "worker/device/copier.h"

#include "common/base/clock.h"
#include "common/base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 2 };
#define PIECE ((size_t)4 << 20)

struct piece {
    char *memory; // NULL = not allocated yet
    void *event;  // behind the last copy from or to the piece
};

struct copier {
    struct device *device;
    bool apart;
    void *stream;
    void *join; // an event on another stream, NULL = not made yet
    struct piece pieces[PIECES];
    size_t next; // the next piece to use, in turn
    bool late;   // the last wait has reached its limit
};

struct limit {
    int64_t until_ms; // DEVICE_NO_LIMIT = for ever
    const atomic_bool *canceled;
};

static struct limit patience_of(int64_t limit_ms, const atomic_bool *canceled)
{
    if (limit_ms != DEVICE_NO_LIMIT)
        limit_ms += clock_mono_ms(&clock_system);
    return (struct limit){limit_ms, canceled};
}

int copier_new(struct device *d, bool apart, struct copier **ret, struct err *err)
{
    struct copier *c = xcalloc(1, sizeof *c);
    c->device = d;
    c->apart = apart;
    int r = apart ? device_stream_new_apart(d, &c->stream, err) : device_stream_new(d, &c->stream, err);
    if (r < 0)
        free(TAKE_PTR(c));
    *ret = c;
    return r;
}

int copier_free(struct copier *c, int64_t limit_ms, struct err *err)
{
    int r = c ? copier_wait(c, c->late ? 0 : limit_ms, NULL, err) : 0;
    for (size_t i = 0; c && r != ERR_TIMEOUT && i < PIECES; i++) {
        device_unpin(c->device, c->pieces[i].memory);
        device_event_free(c->device, c->pieces[i].event);
    }
    if (c && r != ERR_TIMEOUT) {
        device_event_free(c->device, c->join);
        device_stream_free(c->device, c->stream);
    }
    free(c);
    return r == ERR_TIMEOUT ? r : 0;
}

void *copier_stream(const struct copier *c)
{
    return c->stream;
}

bool copier_is_late(const struct copier *c)
{
    return c->late;
}

bool copier_is_apart(const struct copier *c)
{
    return c->apart;
}

int copier_join(struct copier *c, void *stream, struct err *err)
{
    int r = c->join ? 0 : device_event_new(c->device, &c->join, err);
    if (r == 0)
        r = device_event_record(c->device, c->join, stream, err);
    return r < 0 ? r : device_event_await(c->device, c->join, c->stream, err);
}

typedef int (*wait_fn)(struct device *d, void *what, int64_t limit_ms, const atomic_bool *canceled, struct err *err);

static int wait_for(struct copier *c, wait_fn wait, void *what, const struct limit *p, struct err *err)
{
    int64_t left = p->until_ms == DEVICE_NO_LIMIT ? p->until_ms : p->until_ms - clock_mono_ms(&clock_system);
    int r = wait(c->device, what, MAX(left, (int64_t)0), p->canceled, err);
    c->late = r == ERR_TIMEOUT;
    return r;
}

int copier_wait(struct copier *c, int64_t limit_ms, const atomic_bool *canceled, struct err *err)
{
    const struct limit p = patience_of(limit_ms, canceled);
    return wait_for(c, device_stream_wait, c->stream, &p, err);
}

// Returns the next piece when the device does not use it any more.
static int take_piece(struct copier *c, const struct limit *patience, struct piece **ret, struct err *err)
{
    struct piece *p = *ret = &c->pieces[c->next++ % PIECES];
    int r = p->event ? wait_for(c, device_event_wait, p->event, patience, err)
                     : device_event_new(c->device, &p->event, err);
    if (r == 0 && !p->memory)
        r = device_pin(c->device, PIECE, (void **)&p->memory, err);
    return r;
}

static int begin_copy(struct copier *c, struct piece *p, void *to, const void *from, size_t len, struct err *err)
{
    int r = device_copy(c->device, to, from, len, c->stream, err);
    return r < 0 ? r : device_event_record(c->device, p->event, c->stream, err);
}

int copier_upload(struct copier *c, void *to, const void *from, size_t len, int64_t limit_ms,
                  const atomic_bool *canceled, struct err *err)
{
    const struct limit patience = patience_of(limit_ms, canceled);
    int r = 0;
    for (size_t at = 0; r == 0 && at < len; at += PIECE) {
        struct piece *p;
        size_t n = MIN(PIECE, len - at);
        r = take_piece(c, &patience, &p, err);
        if (r == 0) {
            memcpy(p->memory, (const char *)from + at, n);
            r = begin_copy(c, p, (char *)to + at, p->memory, n, err);
        }
    }
    return r;
}

int copier_download(struct copier *c, void *to, const void *from, size_t len, int64_t limit_ms,
                    const atomic_bool *canceled, struct err *err)
{
    const struct limit patience = patience_of(limit_ms, canceled);
    struct piece *all[PIECES] = {NULL};
    size_t begun = 0, taken = 0; // bytes
    int r = 0;
    while (r == 0 && taken < len) {
        for (size_t n; r == 0 && begun < len && begun - taken < PIECES * PIECE; begun += n) {
            struct piece **p = &all[begun / PIECE % PIECES];
            n = MIN(PIECE, len - begun);
            r = take_piece(c, &patience, p, err);
            if (r == 0)
                r = begin_copy(c, *p, (*p)->memory, (const char *)from + begun, n, err);
        }
        const struct piece *first = all[taken / PIECE % PIECES];
        size_t n = MIN(PIECE, len - taken);
        if (r == 0)
            r = wait_for(c, device_event_wait, first->event, &patience, err);
        if (r == 0)
            memcpy((char *)to + taken, first->memory, n);
        taken += n;
    }
    return r;
}
