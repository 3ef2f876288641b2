// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers at any address, the format of everything between our processes.
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void le_put_u32(char *out, uint32_t v)
{
    v = htole32(v);
    memcpy(out, &v, sizeof v);
}

static inline void le_put_u64(char *out, uint64_t v)
{
    v = htole64(v);
    memcpy(out, &v, sizeof v);
}

static inline uint32_t le_get_u32(const char *in)
{
    uint32_t v;
    memcpy(&v, in, sizeof v);
    return le32toh(v);
}

static inline uint64_t le_get_u64(const char *in)
{
    uint64_t v;
    memcpy(&v, in, sizeof v);
    return le64toh(v);
}
