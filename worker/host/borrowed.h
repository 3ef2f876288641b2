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
// Blocks; call it on one thread at a time. *ret: the arguments with each reference replaced by its object, valid as
// long as `b` and the arguments. If the arguments are one reference, it may stand for any object. If they contain
// several, each has to stand for JSON. Batches under REF_JOIN become one batch. *ret_values: the values on the device,
// whose head is *ret; NULL = there are none. Only a single reference has them.
int borrowed_fetch(struct borrowed *b, const atomic_bool *canceled, const char **ret, size_t *ret_len,
                   struct region **ret_values, struct err *err);
void borrowed_free(struct borrowed *b); // on the loop's thread; accepts NULL
