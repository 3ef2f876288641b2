// SPDX-License-Identifier: Apache-2.0
// Sends the output of processes to one replica of the operator, while a client there listens to their group. Bounded:
// lines that come too fast are dropped and counted. No process slows down because of it.
#pragma once

#include "common/base/json_writer.h"
#include "common/base/list.h"

#include <stdbool.h>

enum {
    LISTEN_GROUPS_MAX = 64,
    LISTEN_LINE_MAX = 4096,       // bytes, what is behind is cut off
    LISTEN_BATCH_MAX = 64 * 1024, // bytes of lines of a group between two records
    LISTEN_BATCH_MS = 50,
};

struct listen {
    struct list groups; // struct listen_group
    size_t n_groups;
};

void listen_init(struct listen *l);
void listen_done(struct listen *l);
// {"group": UID, "listen": true}, as the operator has sent it; what cannot be read is passed over.
void listen_command(struct listen *l, const char *body, size_t len);
// Returns whether something waits to be sent that did not before.
bool listen_line(struct listen *l, const char *group, int rank, const char *text, size_t len);
// The next body of an OUTPUT record into `w`, which it initialises; false = there is none.
bool listen_next(struct listen *l, struct json_writer *w);
