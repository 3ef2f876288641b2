// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_flow.h"

#include "common/base/mem.h"

#include <stdlib.h>

enum { ROUNDS = 2 }; // that are under way at a time

struct pair {
    int rank;
    struct transfer_cursor cursor;
    uint64_t bytes, moved;
    size_t pieces;
};

struct nccl_message {
    char *at;
    size_t len;
    int rank;
};

struct unpacking { // a packed run that a receiver has to copy to its place
    char *to, *from;
    size_t len;
};

struct round {
    char *packed; // a part of the memory of the flow
    void *event;  // behind the last copy of the round
    struct unpacking *unpackings;
    size_t n_unpackings, unpackings_size;
    struct after { // for each pair: its state when the round is done
        uint64_t moved;
        size_t pieces;
    } * after;
};

struct nccl_flow {
    const struct nccl_link *link;
    const struct blocks *blocks;
    bool out;
    struct nccl_flow_sizes sizes;
    struct pair *pairs;
    size_t n, most;
    char *packed; // on the device
    struct round rounds[ROUNDS];
    size_t begun, done; // rounds
    bool begins;        // NCCL has not put the last round on the stream yet
    struct nccl_message *messages;
    size_t n_messages, messages_size;
};

int nccl_flow_new(const struct nccl_link *link, const struct blocks *blocks, bool out, size_t most,
                  const struct nccl_flow_sizes *sizes, struct nccl_flow **ret, struct err *err)
{
    struct nccl_flow *f = xcalloc(1, sizeof *f);
    struct device *device = blocks->gpu->device;
    *f = (struct nccl_flow){.link = link, .blocks = blocks, .out = out, .sizes = *sizes, .most = most};
    f->pairs = xcalloc(most + 1, sizeof *f->pairs);
    int r = blocks_alloc(blocks, ROUNDS * most * sizes->round, (void **)&f->packed, err);
    for (size_t i = 0; i < ROUNDS; i++) {
        f->rounds[i].packed = f->packed + i * most * sizes->round;
        f->rounds[i].after = xcalloc(most + 1, sizeof *f->rounds[i].after);
        if (r == 0)
            r = device_event_new(device, &f->rounds[i].event, err);
    }
    if (r < 0)
        nccl_flow_free(TAKE_PTR(f));
    *ret = f;
    return r;
}

void nccl_flow_free(struct nccl_flow *f)
{
    if (!f)
        return;
    const struct gpu_copier *gpu = f->blocks->gpu;
    for (size_t i = 0; i < ROUNDS; i++) {
        device_event_free(gpu->device, f->rounds[i].event);
        free(f->rounds[i].unpackings);
        free(f->rounds[i].after);
    }
    sweeper_drop(gpu->sweeper, gpu->device, f->packed);
    free(f->messages);
    free(f->pairs);
    free(f);
}

struct transfer_cursor *nccl_flow_add(struct nccl_flow *f, int rank)
{
    f->pairs[f->n] = (struct pair){.rank = rank};
    return &f->pairs[f->n++].cursor;
}

uint64_t nccl_flow_moved(const struct nccl_flow *f, size_t pair)
{
    return f->pairs[pair].moved;
}

size_t nccl_flow_pieces(const struct nccl_flow *f, size_t pair)
{
    return f->pairs[pair].pieces;
}

// Rounds

static bool has_more(const struct nccl_flow *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->pairs[i].cursor.left)
            return true;
    return false;
}

bool nccl_flow_is_over(const struct nccl_flow *f)
{
    return f->done == f->begun && !has_more(f);
}

static void add_message(struct nccl_flow *f, char *at, size_t len, int rank)
{
    MEM_GROW(f->messages, f->n_messages, f->messages_size);
    f->messages[f->n_messages++] = (struct nccl_message){at, len, rank};
}

static int pack(struct nccl_flow *f, struct round *r, char *packed, char *at, size_t len, struct err *err)
{
    if (f->out)
        return device_copy(f->blocks->gpu->device, packed, at, len, f->link->stream, err);
    MEM_GROW(r->unpackings, r->n_unpackings, r->unpackings_size);
    r->unpackings[r->n_unpackings++] = (struct unpacking){at, packed, len};
    return 0;
}

