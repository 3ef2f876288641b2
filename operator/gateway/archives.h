// SPDX-License-Identifier: Apache-2.0
// Which agents keep which archives of code, for worker processes of their namespace that lack one. The operator itself
// keeps nothing of an archive: it passes on what a worker asks, and the piece that an agent answers.
#pragma once

#include "common/wire/archive_piece.h"
#include "operator/gateway/connection.h"

enum { ARCHIVES_MAX = 64 }; // that one agent tells of; more are passed over

struct archivist {    // an agent
    struct list link; // of the gateway
    struct connection *connection;
    char *ns;
    char (*have)[ARCHIVE_SHA256_LEN + 1];
    size_t n;
};

void archivist_begin(struct archivist *a, struct connection *c, const char *ns);
void archivist_end(struct archivist *a);
// The body of a HELLO or a HEARTBEAT: "archives" is a list of SHA-256; without it nothing is new. ERR_INVALID.
int archivist_learn(struct archivist *a, const char *body, size_t len, struct err *err);

// Asks an agent of the namespace that keeps the archive for this piece. False: none does.
bool archives_ask(struct gateway *g, const char *ns, const struct archive_piece *p);
