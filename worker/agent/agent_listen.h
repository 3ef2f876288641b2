// SPDX-License-Identifier: Apache-2.0
// Sends the output of processes to one replica of the operator while a client there listens to their group. The memory
// is bounded: lines that come too fast are dropped and counted. No process slows down because of it.
#pragma once

#include "common/base/json_writer.h"
#include "common/base/list.h"

#include <stdbool.h>

enum {
    LISTEN_GROUPS_MAX = 64,
    LISTEN_LINE_MAX = 4096,       // bytes; the rest of the line is cut off
    LISTEN_BATCH_MAX = 64 * 1024, // bytes of the lines of one group between two records
    LISTEN_BATCH_MS = 50,
};

struct listen {
    struct list groups; // struct listen_group
    size_t n_groups;
};

void listen_init(struct listen *l);
void listen_done(struct listen *l);
// Takes the body {"group": UID, "listen": true} that the operator has sent. Ignores a body that it cannot read.
void listen_command(struct listen *l, const char *body, size_t len);
// Returns true if something waits to be sent now and nothing did before.
bool listen_line(struct listen *l, const char *group, int rank, const char *text, size_t len);
// Writes the next body of an OUTPUT record into `w`, which it initialises. Returns false if there is none.
bool listen_next(struct listen *l, struct json_writer *w);
