// SPDX-License-Identifier: Apache-2.0
// Passes what a proxy tells this worker about its group, in WELCOME and in PLACE, to the modules that need it.
#pragma once

#include "worker/host/host_session.h"

// Name and place for calls of methods, the secret of the attempt, meshes. The ticket of the next HELLO, NULL = none.
const char *told_welcome(const struct session_config *c, const struct json *welcome, struct arena *a);
enum { TOLD_QUESTION_SIZE = 256 };
size_t told_question(const struct meeting_question *q, char out[TOLD_QUESTION_SIZE]);          // the body of a PLACE
int told_place(const struct session_config *c, const char *body, size_t len, struct err *err); // what is not JSON