// Packed runs that follow each other are one message.
static int fill_pair(struct nccl_flow *f, struct round *r, size_t pair, struct err *err)
{
    struct pair *p = &f->pairs[pair];
    char *packed = r->packed + pair * f->sizes.round, *begun = packed;
    uint64_t left = f->sizes.round;
    struct transfer_chunk k;
    int code = 0;
    for (uint32_t n = 0; code == 0 && n < f->sizes.runs && left && transfer_cursor_next(&p->cursor, left, &k); n++) {
        char *at = (char *)f->blocks->list[f->out ? k.source : k.destination].data + (f->out ? k.from : k.to);
        left -= k.len;
        if (k.len < f->sizes.packed) {
            code = pack(f, r, packed, at, k.len, err);
            packed += k.len;
            continue;
        }
        if (packed > begun)
            add_message(f, begun, (size_t)(packed - begun), p->rank);
        begun = packed;
        add_message(f, at, k.len, p->rank);
    }
    if (packed > begun)
        add_message(f, begun, (size_t)(packed - begun), p->rank);
    r->after[pair] = (struct after){p->bytes - p->cursor.left, p->cursor.i};
    return code;
}

static int move_messages(struct nccl_flow *f)
{
    const struct nccl_library *nccl = f->link->comm.f;
    void *comm = f->link->comm.handle, *stream = f->link->stream;
    int result = nccl->group_start();
    if (result != NCCL_OK)
        return result;
    for (size_t i = 0; i < f->n_messages && (result == NCCL_OK || result == NCCL_IN_PROGRESS); i++) {
        const struct nccl_message *m = &f->messages[i];
        result = f->out ? nccl->send(m->at, m->len, NCCL_U8, m->rank, comm, stream)
                        : nccl->recv(m->at, m->len, NCCL_U8, m->rank, comm, stream);
    }
    int ended = nccl->group_end();
    return result == NCCL_OK || result == NCCL_IN_PROGRESS ? ended : result;
}

static int begin_round(struct nccl_flow *f, struct err *err)
{
    struct round *r = &f->rounds[f->begun % ROUNDS];
    int code = 0;
    f->n_messages = r->n_unpackings = 0;
    for (size_t i = 0; code == 0 && i < f->n; i++)
        code = fill_pair(f, r, i, err);
    if (code < 0)
        return code;
    int result = move_messages(f);
    if (result != NCCL_OK && result != NCCL_IN_PROGRESS)
        return nccl_comm_fail(&f->link->comm, result, "weights", err);
    f->begun++;
    f->begins = true;
    return 0;
}

// NCCL has put the last round on the stream.
static int end_round(struct nccl_flow *f, struct err *err)
{
    struct round *r = &f->rounds[(f->begun - 1) % ROUNDS];
    struct device *device = f->blocks->gpu->device;
    int code = 0;
    f->begins = false;
    for (size_t i = 0; code == 0 && i < r->n_unpackings; i++)
        code =
            device_copy(device, r->unpackings[i].to, r->unpackings[i].from, r->unpackings[i].len, f->link->stream, err);
    return code < 0 ? code : device_event_record(device, r->event, f->link->stream, err);
}

// Returns 1 if the oldest round is done, 0 if it is not, or if none is under way.
static int take_round(struct nccl_flow *f, struct err *err)
{
    const struct round *r = &f->rounds[f->done % ROUNDS];
    if (f->done == f->begun - f->begins)
        return 0;
    int done = device_event_poll(f->blocks->gpu->device, r->event, err);
    for (size_t i = 0; done > 0 && i < f->n; i++) {
        f->pairs[i].moved = r->after[i].moved;
        f->pairs[i].pieces = r->after[i].pieces;
    }
    f->done += done > 0;
    return done;
}

int nccl_flow_step(struct nccl_flow *f, struct err *err)
{
    for (size_t i = 0; !f->begun && i < f->n; i++)
        f->pairs[i].bytes = f->pairs[i].cursor.left;
    int r = 0;
    while (r >= 0 && !nccl_flow_is_over(f)) {
        int begun = nccl_link_poll(f->link, "weights", err);
        r = begun < 0 ? begun : take_round(f, err);
        if (r == 0 && begun > 0 && f->begins)
            r = end_round(f, err);
        else if (r == 0 && begun > 0 && f->begun - f->done < ROUNDS && has_more(f))
            r = begin_round(f, err);
        else if (r == 0)
            return 0;
    }
    return r < 0 ? r : 1;
}
