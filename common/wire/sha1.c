// SPDX-License-Identifier: Apache-2.0
#include "common/wire/sha1.h"

#include <endian.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void schedule(const uint8_t *block, uint32_t w[80])
{
    for (int t = 0; t < 16; t++) {
        memcpy(&w[t], block + t * 4, 4);
        w[t] = be32toh(w[t]);
    }
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
}

static void mix(uint32_t state[5], const uint8_t *block)
{
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    schedule(block, w);
    for (int t = 0; t < 80; t++) {
        uint32_t f = t < 20   ? ((b & c) | (~b & d)) + 0x5a827999u
                     : t < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
                     : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                              : (b ^ c ^ d) + 0xca62c1d6u;
        uint32_t next = rotate(a, 5) + f + e + w[t];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void sha1(const void *data, size_t len, uint8_t out[SHA1_SIZE])
{
    uint32_t state[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    const uint8_t *in = data;
    uint8_t tail[128] = {0};
    size_t rest = len % 64, tail_len = rest < 56 ? 64 : 128;
    for (size_t i = 0; i + 64 <= len; i += 64)
        mix(state, in + i);
    if (rest)
        memcpy(tail, in + len - rest, rest);
    tail[rest] = 0x80;
    uint64_t bits = htobe64((uint64_t)len * 8);
    memcpy(tail + tail_len - 8, &bits, 8);
    for (size_t i = 0; i < tail_len; i += 64)
        mix(state, tail + i);
    for (int i = 0; i < 5; i++) {
        uint32_t v = htobe32(state[i]);
        memcpy(out + i * 4, &v, 4);
    }
}
