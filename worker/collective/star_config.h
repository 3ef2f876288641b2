// SPDX-License-Identifier: Apache-2.0
// How a star is made, and how long its texts are.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { STAR_REASON_SIZE = 512, STAR_WHAT_SIZE = 160, STAR_MISSING_MS = 500 };

struct star;

struct star_config {
    int index, n;
    const char *const *names; // of the members, for messages: "rank 3"; borrowed until star_free()
    int *links; // of member 0: n descriptors, links[0] is not used; of another one: links[0] goes to member 0. The
                // star closes them. Connections have been let in already: nobody says here who he is
    int64_t limit_ms;   // of the exchange
    int64_t silence_ms; // while they watch: who does not answer for so long counts as lost; 0 = nobody is asked
};
