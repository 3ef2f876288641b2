// SPDX-License-Identifier: Apache-2.0
// The records that a worker and its proxy exchange besides calls: HELLO, WELCOME, PLACE and ARCHIVE. This module
// passes what the proxy says to the modules that need it.
#pragma once

#include "common/base/json_writer.h"
#include "worker/host/host_session_config.h"

// Initialises the writer.
void control_records_hello(const struct host_session_config *c, const char *ticket, struct json_writer *w);
// Takes the group's name and namespace for calls of methods, the secret of the attempt, and the meshes. Returns the
// ticket for the next HELLO, NULL = none.
const char *control_records_welcome(const struct host_session_config *c, const struct json *welcome, struct arena *a);
enum { PLACE_BODY_SIZE = 256 };
// Writes the body of a PLACE. Returns its length.
size_t control_records_question(const struct rendezvous_question *q, char out[PLACE_BODY_SIZE]);
// Takes a PLACE or an ARCHIVE.
int control_records_answer(const struct host_session_config *c, const struct record *r, struct err *err);
