// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/weights.h"

#include "common/base/mem.h"

#include <string.h>

struct weight {
    const char *ns;
    size_t ns_len;
    uint32_t n;
};

// Reads the first weight of the text. Returns the text after its comma, or NULL at the end. If the text is wrong,
// returns NULL, and `n` is 0.
static const char *read_one(const char *text, struct weight *ret)
{
    size_t len = strcspn(text, ","), name = strcspn(text, "=,");
    *ret = (struct weight){.ns = text, .ns_len = name};
    uint32_t n = 0;
    for (size_t i = name + 1; i < len && n <= WEIGHT_MAX; i++)
        n = text[i] >= '0' && text[i] <= '9' ? n * 10 + (uint32_t)(text[i] - '0') : WEIGHT_MAX + 1;
    ret->n = name && n <= WEIGHT_MAX ? n : 0;
    return text[len] && ret->n ? text + len + 1 : NULL;
}

bool weights_check(const char *text)
{
    struct weight w = {.n = 1};
    while (text && w.n)
        text = read_one(text, &w);
    return w.n > 0;
}

uint32_t weights_of(const char *given, const char *ns)
{
    struct weight w;
    size_t len = strlen(ns);
    while (given) {
        given = read_one(given, &w);
        if (w.ns_len == len && memcmp(w.ns, ns, len) == 0)
            return MAX(w.n, 1u);
    }
    return 1;
}
