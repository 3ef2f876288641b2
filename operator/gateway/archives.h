// SPDX-License-Identifier: Apache-2.0
// Knows which agents keep which archives of code, for worker processes of their namespace that need one. The operator
// keeps nothing of an archive. It passes on the request of a worker, and the piece in the answer of an agent.
#pragma once

#include "common/wire/archive_piece.h"
#include "operator/gateway/connection.h"

enum { ARCHIVES_MAX = 64 }; // archives that one agent may report; the others are ignored

struct archive_source { // an agent that keeps archives
    struct list link;   // in gateway.archive_sources
    struct connection *connection;
    char *ns;
    char (*have)[ARCHIVE_SHA256_LEN + 1];
    size_t n;
};

void archive_source_begin(struct archive_source *a, struct connection *c, const char *ns);
void archive_source_end(struct archive_source *a);
// Takes the body of a HELLO or a HEARTBEAT: "archives" is a list of SHA-256. Without this member, nothing has changed.
// Errors: ERR_INVALID.
int archive_source_learn(struct archive_source *a, const char *body, size_t len, struct err *err);

// Asks an agent of the namespace that keeps the archive for this piece. Returns false if there is none.
bool archives_ask(struct gateway *g, const char *ns, const struct archive_piece *p);
