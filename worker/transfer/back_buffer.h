// SPDX-License-Identifier: Apache-2.0
// Memory for new weights beside the old ones. When the new weights are complete, both change places: the pages of long
// blocks are exchanged, and only bytes that share a page with other data are copied. So the addresses of the weights
// stay the same. The old pages become the memory for the next transfer, which therefore needs no page faults.
//
// Pages are exchanged if they are, at that moment, private memory of no file, readable and writable. Shared memory,
// mapped files and the heap of brk() are copied. Blocks on the device have their room there, which is freed after the
// transfer.
#pragma once

#include "worker/transfer/blocks.h"

enum {
    BACK_BUFFER_SWAP_MIN = 1 << 20, // shorter blocks are copied
    BACK_BUFFER_SWAPS_MAX = 8192,   // each needs up to four of the 65,530 mappings that the kernel allows a process
};

struct back_buffer;

struct back_buffer *back_buffer_new(bool swaps); // false: everything is copied
void back_buffer_free(struct back_buffer *s);    // accepts NULL
// Makes room for each block. The blocks do not change until the swap. Blocks of the last transfer keep their rooms.
// ERR_NOMEM.
int back_buffer_lay(struct back_buffer *s, const struct blocks *b, struct err *err);
void *back_buffer_at(const struct back_buffer *s, size_t i);
// After this, the blocks have the bytes that were written to the rooms. *ret_copied: how many bytes were copied. For
// blocks of the host, it cannot fail. For blocks on the device, it fails with the errors of device.h, and the GPU is
// lost then.
int back_buffer_swap(struct back_buffer *s, const struct blocks *b, size_t *ret_copied, struct err *err);
// Lets the kernel take the memory of the host back until the next back_buffer_lay(). Frees the memory of the device,
// and waits for that up to a second. If the device hangs, the memory stays until the device is done.
void back_buffer_rest(struct back_buffer *s, const struct blocks *b);
// Call this if another process may still write to the rooms at any time. Nothing is ever again at their addresses, and
// the next transfer gets new rooms. Call back_buffer_rest() before it if blocks are on the device.
void back_buffer_abandon(struct back_buffer *s);
bool back_buffer_was_abandoned(const struct back_buffer *s); // if true, do not let senders write to the rooms again
