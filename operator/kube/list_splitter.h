// SPDX-License-Identifier: Apache-2.0
// Splits a list from the API server into its items while it arrives. The bytes may be cut anywhere. Pure. It holds at
// most one item, so a list of 10,000 pods needs only the memory of its largest pod.
#pragma once

#include "operator/kube/partial_text.h"

struct list_splitter;
struct list_splitter *list_splitter_new(size_t max_item); // 0 = 16 MiB
void list_splitter_free(struct list_splitter *s);
int list_splitter_feed(struct list_splitter *s, const char *bytes, size_t n, text_fn item, void *ctx, struct err *err);
// Call it after the last byte. ERR_PROTO if the document is not complete.
int list_splitter_end(const struct list_splitter *s, const char **ret_resource_version, const char **ret_continue,
                      struct err *err);
