// SPDX-License-Identifier: Apache-2.0
// Names of the dispatch and execute modes of records, as HELLO and JSON-RPC write them.
#ifndef CADRE_WIRE_MODE_H
#define CADRE_WIRE_MODE_H

#include "common/base/buf.h"

#include <stdint.h>

const char *mode_dispatch_name(unsigned dispatch); // "ONE_TO_ALL"; "?" for none
const char *mode_execute_name(unsigned execute);   // "ALL"; "?" for none
// 0, which is DEFAULT, where there is no mode of that name.
uint8_t mode_dispatch(const char *name);
uint8_t mode_execute(const char *name);
void mode_dispatch_list(struct buf *out); // "ONE_TO_ALL, ALL_TO_ALL, ...": all that there are
void mode_execute_list(struct buf *out);

#endif
