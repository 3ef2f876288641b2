// SPDX-License-Identifier: Apache-2.0
// One HTTP request: the POST of a JSON-RPC request, which is a session with one call, or the GET of the CA.
#pragma once

#include "operator/gateway/gateway_state.h"

// The callbacks on_head and on_http of ws_server_config.
int post_head(void *gateway, struct ws_request *r);
void post_whole(void *gateway, struct ws_request *r);
void posts_go_on(struct gateway *g);          // continues those that waited for another turn of the loop
void posts_stop(struct gateway *g, bool all); // answers with 503: those that wait, or all
void posts_free(struct gateway *g);           // without answers
