// SPDX-License-Identifier: Apache-2.0
// References in the arguments of a call, and their values. Just before the method runs, values are taken from this
// process's store or fetched from the process that has them.
#pragma once

#include "worker/host/objects.h"

#include <stdatomic.h>

#define BORROWED_BYTES_DEFAULT ((size_t)256 << 20) // of all objects in the arguments of one call
enum { BORROWED_MAX = 1024 };

struct borrowed;

// On the loop's thread. The arguments must outlive it. ERR_INVALID, ERR_NOT_FOUND, ERR_UNAVAILABLE, ERR_LIMIT.
int borrowed_new(struct objects *o, const char *args, size_t len, struct borrowed **ret, struct err *err);
// On any one thread; blocks. *ret: the arguments with the objects in the places of their references, valid as long as
// `b` and the arguments. A reference that is all there is may stand for anything, one among others for JSON; batches
// under REF_JOIN become one.
// *ret_values: what of them is on the device, behind a head in *ret; NULL = nothing, as of all but a single reference.
int borrowed_fetch(struct borrowed *b, const atomic_bool *canceled, const char **ret, size_t *ret_len,
                   struct region **ret_values, struct err *err);
void borrowed_free(struct borrowed *b); // on the loop's thread; accepts NULL
