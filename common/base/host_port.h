// SPDX-License-Identifier: Apache-2.0
// An address of the form HOST:PORT or [IPv6]:PORT.
#pragma once

#include <stdbool.h>

// Splits it. The port must be a number from 1 to 65535. The host is the caller's to free, and has no brackets;
// *ret_port points into `address`. Returns false, and sets neither, if the text has another form, such as "::1:80": its
// brackets are missing. It does not check whether a host of that name can exist.
bool host_port_split(const char *address, char **ret_host, const char **ret_port);
