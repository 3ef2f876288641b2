// SPDX-License-Identifier: Apache-2.0
// Batches that a client builds in the memory that they are sent from: shared with the proxy, or its own.
#pragma once

#include "sdk/c/client/client_state.h"

// Kept until buffer_free(). NULL: there is no room.
char *buffer_new(struct cadre_client *c, size_t len);
void buffer_free(struct cadre_client *c, const void *data); // calls that have it keep the memory
void buffers_done(struct cadre_client *c);
// What a call gets that is given exactly such a one, a reference; NULL: it is none, or is better copied.
struct blob *buffer_of(const struct cadre_client *c, const void *data, size_t len);
