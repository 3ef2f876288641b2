// SPDX-License-Identifier: Apache-2.0
// The properties of dispatch and execute modes, from the table in cadre/modes.h.
#pragma once

#include "common/base/buf.h"
#include "sdk/c/include/cadre/modes.h"

#include <stdint.h>

// How arguments reach the ranks and results come back. DEFAULT is the mode with which the method was registered.
enum record_dispatch {
    RECORD_DISPATCH_DEFAULT,
#define X(name, number, ...) RECORD_##name = (number),
    CADRE_DISPATCH_MODES(X)
#undef X
        RECORD_DISPATCH_COUNT,
};

// Which ranks run it.
enum record_execute {
    RECORD_EXECUTE_DEFAULT,
#define X(name, number) RECORD_##name = (number),
    CADRE_EXECUTE_MODES(X)
#undef X
        RECORD_EXECUTE_COUNT,
};

enum mode_pieces { MODE_WHOLE, MODE_ELEMENTS, MODE_ROWS };
enum mode_takes { MODE_NOTHING, MODE_MESHES, MODE_RULE };
enum mode_results { MODE_LIST, MODE_JOINED };

struct dispatch_mode {
    const char *name; // "ONE_TO_ALL", as HELLO and JSON-RPC write it
    enum record_dispatch number;
    enum mode_pieces pieces;
    enum mode_takes takes;
    enum mode_results results;
    const char *row; // from `rule` on, as text
};

const struct dispatch_mode *mode_of(unsigned dispatch); // NULL for none, and for DEFAULT
// Whether the client gets a list with the results of all ranks, in their order.
bool mode_lists_ranks(const struct dispatch_mode *m);

// The name; NULL for none, and for DEFAULT.
const char *mode_dispatch_of(unsigned dispatch);
const char *mode_execute_of(unsigned execute);
const char *mode_dispatch_name(unsigned dispatch); // "?" for none
const char *mode_execute_name(unsigned execute);   // "ALL"; "?" for none
// 0 (DEFAULT) if no mode has that name.
uint8_t mode_dispatch(const char *name);
uint8_t mode_execute(const char *name);
void mode_dispatch_list(struct buf *out); // "ONE_TO_ALL, ALL_TO_ALL, ...": all names
void mode_execute_list(struct buf *out);
