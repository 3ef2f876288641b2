// SPDX-License-Identifier: Apache-2.0
#include "cli/document.h"

#include "common/base/str.h"

enum { EXACT_BITS = 53 }; // of a double: below this no two integers are the same

cJSON *document_read(const struct buf *text, struct err *err)
{
    const char *begin = buf_str(text), *end = begin;
    cJSON *root = cJSON_ParseWithLengthOpts(begin, text->len + 1, &end, true);
    if (!root)
        err_set(err, ERR_INVALID, "no JSON from byte %zu on", (size_t)(end - begin));
    return root;
}

const cJSON *document_get(const cJSON *of, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(of, name);
}

const char *document_str(const cJSON *of, const char *name)
{
    return cJSON_GetStringValue(document_get(of, name));
}

int64_t document_i64(const cJSON *of, const char *name)
{
    static const double exact = (double)(INT64_C(1) << EXACT_BITS);
    double v = cJSON_GetNumberValue(document_get(of, name)); // NaN where it is none
    return v > -exact && v < exact && v == (double)(int64_t)v ? (int64_t)v : 0;
}

bool document_str_is(const cJSON *of, const char *name, const char *s)
{
    const char *its = document_str(of, name);
    return its && str_eq(its, s);
}
