// SPDX-License-Identifier: Apache-2.0
// The options of a client, checked and copied.
#pragma once

#include "common/ws/ws_tls.h"
#include "sdk/c/include/cadre/client.h"

enum { SETTINGS_CALLS_MAX = 65535 };

struct settings {
    char *url;           // as it was given, for messages
    const char *address; // in it, as ws_client wants it
    char *path;          // of the request: the prefix, the namespace, the group
    char *ns, *group;    // group NULL = none
    char *token, *token_file;
    bool token_in_hello;
    struct ws_tls *tls; // NULL = none
    char *server_name;
    int64_t connect_ms, unreachable_ms;
    uint32_t max_calls;
    size_t max_body, max_bytes;
    bool sleeps;   // whenever it waits
    bool threaded; // with a thread of its own
    void (*on_connection)(void *ctx, int connected, const cadre_client_error *why);
    void (*on_output)(void *ctx, const cadre_client_output *line);
    void *ctx;
};

// On an error there is nothing to be done with *s.
int settings_init(struct settings *s, const cadre_client_options *options, struct err *err);
void settings_done(struct settings *s);
// The token to show now, to be freed; NULL: none, or an error.
char *settings_token(const struct settings *s, struct err *err);

// Copies a struct of the interface that begins with its size, whichever version of it the caller was built with.
int settings_copy_sized(void *to, size_t size, const void *from, const char *what, struct err *err);
