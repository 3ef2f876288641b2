// SPDX-License-Identifier: Apache-2.0
#include "common/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
    char msg[sizeof err->msg]; // the arguments may point into err->msg
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    memcpy(err->msg, msg, sizeof msg);
    err->code = code;
    return code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char msg[sizeof err->msg];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    if ((size_t)n < sizeof msg)
        snprintf(msg + n, sizeof msg - (size_t)n, ": %s", err->msg[0] ? err->msg : err_text(err->code));
    memcpy(err->msg, msg, sizeof msg);
    return err->code;
}

const char *err_name(int code)
{
    switch (code) {
    case 0:
        return "OK";
#define X(name, number, text)                                                                      \
    case ERR_##name:                                                                               \
        return #name;
        ERR_CODES(X)
#undef X
    default:
        return "UNKNOWN";
    }
}

const char *err_text(int code)
{
    switch (code) {
#define X(name, number, text)                                                                      \
    case ERR_##name:                                                                               \
        return text;
        ERR_CODES(X)
#undef X
    default:
        return "unknown error";
    }
}

int err_is_retryable(int code)
{
    switch (code) {
    case ERR_IO:
    case ERR_TIMEOUT:
    case ERR_THROTTLED:
    case ERR_UNAVAILABLE:
    case ERR_UNAUTHORIZED: // tokens rotate
    case ERR_CONFLICT:
    case ERR_INTERNAL:
        return 1;
    default:
        return 0;
    }
}
