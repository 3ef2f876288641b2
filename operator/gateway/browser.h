// SPDX-License-Identifier: Apache-2.0
// Refuses requests that a web site makes a browser send. A browser runs inside the network or on the machine of the
// person who visits the site. A request from such a browser therefore proves nothing about the person. But a browser
// always sends Origin, and it sends JSON to a foreign server only after it has asked that server. The checks use both
// facts.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>

// `plain` is a port without TLS. There, no certificate ties the name in `host` to this server, and a site may let its
// own name point here. Only addresses and "localhost" are therefore allowed. Both strings may be NULL. Errors:
// ERR_FORBIDDEN.
int browser_check(bool plain, const char *host, const char *origin, struct err *err);
int browser_check_type(const char *content_type, struct err *err); // for a POST; ERR_INVALID with the status 415
