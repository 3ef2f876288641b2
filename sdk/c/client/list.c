// SPDX-License-Identifier: Apache-2.0
// Walking over a list without parsing what is in it: JSON, or bodies.
#include "common/wire/body_list.h"
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

// What is left of bodies looks like anything: it is marked in its length.
#define LEFT_OF_BODIES (~(SIZE_MAX >> 1))

static int next_body(cadre_client_json *list, cadre_client_json *item)
{
    struct body_list l = {.p = list->text, .n = 1};
    struct scatter_source body;
    struct err err = ERR_INIT;
    const char *end = list->text + (list->len & ~LEFT_OF_BODIES);
    if (!(list->len & LEFT_OF_BODIES) && body_list_read(list->text, list->len, &l, &err) < 0)
        return -1;
    if (!body_list_next(&l, &body)) {
        *list = (cadre_client_json){"]", 1};
        return 0;
    }
    *item = (cadre_client_json){body.data, body.len};
    *list = l.p < end ? (cadre_client_json){l.p, (size_t)(end - l.p) | LEFT_OF_BODIES} : (cadre_client_json){"]", 1};
    return 1;
}

int cadre_client_list_next(cadre_client_json *list, cadre_client_json *item)
{
    cadre_client_json rest = *list;
    if (rest.len & LEFT_OF_BODIES || body_list_is(rest.text, rest.len))
        return next_body(list, item);
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
