// SPDX-License-Identifier: Apache-2.0
// References in the arguments of a call, and their values. Just before the method runs, the values are taken from the
// store of this process, or fetched from the process that has them.
#pragma once

#include "worker/host/objects.h"

#include <stdatomic.h>

#define ARG_REFS_BYTES_DEFAULT ((size_t)256 << 20) // of all objects in the arguments of one call
enum { ARG_REFS_MAX = 1024 };

struct arg_refs;

// On the loop's thread. The arguments must outlive the references. ERR_INVALID, ERR_NOT_FOUND, ERR_UNAVAILABLE,
// ERR_LIMIT.
int arg_refs_new(struct objects *o, const char *args, size_t len, struct arg_refs **ret, struct err *err);
// Blocks; call it on one thread at a time. *ret: the arguments with each reference replaced by its object, valid as
// long as `refs` and the arguments. If the arguments are one reference, its object may be anything. If they contain
// several, each object has to be JSON. Batches under REF_JOIN become one batch. *ret_values: the values on the device
// that belong to the head *ret; NULL = none. Only a single reference has them.
int arg_refs_fetch(struct arg_refs *refs, const atomic_bool *canceled, const char **ret, size_t *ret_len,
                   struct region **ret_values, struct err *err);
void arg_refs_free(struct arg_refs *refs); // on the loop's thread; accepts NULL
