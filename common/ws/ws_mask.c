// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_mask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void ws_mask_random(void *out, size_t len)
{
    ssize_t n;
    do
        n = getrandom(out, len, 0); // up to 256 bytes come whole
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)len)
        abort();
}

void ws_mask_next(struct ws_mask *m, uint8_t key[4])
{
    if (m->left < 4) {
        ws_mask_random(m->pool, sizeof m->pool);
        m->left = sizeof m->pool;
    }
    m->left -= 4;
    memcpy(key, m->pool + m->left, 4);
}
