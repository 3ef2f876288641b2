// SPDX-License-Identifier: Apache-2.0
// The options of a client, checked and copied.
#pragma once

#include "common/ws/ws_tls.h"
#include "sdk/c/include/cadre/client.h"

enum { SETTINGS_CALLS_MAX = 65535 };

struct settings {
    char *url;           // as it was given, for messages
    const char *address; // part of the URL, as ws_client wants it
    char *path;          // path of the request: the prefix, the namespace, the group
    char *ns, *group;    // group NULL = none
    char *token, *token_file;
    bool token_in_hello;
    struct ws_tls *tls; // NULL = none
    char *server_name;
    int64_t connect_ms, unreachable_ms;
    uint32_t max_calls;
    size_t max_body, max_bytes;
    bool sleeps;   // always sleeps while it waits
    bool threaded; // has its own thread
    void (*on_connection)(void *ctx, int connected, const cadre_client_error *why);
    void (*on_output)(void *ctx, const cadre_client_output *line);
    void *ctx;
};

// After an error, *s needs no cleanup.
int settings_init(struct settings *s, const cadre_client_options *options, struct err *err);
void settings_done(struct settings *s);
// The current token, to be freed; NULL: none, or an error.
char *settings_token(const struct settings *s, struct err *err);

// Copies a struct of the interface that begins with its size. The caller may have been built with another version of
// it.
int settings_copy_sized(void *to, size_t size, const void *from, const char *what, struct err *err);
