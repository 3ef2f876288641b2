// SPDX-License-Identifier: Apache-2.0
// Splits a list from the API server into its items while it arrives, at any byte boundary. Pure. It holds at most one
// item, so a list of 10,000 pods needs only the memory of its largest pod.
#pragma once

#include "common/base/err.h"

#include <stddef.h>

typedef int (*list_item_fn)(void *ctx, const char *item, size_t len, struct err *err);

struct list_splitter;
struct list_splitter *list_splitter_new(size_t max_item); // 0 = 8 MiB
void list_splitter_free(struct list_splitter *s);
int list_splitter_feed(struct list_splitter *s, const char *bytes, size_t n, list_item_fn item, void *ctx,
                       struct err *err);
// After the last byte: ERR_PROTO if the document is not complete.
int list_splitter_end(const struct list_splitter *s, const char **ret_resource_version, const char **ret_continue,
                      struct err *err);
