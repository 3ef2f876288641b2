// SPDX-License-Identifier: Apache-2.0
// The addresses of a name: a headless Service has one for each replica.
#pragma once

// Returns the nth address of the name in "wss://name:port" (or "ws://"), as "wss://1.2.3.4:port"; after the last
// address comes the first. *ret_name is the name, as in the certificate. The caller frees both. NULL if there is no
// such name, or if it cannot be looked up now.
char *address_nth(const char *url, unsigned nth, char **ret_name);
