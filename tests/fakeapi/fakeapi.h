// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server on the loop of the test, on a free port of 127.0.0.1, that does to its clients what a real API
// server does only on a bad day. A list of rules decides what it answers: it uses the first rule that matches a request
// and is not used up. Without such a rule, it answers 404. It never asserts: it records, and the test looks afterwards.
#pragma once

#include "common/base/loop.h"
#include "tests/fakeapi/certs.h"

#include <stdbool.h>
#include <stddef.h>

struct fakeapi;

struct fakeapi_request {
    const char *method;        // "GET"
    const char *target;        // "/api/v1/pods?limit=500"
    const char *authorization; // "Bearer x", NULL = none
    const char *content_type;  // NULL = none
    const char *user_agent;
    const char *accept;
    const char *body; // "" = none
    int connection;   // 1, 2, ... in the order of their arrival
    bool resumed;     // a TLS session of an earlier connection
};

enum fakeapi_ending {
    FAKEAPI_KEEP,   // the answer is complete, the connection stays for the next request
    FAKEAPI_CLOSE,  // complete, but the connection is closed afterwards, without having said so
    FAKEAPI_DROP,   // closed in the middle: whatever the header promised, the body stops here
    FAKEAPI_RESET,  // the same, by a TCP reset
    FAKEAPI_OPEN,   // a stream that goes on: see fakeapi_push()
    FAKEAPI_SILENT, // not even a status line: the half-open socket
    FAKEAPI_HANGUP, // closed without a byte of an answer
};

struct fakeapi_rule {
    // Matches:
    const char *method; // NULL = any
    const char *target; // part of the target, NULL = any
    const char *token;  // the bearer token, NULL = any
    int times;          // matches so often, 0 = always
    // Answers:
    int status;          // 0 = 200
    const char *headers; // further lines, each with "\r\n"
    const char *body;    // NULL = ""
    size_t split;        // so many bytes a chunk, 0 = all at once (with a Content-Length, unless the ending is OPEN)
    int64_t pause_ms;    // between chunks
    enum fakeapi_ending ending;
};

// certs: TLS, NULL = plain.
struct fakeapi *fakeapi_new(struct loop *loop, const struct certs *certs);
void fakeapi_free(struct fakeapi *f);
const char *fakeapi_url(const struct fakeapi *f); // "http://127.0.0.1:port"

// The rule is copied with its texts. Returns its number, from 0.
int fakeapi_rule(struct fakeapi *f, const struct fakeapi_rule *rule);
void fakeapi_rules_clear(struct fakeapi *f);
// For what rules cannot say: asked when none matches; fills *ret (whose texts are read before the next call), or
// returns false for a 404.
void fakeapi_handler(struct fakeapi *f,
                     bool (*fn)(void *ctx, const struct fakeapi_request *r, struct fakeapi_rule *ret), void *ctx);

// More bytes, as one chunk, for every open stream whose target contains `target` (NULL = all). Returns how many.
int fakeapi_push(struct fakeapi *f, const char *target, const char *bytes);
int fakeapi_end(struct fakeapi *f, const char *target, enum fakeapi_ending ending); // KEEP = in good order, DROP, RESET
int fakeapi_streams(const struct fakeapi *f, const char *target);                   // open ones

// Closes what is connected and idle now: the connection that dies between two requests.
void fakeapi_close_idle(struct fakeapi *f);
// Refuses connections from now on (the port stays ours), or accepts them again.
void fakeapi_down(struct fakeapi *f, bool down);

int fakeapi_connections(const struct fakeapi *f); // accepted so far
int fakeapi_count(const struct fakeapi *f);       // requests read so far
const struct fakeapi_request *fakeapi_at(const struct fakeapi *f, int i);
