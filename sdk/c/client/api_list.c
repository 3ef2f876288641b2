// SPDX-License-Identifier: Apache-2.0
// Walks over a list without parsing its elements: JSON, or bodies.
#include "common/base/json_scan.h"
#include "common/wire/body_list.h"
#include "sdk/c/include/cadre/client.h"

#include <stdbool.h>

// The rest of a list of bodies may begin with any byte, so a bit in its length marks it.
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
    if (list->len & LEFT_OF_BODIES || body_list_is(list->text, list->len))
        return next_body(list, item);
    struct json_scan s;
    struct json_item found;
    if (!json_scan_begin(&s, list->text, list->len))
        json_scan_resume(&s, list->text, list->len);
    s.counts = true;
    int got = s.close == ']' ? json_scan_next(&s, &found) : -1;
    if (got == 0)
        *list = (cadre_client_json){"]", 1};
    if (got <= 0)
        return got;
    while (s.p < s.end && json_is_space(*s.p))
        s.p++;
    if (s.p == s.end || (*s.p != ',' && *s.p != ']'))
        return -1;
    *item = (cadre_client_json){found.text, found.len};
    *list = (cadre_client_json){s.p, (size_t)(s.end - s.p)};
    return 1;
}
