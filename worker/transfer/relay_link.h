// SPDX-License-Identifier: Apache-2.0
// The connection between a relay and a receiver that gets pieces from it. They use it for nothing else:
//
//   relay -> receiver   its place: WINDOW_PLACE_SIZE bytes
//   receiver -> relay   a byte: 1 = it reads the memory of the relay, 0 = the relay has to send the pieces
//   relay -> receiver   after 1: a byte, a mark, for each piece that has arrived, in order; after 0: the pieces
//   (flow.h)
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
    size_t marks; // that the relay has sent, or the receiver has got
    // private
    char place[WINDOW_PLACE_SIZE];
    size_t len;
};

// All functions return 0, or ERR_GONE if the connection has ended. A relay calls the first three:
int relay_link_show(struct relay_link *l, const struct window_place *place, struct err *err); // sends its place
int relay_link_hear(struct relay_link *l, struct err *err);           // sets `answered` and `reads` when it can
int relay_link_mark(struct relay_link *l, size_t n, struct err *err); // sends marks up to n, as many as it can now
// A receiver calls the other ones. *ret_there: the place of the relay has arrived, and the receiver has to answer.
int relay_link_look(struct relay_link *l, struct window_place *ret, bool *ret_there, struct err *err);
int relay_link_answer(struct relay_link *l, bool reads, struct err *err);
int relay_link_take(struct relay_link *l, struct err *err); // counts the marks that have arrived
