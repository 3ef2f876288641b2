// SPDX-License-Identifier: Apache-2.0
// Errors for users of the client library, made from our own errors and from the ERROR records of the proxy.
#pragma once

#include "common/base/err.h"
#include "sdk/c/include/cadre/client.h"

#include <stdbool.h>

// err->code must be one of err.h.
void fault_from(cadre_client_error *ret, const struct err *err, bool may_have_run);
// The body of an ERROR. If it cannot be read, the result is CADRE_CLIENT_INTERNAL.
void fault_decode(cadre_client_error *ret, const char *body, size_t len);
// For a public function: writes *error, which may be NULL, and returns its code.
cadre_client_code fault_return(cadre_client_error *error, const struct err *err);
// The same code from err.h, for an error of a session.
int fault_err(const cadre_client_error *fault, struct err *err);
// ERR_LIMIT that passes: there is room when other calls have ended.
int fault_refuse_now(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
