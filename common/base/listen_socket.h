// SPDX-License-Identifier: Apache-2.0
// Listening TCP sockets.
#pragma once

#include "common/base/err.h"

// Listens at "host:port" with a numeric host ("[...]" around an IPv6 address), or at ":port": all addresses of both
// families. Port 0 picks one; *ret_port is the port. Returns a non-blocking descriptor, which the caller closes.
// ERR_INVALID: it is not such an address. ERR_UNAVAILABLE: the process cannot listen there. The message names the
// address and the reason.
int listen_socket_open(const char *address, int *ret_port, struct err *err);
