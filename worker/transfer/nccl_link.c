// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_link.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "worker/collective/nccl_closing.h"

#include <stdlib.h>
#include <string.h>

// Blocks without bytes may be anywhere.
static bool all_on_device(const struct blocks *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].len && !b->list[i].on_device)
            return false;
    return b->gpu != NULL;
}

static void drop_broken(struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (l->number && nccl_link_poll(l, "", &ignored) != 1)
        nccl_link_drop(l, b);
}

static uint64_t choose_process(void)
{
    struct rand r;
    rand_seed_system(&r);
    return rand_u64(&r) | 1;
}

bool nccl_link_fact(struct nccl_link *l, const struct blocks *b, struct nccl_fact *ret)
{
    struct err ignored = ERR_INIT;
    int version = 0;
    if (nccl_library_blocks() || !all_on_device(b))
        return false;
    const struct nccl_library *f = nccl_library_load(&ignored);
    if (!f || f->version(&version) != NCCL_OK || version < NCCL_CONFIG_VERSION)
        return false;
    drop_broken(l, b);
    if (!l->process)
        l->process = choose_process();
    *ret = (struct nccl_fact){.version = (uint32_t)version,
                              .number = l->number,
                              .rank = (uint32_t)l->rank,
                              .n = (uint32_t)l->n,
                              .process = l->process};
    memcpy(ret->gpu, device_uuid(b->gpu->device), sizeof ret->gpu);
    return true;
}

int nccl_link_unique_id(struct nccl_id *ret, struct err *err)
{
    const struct nccl_comm none = {.f = nccl_library_load(err)};
    int result = none.f ? none.f->unique_id(ret) : NCCL_OK;
    return !none.f ? err->code : result == NCCL_OK ? 0 : nccl_comm_fail(&none, result, "a unique id", err);
}

int nccl_link_begin(struct nccl_link *l, uint64_t number, int rank, int n, const struct nccl_id *id, struct err *err)
{
    nccl_link_drop(l, NULL);
    l->number = number;
    l->rank = rank;
    l->n = n;
    l->comm.f = nccl_library_load(err);
    int r = l->comm.f ? device_open(&l->device, err) : err->code;
    if (r == 0)
        r = device_stream_new_apart(l->device, &l->stream, err);
    return r < 0 ? r : nccl_comm_begin(&l->comm, n, rank, id, err);
}

int nccl_link_poll(const struct nccl_link *l, const char *what, struct err *err)
{
    return nccl_comm_poll(&l->comm, what, err);
}

// The device and the stream that a communicator uses until NCCL has ended it.
struct used {
    struct device *device;
    void *stream;
};

static void free_used(void *ctx)
{
    struct used *u = ctx;
    struct err ignored = ERR_INIT;
    if (device_enter(u->device, &ignored) == 0) {
        device_stream_free(u->device, u->stream);
        device_leave(u->device);
    }
    device_close(u->device);
    free(u);
}

// Kernels that wait for other members use the memory of both sides until they end.
static void let_copies_wait(const struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (!b || !l->stream || device_enter(l->device, &ignored) < 0)
        return;
    (void)copier_join(b->gpu->copier, l->stream, &ignored);
    device_leave(l->device);
}

void nccl_link_drop(struct nccl_link *l, const struct blocks *b)
{
    if (l->device) {
        struct used *used = xcalloc(1, sizeof *used);
        *used = (struct used){l->device, l->stream};
        struct nccl_closing *closing = nccl_closing_new(&l->comm, true, l->device);
        (void)nccl_closing_wait(closing);
        let_copies_wait(l, b);
        nccl_closing_end(closing, free_used, used);
    }
    *l = (struct nccl_link){.refusal = l->refusal, .process = l->process};
}
