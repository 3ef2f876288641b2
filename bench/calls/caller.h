// SPDX-License-Identifier: Apache-2.0
// A client of the client library, as a user's program has it, and a batch for its calls. If something fails, these
// functions print a message and exit with 1.
#pragma once

#include <stddef.h>

struct cadre_client;
struct cadre_client_error;

// ca_pem: the CA of the proxy, for TLS; NULL = no TLS. max_body: the longest body of a call, in bytes; 0 = the default.
struct cadre_client *caller_open(const char *address, const char *ns, const char *ca_pem, size_t max_body);
// Returns a batch with one tensor of `bytes`, in rows of 1024 elements of this type and size. The caller frees it.
void *caller_batch(const char *dtype, size_t element, size_t bytes, size_t *ret_len);
_Noreturn void caller_die(const char *what, const struct cadre_client_error *error);
