// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_client_config.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/ws_mask.h"
#include "common/ws/ws_silence.h"

#include <stdlib.h>

static void set_defaults(struct ws_client_config *config)
{
    config->open_ms = config->open_ms ? config->open_ms : 10000;
    int64_t rare_ms = str_starts(config->address, "unix:") ? WS_SILENCE_NEVER_MS : 60000;
    config->ping_ms = config->ping_ms ? config->ping_ms : rare_ms;
    config->pong_ms = config->pong_ms ? config->pong_ms : 10000;
    config->max_message = config->max_message ? config->max_message : (size_t)64 << 20;
    config->max_queue = config->max_queue ? config->max_queue : (size_t)256 << 20;
}

struct ws_client_config ws_client_config_copy(const struct ws_client_config *config)
{
    struct ws_client_config c = *config;
    set_defaults(&c);
    c.address = xstrdup(config->address);
    c.path = xstrdup(config->path ? config->path : "/");
    c.subprotocols = config->subprotocols ? xstrdup(config->subprotocols) : NULL;
    c.server_name = config->server_name ? xstrdup(config->server_name) : NULL;
    c.headers = handshake_headers_copy(config->headers, config->n_headers);
    return c;
}

int ws_client_config_request(const struct ws_client_config *config, const char *host, char key[HANDSHAKE_KEY_SIZE],
                             struct buf *out, struct err *err)
{
    uint8_t nonce[16];
    const struct handshake_request request = {.host = host,
                                              .path = config->path,
                                              .subprotocols = config->subprotocols,
                                              .headers = config->headers,
                                              .n_headers = config->n_headers};
    ws_mask_random(nonce, sizeof nonce);
    handshake_key(nonce, key);
    return handshake_request_write(out, &request, key, err);
}

void ws_client_config_done(struct ws_client_config *config)
{
    free((char *)config->address);
    free((char *)config->path);
    free((char *)config->subprotocols);
    free((char *)config->server_name);
    handshake_headers_free(config->headers, config->n_headers);
}
