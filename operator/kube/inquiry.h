// SPDX-License-Identifier: Apache-2.0
// A request to the API server. Its sender may go away before the answer arrives.
#pragma once

#include "operator/kube/kube_client.h"

struct inquiry;

// The loop calls `done` once, unless the inquiry was dropped. The inquiry no longer exists then. Returns NULL if
// kube_client_free() is running; then `done` is not called.
struct inquiry *inquiry_send(struct kube_client *client, const struct kube_request *r, int64_t timeout_ms,
                             kube_done_fn done, void *ctx);
struct inquiry *inquiry_get_path(struct kube_client *client, const char *path, int64_t timeout_ms, kube_done_fn done,
                                 void *ctx);
void inquiry_drop(struct inquiry *q); // accepts NULL
