// SPDX-License-Identifier: Apache-2.0
// Masking keys (RFC 6455, 5.3): unpredictable ones from the kernel, fetched in bulk.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ws_mask {
    uint8_t pool[256];
    size_t left;
};

void ws_mask_next(struct ws_mask *m, uint8_t key[4]);
void ws_mask_random(void *out, size_t len); // straight from the kernel; aborts if the kernel has none
