// SPDX-License-Identifier: Apache-2.0
// The addresses of a name: a headless Service has one for each replica.
#pragma once

// Of "wss://name:port" (or "ws://") the nth address, in turn, as "wss://1.2.3.4:port", and the name, which is that in
// the certificate; the caller frees both. NULL for anything that has no such name, or none that can be looked up now.
char *address_nth(const char *url, unsigned nth, char **ret_name);
