// SPDX-License-Identifier: Apache-2.0
// Walking over a JSON list without parsing what is in it.
#include "sdk/c/include/cadre/client.h"

#include <stdbool.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(cadre_client_json *j)
{
    while (j->len && is_blank(*j->text)) {
        j->text++;
        j->len--;
    }
}

// The length of the value up to the comma or bracket that ends it, without blanks; -1 if that does not come.
static ptrdiff_t value_len(const cadre_client_json *j)
{
    size_t depth = 0, end = 0;
    bool in_string = false;
    for (size_t i = 0; i < j->len; i++) {
        char c = j->text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (depth == 0 && (c == ',' || c == ']')) {
            return (ptrdiff_t)end;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (c == ']' || c == '}') {
            if (depth == 0)
                return -1;
            depth--;
        }
        if (!is_blank(c))
            end = i + 1;
    }
    return -1;
}

int cadre_client_list_next(cadre_client_json *list, cadre_client_json *item)
{
    cadre_client_json rest = *list;
    skip_blanks(&rest);
    if (!rest.len || (*rest.text != '[' && *rest.text != ',' && *rest.text != ']'))
        return -1;
    bool first = *rest.text == '[', last = *rest.text == ']';
    rest.text++;
    rest.len--;
    skip_blanks(&rest);
    if (first && rest.len && *rest.text == ']') {
        last = true;
        rest.text++;
        rest.len--;
        skip_blanks(&rest);
    }
    if (last) {
        if (rest.len)
            return -1;
        *list = (cadre_client_json){"]", 1};
        return 0;
    }
    ptrdiff_t len = value_len(&rest);
    if (len <= 0)
        return -1;
    *item = (cadre_client_json){rest.text, (size_t)len};
    *list = (cadre_client_json){rest.text + len, rest.len - (size_t)len};
    return 1;
}
