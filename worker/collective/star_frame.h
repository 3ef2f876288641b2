// SPDX-License-Identifier: Apache-2.0
// Messages between members of a star: u32 kind, u32 length, body, in the host's byte order. Every wait has a limit.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { STAR_FRAME_MAX = 64 << 20 };

enum star_frame_kind {
    FRAME_BLOB = 1,   // what a back end needs; from member 0: the data of all members, each after its length
    FRAME_AGREED = 2, // an error of this member, "" = none; from member 0: an error of any member
    FRAME_BROKEN = 3, // the reason
    FRAME_LATE = 4,   // u32 number: the member has waited too long for this collective
    FRAME_ASK = 5,    // asks which collective the receiver has begun
    FRAME_BEGUN = 6,  // u32 number
    FRAME_BYE = 7,
    FRAME_COMPARE = 8, // u32 number, a text: what the member is about to do
    FRAME_SAME = 9,    // u32 number: all members are about to do the same
    FRAME_PING = 10,   // asks whether the receiver runs
    FRAME_PONG = 11,
    FRAME_PAIR = 12, // u32 member, a text: what is about to be sent. To member 0: the receiver; from it: the sender
};

struct star_frame {
    uint32_t kind, len;
};

// `kind`: from the list above, or of another protocol over such connections. `until`: on the monotonic clock, in ms.
// ERR_TIMEOUT, ERR_GONE.
int star_frame_send(int fd, uint32_t kind, const void *body, size_t len, int64_t until);
int star_frame_take(int fd, struct star_frame *ret, char **ret_body, int64_t until); // the caller frees the body
