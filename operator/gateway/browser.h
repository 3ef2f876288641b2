// SPDX-License-Identifier: Apache-2.0
// Checks against requests that a web site makes a browser send. A browser runs inside the network, or on the machine,
// of the person who visits the site, so reachability proves nothing. But a browser always sends Origin, and it sends
// JSON to a foreign server only after asking that server. The checks rely on both.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>

// `plain`: a port without TLS, where no certificate ties the name in `host` to this server: a site may have let its own
// name lead here, so only addresses and "localhost" are taken. Both strings may be NULL. ERR_FORBIDDEN.
int browser_check(bool plain, const char *host, const char *origin, struct err *err);
int browser_check_type(const char *content_type, struct err *err); // of a POST; ERR_INVALID with the status 415
