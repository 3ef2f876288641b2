// SPDX-License-Identifier: Apache-2.0
// A request to the API server whose sender may be gone before the answer arrives.
#pragma once

#include "operator/kube/kube_client.h"

struct inquiry;

// done is called once, from the loop, unless the inquiry was dropped; the inquiry is gone then. NULL: the client is
// being taken down, nothing will be answered.
struct inquiry *inquiry_send(struct kube_client *client, const struct request *r, int64_t timeout_ms, kube_done_fn done,
                             void *ctx);
struct inquiry *inquiry_get_path(struct kube_client *client, const char *path, int64_t timeout_ms, kube_done_fn done,
                                 void *ctx);
void inquiry_drop(struct inquiry *q); // accepts NULL
