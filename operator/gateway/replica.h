// SPDX-License-Identifier: Apache-2.0
// Another replica of this operator on a websocket. It proves that it has the install key, and reports which peers it
// sees.
#pragma once

#include "operator/gateway/connection.h"

enum { REPLICA_BEAT_MS = 3000, REPLICA_BEATS_MISSED = 3 };

int replica_hello(struct connection *c, const struct hello *h, struct err *err);
