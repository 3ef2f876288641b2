// SPDX-License-Identifier: Apache-2.0
// Answers of an API server about a token. 'a': about a right; else about its owner. Only an answer in the API server's
// words lets somebody in.
#include "operator/identity/review.h"

#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void read_access(const char *text, size_t len)
{
    const struct right call = {KIND_WORKERGROUP, "create", "call", "call workers", "bind a role"};
    struct err err = ERR_INIT;
    int r = review_access(text, len, "alice", &call, "ml", NULL, &err);
    must(r == 0 || ((r == ERR_FORBIDDEN || r == ERR_UNAVAILABLE) && err.msg[0]));
    must(r != 0 || (memmem(text, len, "allowed", 7) && memmem(text, len, "true", 4)));
}

static void read_user(const char *text, size_t len)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct client_user who = {0};
    int r = review_user(text, len, "cadre", &a, &who, &err);
    must(r == 0 || ((r == ERR_UNAUTHORIZED || r == ERR_UNAVAILABLE) && err.msg[0]));
    must(r != 0 || (who.name && who.name[0] && memmem(text, len, "authenticated", 13) && memmem(text, len, "true", 4)));
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 'a')
        read_access((const char *)data + 1, size - 1);
    else
        read_user((const char *)data, size);
    return 0;
}
