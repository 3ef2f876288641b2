// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/json_skip.h"

#include "common/base/json_plain.h"

#include <string.h>

bool json_skip_start(struct json_skip *s, char first)
{
    *s = (struct json_skip){.scalar = first != '"' && first != '{' && first != '['};
    return first && strchr("\"{[-0123456789tfn", first);
}

// Returns the index behind the closing quote, or n while the string is still open.
static size_t skip_string(struct json_skip *s, const char *bytes, size_t i, size_t n)
{
    for (; i < n; i++) {
        if (s->escaped) {
            s->escaped = false;
            continue;
        }
        i = (size_t)(json_plain_end(bytes + i, bytes + n) - bytes);
        if (i == n)
            break;
        if (bytes[i] == '\\') {
            s->escaped = true;
        } else if (bytes[i] == '"') {
            s->in_string = false;
            return i + 1;
        }
    }
    return n;
}

static bool ends_scalar(char c)
{
    return json_is_space(c) || c == ',' || c == '}' || c == ']' || c == ':' || c == '"';
}

size_t json_skip_feed(struct json_skip *s, const char *bytes, size_t n, bool *ret_ended)
{
    size_t i = 0;
    *ret_ended = true;
    while (i < n) {
        if (s->in_string) {
            i = skip_string(s, bytes, i, n);
            if (!s->in_string && s->depth == 0)
                return i;
            continue;
        }
        char c = bytes[i];
        if (s->scalar) {
            if (ends_scalar(c))
                return i;
        } else if (c == '"') {
            s->in_string = true;
        } else if (c == '{' || c == '[') {
            s->depth++;
        } else if ((c == '}' || c == ']') && --s->depth == 0) {
            return i + 1;
        }
        i++;
    }
    *ret_ended = false;
    return n;
}
