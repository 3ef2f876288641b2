// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_link.h"

#include "common/base/mem.h"
#include "common/base/str.h"

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

// The variable overrides what the maker of a communicator asks for. A call that blocks would have no limit.
static bool calls_block(void)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    return blocking && !str_eq(blocking, "0");
}

static void drop_broken(struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (l->number && nccl_link_poll(l, "", &ignored) != 1)
        nccl_link_drop(l, b);
}

bool nccl_link_fact(struct nccl_link *l, const struct blocks *b, struct nccl_fact *ret)
{
    struct err ignored = ERR_INIT;
    int version = 0;
    if (l->refused || calls_block() || !all_on_device(b))
        return false;
    const struct nccl_library *f = nccl_library_load(&ignored);
    if (!f || f->version(&version) != NCCL_OK || version < NCCL_CONFIG_VERSION)
        return false;
    drop_broken(l, b);
    *ret = (struct nccl_fact){
        .version = (uint32_t)version, .number = l->number, .rank = (uint32_t)l->rank, .n = (uint32_t)l->n};
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
    *l = (struct nccl_link){.number = number, .rank = rank, .n = n, .comm = {.f = nccl_library_load(err)}};
    int r = l->comm.f ? device_open(&l->device, err) : err->code;
    if (r == 0)
        r = device_stream_new_apart(l->device, &l->stream, err);
    return r < 0 ? r : nccl_comm_begin(&l->comm, n, rank, id, err);
}

int nccl_link_poll(const struct nccl_link *l, const char *what, struct err *err)
{
    return nccl_comm_poll(&l->comm, what, err);
}

// Kernels that wait for other members use the memory of both sides until they end.
static void let_copies_wait(const struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (b && l->stream)
        (void)copier_join(b->gpu->copier, l->stream, &ignored);
}

void nccl_link_drop(struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    bool refused = l->refused;
    if (l->device && device_enter(l->device, &ignored) == 0) {
        nccl_comm_abort(&l->comm);
        let_copies_wait(l, b);
        device_stream_free(l->device, l->stream);
        device_leave(l->device);
    }
    device_close(l->device);
    *l = (struct nccl_link){.refused = refused};
}
