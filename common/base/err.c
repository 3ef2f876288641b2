// SPDX-License-Identifier: Apache-2.0
#include "common/base/err.h"

#include "common/base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
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

static const struct {
    const char *name, *text;
} codes[] = {[0] = {"OK", "unknown error"},
#define X(name, number, text) [number] = {#name, text},
             ERR_CODES(X)
#undef X
};

static bool is_code(int code)
{
    return code <= 0 && code > -(int)ARRAY_LEN(codes);
}

const char *err_name(int code)
{
    return is_code(code) ? codes[-code].name : "UNKNOWN";
}

int err_find(const char *name)
{
    for (int i = 1; i < (int)ARRAY_LEN(codes); i++)
        if (strcmp(name, codes[i].name) == 0)
            return -i;
    return 0;
}

const char *err_text(int code)
{
    return is_code(code) ? codes[-code].text : "unknown error";
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
