// SPDX-License-Identifier: Apache-2.0
// What a worker and its proxy tell each other about themselves: HELLO, WELCOME and PLACE. What the proxy says goes to
// the modules that need it.
#pragma once

#include "common/base/json_writer.h"
#include "worker/host/host_session_config.h"

void introduction_hello(const struct session_config *c, const char *ticket, struct json_writer *w); // begins the writer
// Name and place for calls of methods, the secret of the attempt, meshes. The ticket of the next HELLO, NULL = none.
const char *introduction_welcome(const struct session_config *c, const struct json *welcome, struct arena *a);
enum { INTRODUCTION_QUESTION_SIZE = 256 };
size_t introduction_question(const struct rendezvous_question *q,
                             char out[INTRODUCTION_QUESTION_SIZE]); // the body of a PLACE
int introduction_answer(const struct session_config *c, const struct record *r,
                        struct err *err); // a PLACE or an ARCHIVE
