// SPDX-License-Identifier: Apache-2.0
// A worker process. Once its ticket is checked, it is a member of its group in the router. A ticket is valid for one
// connection to this replica; WELCOME contains the next one.
#pragma once

#include "common/wire/archive_piece.h"
#include "operator/gateway/connection.h"

int worker_greet(struct connection *c, const struct hello *h, const struct record *rec, struct err *err);
// What an agent of the namespace brings, for the process that has asked for it; else it is thrown away.
void worker_archive_piece(struct gateway *g, const char *ns, const struct archive_piece *p);
void worker_forget(struct gateway *g, const char *group_uid); // which tickets of the group were shown
void worker_forget_all(struct gateway *g);
