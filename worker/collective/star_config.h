// SPDX-License-Identifier: Apache-2.0
// How a star is made, and how long its texts are.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { STAR_REASON_SIZE = 512, STAR_WHAT_SIZE = 160, STAR_MISSING_MS = 2000 };

struct star;

struct star_config {
    int index, n;
    const char *const *names; // of the members, for messages: "rank 3"; borrowed until star_free()
    int *links; // member 0 has n descriptors, and links[0] is not used; another member has links[0] to member 0. The
                // star closes them. The members have proved who they are before
    int64_t limit_ms;   // of the exchange
    int64_t silence_ms; // a member that does not answer for this long counts as lost; 0 = members ask nobody
};
