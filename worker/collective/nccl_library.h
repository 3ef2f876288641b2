// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libnccl.so.2, which the process loads when something needs it for the first time. Nothing links NCCL, so one
// image runs on nodes with and without GPUs.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>

// As nccl.h has them since 2.14, which never change.
enum { NCCL_OK = 0, NCCL_IN_PROGRESS = 7, NCCL_ID_SIZE = 128, NCCL_U8 = 1 };
enum { NCCL_MAGIC = (int)0xcafebeef, NCCL_CONFIG_VERSION = 21400 };
enum { NCCL_VERSION_TEXT = 40 }; // "NCCL 2.23.4"

struct nccl_id {
    char bytes[NCCL_ID_SIZE];
};

struct nccl_config { // of 2.14: all later versions take it
    size_t size;
    unsigned magic, version;
    int blocking;
};

struct nccl_library {
    int (*version)(int *ret);
    int (*unique_id)(struct nccl_id *ret);
    int (*init)(void **ret, int n, struct nccl_id id, int rank, struct nccl_config *config);
    int (*finalize)(void *comm);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*async_error)(void *comm, int *ret);
    const char *(*last_error)(void *comm);
    const char *(*error)(int code);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *in, void *out, size_t n, int type, int op, void *comm, void *stream);
    int (*broadcast)(const void *in, void *out, size_t n, int type, int root, void *comm, void *stream);
    int (*all_gather)(const void *in, void *out, size_t n, int type, void *comm, void *stream);
    int (*reduce_scatter)(const void *in, void *out, size_t n, int type, int op, void *comm, void *stream);
    int (*send)(const void *in, size_t n, int type, int to, void *comm, void *stream);
    int (*recv)(void *out, size_t n, int type, int from, void *comm, void *stream);
};

// Any thread. The library stays loaded until the process ends. NULL and ERR_INVALID: this image has no NCCL, or one
// that is older than 2.14.
const struct nccl_library *nccl_library_load(struct err *err);
// The variable NCCL_COMM_BLOCKING is set. It overrides what the maker of a communicator asks for: calls of NCCL block
// then, and nothing ends those that wait.
bool nccl_library_blocks(void);
void nccl_version_text(int version, char ret[NCCL_VERSION_TEXT]); // as ncclGetVersion() returns it
