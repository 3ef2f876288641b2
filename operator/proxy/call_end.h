// SPDX-License-Identifier: Apache-2.0
// Ends calls. Each of these functions, except call_list_late() and call_lost(), answers the call, once. The parts of a
// call (args.h, answer.h, join.h, ...) never end it: they return an error to the file that called them.
#pragma once

#include "operator/proxy/call.h"

void call_fail(struct call *c, const struct call_failure *f);
void call_fail_err(struct call *c, const struct err *err);
void call_refuse(struct call *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void call_cancel(struct call *c); // by its client
void call_timeout(struct call *c);
void call_list_late(const struct call *c,
                    struct call_failure_late *ret); // adds the ranks that have it and have not answered
void call_abandon(struct call *c);                  // its session ends
void call_settle(struct call *c); // the client has its answer, or does not want one any more. May free the call
void call_lost(struct call_rank *rank, const struct call_failure *f); // the rank's process is gone
