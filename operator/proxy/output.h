// SPDX-License-Identifier: Apache-2.0
// The output of ranks, for clients that listen to their group. Equal lines of several ranks within OUTPUT_FOLD_MS
// become one line. The lines of a rank keep their order. A group without listeners uses no memory. Memory is bounded:
// if a listener does not read its lines in time, they are dropped and counted.
#pragma once

#include "operator/proxy/session_state.h"

enum {
    OUTPUT_LINE_MAX = 4096, // bytes; longer lines are cut
    OUTPUT_LINES_MAX = 256, // lines of a group that wait to be folded
    OUTPUT_FOLD_MS = 200,
    OUTPUT_LISTENERS_MAX = 64, // of a group
};

// From now on the session gets the lines of the group, as OUTPUT records with call id 0. A bootstrap group has the
// lines of its group. To listen twice changes nothing. ERR_LIMIT.
int output_listen(struct session *s, const struct group *named, struct err *err);
void output_unlisten(struct session *s, const struct group *named);
void output_session_ends(struct session *s);
void output_group_ends(struct group *g);

// output_line() takes a line of a rank, without the newline. output_dropped() takes the number of lines that the agent
// or another replica has dropped.
void output_line(struct router *r, const char *group_uid, uint32_t rank, const char *text, size_t len);
void output_dropped(struct router *r, const char *group_uid, uint64_t n);

// The next group that got its first listener or lost its last one (then ->output is NULL). Each change is returned
// once. NULL = there is none.
const struct group *output_changed(struct router *r);
int64_t output_due_ms(const struct router *r); // when to call output_tick(); INT64_MAX = never
void output_tick(struct router *r, int64_t now_ms);
