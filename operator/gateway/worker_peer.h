// SPDX-License-Identifier: Apache-2.0
// A worker process: its ticket is checked, then it is a member of its group in the router. A ticket is good for one
// connection to this replica; WELCOME brings the next one.
#pragma once

#include "operator/gateway/connection.h"

int worker_greet(struct connection *c, const struct hello *h, const struct record *rec, struct err *err);
void worker_forget(struct gateway *g, const char *group_uid); // which tickets of the group were shown
void worker_forget_all(struct gateway *g);
