// SPDX-License-Identifier: Apache-2.0
// The work of a client. api.c is the public interface.
#pragma once

#include "sdk/c/client/arguments.h"
#include "sdk/c/client/client_state.h"

enum { CLIENT_MORE_MAX = 256 << 10 }; // bytes of `split` and `collect`, with their syntax

struct cadre_client *client_new(struct settings *settings); // takes over the settings
void client_free(struct cadre_client *c);
void client_end(struct cadre_client *c);                        // says goodbye; answers stay
size_t client_turn(struct cadre_client *c, int64_t timeout_ms); // returns how many calls were answered; 0 in a callback
// The first half of a turn. Returns how long the loop may sleep, negative: for ever.
int64_t client_flush(struct cadre_client *c);

uint32_t client_open_calls(const struct cadre_client *c); // without an answer, and not urgent
bool client_may_start(const struct cadre_client *c, bool urgent, struct err *err);
// Memory for arguments that are too long for the queue. Before the call is submitted, the caller writes them to *ret,
// unless that is NULL. Nobody else sees them until then.
int client_reserve(struct cadre_client *c, struct pending *p, const struct arguments *args, char **ret,
                   struct err *err);
// Takes a call that is filled in. After an error it still belongs to the caller.
int client_submit(struct cadre_client *c, struct pending *p, const struct arguments *args, struct err *err);
void client_abandon(struct cadre_client *c, struct pending *p); // frees a call that was not submitted
int client_cancel(struct cadre_client *c, uint64_t id, struct err *err);
