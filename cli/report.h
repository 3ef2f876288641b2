// SPDX-License-Identifier: Apache-2.0
// Errors in the form that users of kubectl know: one line on stderr.
#pragma once

#include "common/base/err.h"
#include "sdk/c/include/cadre/client.h"

// All return the exit status.
int report_err(const struct err *err);
int report_failure(const cadre_client_error *error); // of a call
int report_unwritten(int error_number);              // for stdout; silent if nobody reads it any more
