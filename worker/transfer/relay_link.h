// SPDX-License-Identifier: Apache-2.0
// What a relay and a receiver that gets pieces from it say to each other, over a connection that they have for this
// alone:
//
//   relay -> receiver   its place: WINDOW_PLACE_SIZE bytes
//   receiver -> relay   a byte: 1 = it reads the relay's memory, 0 = it wants to be sent the pieces
//   relay -> receiver   1: a byte for each piece that is there now, in their order; 0: the pieces (flow.h)
//
// No function waits.
#pragma once

#include "common/base/err.h"
#include "worker/transfer/window.h"

#include <stdbool.h>
#include <stddef.h>

struct relay_link {
    int fd; // borrowed
    bool answered, reads;
    size_t marks; // bytes for pieces that were sent or have come
    // private
    char place[WINDOW_PLACE_SIZE];
    size_t len;
};

// All return 0, or ERR_GONE.
int relay_link_show(struct relay_link *l, const struct window_place *place,
                    struct err *err);                                 // of a relay, first of all
int relay_link_hear(struct relay_link *l, struct err *err);           // of a relay: sets `answered` and `reads`
int relay_link_mark(struct relay_link *l, size_t n, struct err *err); // of a relay: `marks` become n, or nearer to it
// Of a receiver. *ret_there: the place has come, and it has to answer.
int relay_link_look(struct relay_link *l, struct window_place *ret, bool *ret_there, struct err *err);
int relay_link_answer(struct relay_link *l, bool reads, struct err *err);
int relay_link_take(struct relay_link *l, struct err *err); // of a receiver: counts the marks that have come
