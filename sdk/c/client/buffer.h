// SPDX-License-Identifier: Apache-2.0
// Batches that a client builds in the memory from which they are sent: memory shared with the proxy, or the client's
// own.
#pragma once

#include "sdk/c/client/client_state.h"

// Kept until buffer_free(). NULL: there is no room.
char *buffer_new(struct cadre_client *c, size_t len);
void buffer_free(struct cadre_client *c, const void *data); // calls that use it keep the memory
void buffers_done(struct cadre_client *c);
// A reference to the buffer with exactly these bytes, for a call. NULL: there is none, or its bytes are better copied.
struct blob *buffer_of(const struct cadre_client *c, const void *data, size_t len);
