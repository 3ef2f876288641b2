// SPDX-License-Identifier: Apache-2.0
// Requests that a web site makes a browser send. A browser is inside the network, or on the machine, of the person who
// looks at the site, so being reachable is no proof. It cannot leave out Origin, nor send JSON to a foreign server
// without asking that server first, which is what these checks rely on.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>

// `plain`: a port without TLS, where no certificate ties the name in `host` to this server: a site may have let its own
// name lead here, so only addresses and "localhost" are taken. Both strings may be NULL. ERR_FORBIDDEN.
int browser_check(bool plain, const char *host, const char *origin, struct err *err);
int browser_check_type(const char *content_type, struct err *err); // of a POST; ERR_INVALID with the status 415
