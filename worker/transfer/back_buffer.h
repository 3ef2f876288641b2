// SPDX-License-Identifier: Apache-2.0
// Memory for new weights beside the old ones. When they are whole, both change places: the pages of long blocks are
// exchanged, and only what shares a page with something else is copied. So nobody has to be told of a new address, and
// the old pages are there for the next transfer, which then finds memory that needs no page faults.
//
// Pages are exchanged if they are, at that moment, private memory of no file, readable and writable. Shared memory,
// mapped files and the heap of brk() are copied. Blocks on the device have their room there, which is freed after the
// transfer.
#pragma once

#include "worker/transfer/blocks.h"

enum {
    BACK_BUFFER_SWAP_MIN = 1 << 20, // shorter blocks are copied
    BACK_BUFFER_SWAPS_MAX = 8192,   // each takes up to four of the kernel's 65,530 mappings of a process
};

struct back_buffer;

struct back_buffer *back_buffer_new(bool swaps); // false: everything is copied
void back_buffer_free(struct back_buffer *s);    // accepts NULL
// Room for each block, which stays as it is until the swap. The same blocks as last time get what they had. ERR_NOMEM.
int back_buffer_lay(struct back_buffer *s, const struct blocks *b, struct err *err);
void *back_buffer_at(const struct back_buffer *s, size_t i);
// The blocks have what was written to the room. Returns the bytes that were copied. Of the host it cannot fail; of the
// device with ERR_GONE and others of device.h, and then the GPU is lost.
int back_buffer_swap(struct back_buffer *s, const struct blocks *b, size_t *ret_copied, struct err *err);
// The kernel may take the memory of the host back, until the next back_buffer_lay(). Memory of the device is freed,
// unless the device hangs: then it stays until the next back_buffer_lay().
void back_buffer_rest(struct back_buffer *s, const struct blocks *b);
// Another process may write to the room at any time. So nothing is ever again at its addresses, and the next transfer
// gets a new room. Blocks of the device have rested before.
void back_buffer_abandon(struct back_buffer *s);
bool back_buffer_was_abandoned(const struct back_buffer *s); // then nobody should be allowed to write to it again
