// SPDX-License-Identifier: Apache-2.0
// A worker process. Once its ticket is checked, it is a member of its group in the router. A ticket is valid for one
// connection to this replica; WELCOME contains the next one.
#pragma once

#include "operator/gateway/connection.h"

int worker_greet(struct connection *c, const struct hello *h, const struct record *rec, struct err *err);
void worker_forget(struct gateway *g, const char *group_uid); // which tickets of the group were shown
void worker_forget_all(struct gateway *g);
