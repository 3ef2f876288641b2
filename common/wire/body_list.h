// SPDX-License-Identifier: Apache-2.0
// Several bodies as one, if at least one of them is not JSON: arguments or results of several ranks.
//
//   0  u32 0xffffffff: neither JSON nor a safetensors document begins with this    4  u32 number of bodies
//   8  for each body: u64 length, the bytes, zeros up to the next multiple of 8
//
// All numbers are little endian. Pure.
#pragma once

#include "common/base/err.h"
#include "common/wire/scatter.h"

#include <stdbool.h>

struct body_list { // the rest of the list
    const char *data, *p;
    size_t len;
    uint32_t n; // bodies
};

bool body_list_is(const char *data, size_t len);
// ERR_INVALID if it is not a list of bodies, if bodies are missing, or if bytes follow them. Then body_list_next()
// gives each of them; `data` must live until then.
int body_list_read(const char *data, size_t len, struct body_list *ret, struct err *err);
bool body_list_next(struct body_list *l, struct scatter_source *ret); // false: that was all

// The bytes before all bodies, before each one, and after each one.
void body_list_begin(struct scatter *out, uint32_t n);
void body_list_before(struct scatter *out, size_t len);
void body_list_behind(struct scatter *out, size_t len);
