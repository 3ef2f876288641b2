// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/nccl_comm.h"

#include <stdbool.h>

static const char making[] = "making a communicator";

int nccl_comm_begin(struct nccl_comm *c, int n, int rank, const struct nccl_id *id, struct err *err)
{
    struct nccl_config config = {sizeof config, (unsigned)NCCL_MAGIC, NCCL_CONFIG_VERSION, 0};
    int result = c->f->init(&c->handle, n, *id, rank, &config);
    bool begun = c->handle && (result == NCCL_OK || result == NCCL_IN_PROGRESS);
    return begun ? 0 : nccl_comm_fail(c, result, making, err);
}

int nccl_comm_poll(const struct nccl_comm *c, const char *what, struct err *err)
{
    int state = NCCL_OK, result = c->f->async_error(c->handle, &state);
    if (result == NCCL_OK && state == NCCL_IN_PROGRESS)
        return 0;
    if (result == NCCL_OK)
        result = state;
    return result == NCCL_OK ? 1 : nccl_comm_fail(c, result, what, err);
}

int nccl_comm_fail(const struct nccl_comm *c, int result, const char *what, struct err *err)
{
    const char *why = c->f->last_error(c->handle);
    return err_set(err, ERR_IO, "nccl: %s: %s%s%s", what, c->f->error(result), why && *why ? ": " : "", why ? why : "");
}
