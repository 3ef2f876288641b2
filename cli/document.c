// SPDX-License-Identifier: Apache-2.0
#include "cli/document.h"

#include "common/base/str.h"

enum { EXACT_BITS = 53 }; // of a double: above this, different integers may become equal

cJSON *document_read(const struct buf *text, struct err *err)
{
    const char *begin = buf_str(text), *end = begin;
    cJSON *root = cJSON_ParseWithLengthOpts(begin, text->len + 1, &end, true);
    if (!root)
        err_set(err, ERR_INVALID, "it is not JSON from byte %zu on", (size_t)(end - begin));
    return root;
}

const cJSON *document_get(const cJSON *of, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(of, name);
    return cJSON_IsNull(v) ? NULL : v;
}

const char *document_str(const cJSON *of, const char *name)
{
    return cJSON_GetStringValue(document_get(of, name));
}

bool document_integer(const cJSON *v, int64_t *ret)
{
    static const double exact = (double)(INT64_C(1) << EXACT_BITS);
    double n = cJSON_GetNumberValue(v); // NaN if it is not a number
    bool good = n > -exact && n < exact && n == (double)(int64_t)n;
    if (good)
        *ret = (int64_t)n;
    return good;
}

int64_t document_i64(const cJSON *of, const char *name)
{
    int64_t n = 0;
    document_integer(document_get(of, name), &n);
    return n;
}

size_t document_count(const cJSON *list)
{
    return (size_t)cJSON_GetArraySize(list);
}

bool document_str_is(const cJSON *of, const char *name, const char *s)
{
    const char *its = document_str(of, name);
    return its && str_eq(its, s);
}
