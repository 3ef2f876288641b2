// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/nccl_library.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/device/symbols.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const struct symbol symbols[] = {
    {"ncclGetVersion", offsetof(struct nccl_library, version)},
    {"ncclGetUniqueId", offsetof(struct nccl_library, unique_id)},
    {"ncclCommInitRankConfig", offsetof(struct nccl_library, init)},
    {"ncclCommFinalize", offsetof(struct nccl_library, finalize)},
    {"ncclCommDestroy", offsetof(struct nccl_library, destroy)},
    {"ncclCommAbort", offsetof(struct nccl_library, abort)},
    {"ncclCommGetAsyncError", offsetof(struct nccl_library, async_error)},
    {"ncclGetLastError", offsetof(struct nccl_library, last_error)},
    {"ncclGetErrorString", offsetof(struct nccl_library, error)},
    {"ncclGroupStart", offsetof(struct nccl_library, group_start)},
    {"ncclGroupEnd", offsetof(struct nccl_library, group_end)},
    {"ncclAllReduce", offsetof(struct nccl_library, all_reduce)},
    {"ncclBroadcast", offsetof(struct nccl_library, broadcast)},
    {"ncclAllGather", offsetof(struct nccl_library, all_gather)},
    {"ncclReduceScatter", offsetof(struct nccl_library, reduce_scatter)},
    {"ncclSend", offsetof(struct nccl_library, send)},
    {"ncclRecv", offsetof(struct nccl_library, recv)},
};

static int find_symbols(struct nccl_library *f, struct err *err)
{
    void *object = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return err_set(err, ERR_INVALID,
                       "NCCL is not in this image: %s: add NCCL 2.14 or newer, which images of CUDA and PyTorch have, "
                       "or use the back end gloo",
                       dlerror());
    const char *missing = symbols_find(object, symbols, ARRAY_LEN(symbols), f);
    return missing ? err_set(err, ERR_INVALID, "libnccl.so.2 of this image has no %s: Cadre needs NCCL 2.14 or newer",
                             missing)
                   : 0;
}

const struct nccl_library *nccl_library_load(struct err *err)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct nccl_library library;
    static bool known;
    pthread_mutex_lock(&mutex);
    known = known || find_symbols(&library, err) == 0;
    bool found = known;
    pthread_mutex_unlock(&mutex);
    return found ? &library : NULL;
}

bool nccl_library_blocks(void)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    return blocking && !str_eq(blocking, "0");
}

void nccl_version_text(int version, char ret[NCCL_VERSION_TEXT])
{
    snprintf(ret, NCCL_VERSION_TEXT, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}
