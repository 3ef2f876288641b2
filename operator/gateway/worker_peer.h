// SPDX-License-Identifier: Apache-2.0
// A worker process. When its ticket is checked, it becomes a member of its group in the router. A ticket is valid for
// one connection to this replica. WELCOME contains the next one.
#pragma once

#include "common/wire/archive_piece.h"
#include "operator/gateway/connection.h"

int worker_hello(struct connection *c, const struct hello *h, const struct record *rec, struct err *err);
// Takes a piece that an agent of the namespace has sent, for the process that has asked for it. Without such a process,
// it is dropped.
void worker_archive_piece(struct gateway *g, const char *ns, const struct archive_piece *p);
void worker_forget(struct gateway *g, const char *group_uid); // forgets which tickets of the group were shown
void worker_forget_all(struct gateway *g);
