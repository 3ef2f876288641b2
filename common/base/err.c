// SPDX-License-Identifier: Apache-2.0
#include "common/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
    char msg[sizeof err->msg] = ""; // the arguments may point into err->msg
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    memcpy(err->msg, msg, sizeof msg);
    err->code = code;
    return code;
}

static void append(char *msg, size_t size, const char *more)
{
    size_t used = strlen(msg), n = strlen(more);
    if (n > size - used - 1)
        n = size - used - 1;
    memcpy(msg + used, more, n);
    msg[used + n] = '\0';
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char msg[sizeof err->msg] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    append(msg, sizeof msg, ": ");
    append(msg, sizeof msg, err->msg[0] ? err->msg : err_text(err->code));
    memcpy(err->msg, msg, sizeof msg);
    return err->code;
}

const char *err_name(int code)
{
    switch (code) {
    case 0:
        return "OK";
#define X(name, number, text) \
    case ERR_##name:          \
        return #name;
        ERR_CODES(X)
#undef X
    default:
        return "UNKNOWN";
    }
}

int err_find(const char *name)
{
#define X(n, number, text)     \
    if (strcmp(name, #n) == 0) \
        return ERR_##n;
    ERR_CODES(X)
#undef X
    return 0;
}

const char *err_text(int code)
{
    switch (code) {
#define X(name, number, text) \
    case ERR_##name:          \
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
