// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/watch_event.h"

#include "common/base/json_scan.h"

#include <string.h>

static bool event_type(const struct json_item *m, enum watch_event_type *ret)
{
    static const struct {
        const char *text;
        enum watch_event_type type;
    } types[] = {
        {"\"ADDED\"", WATCH_ADDED},       {"\"MODIFIED\"", WATCH_MODIFIED}, {"\"DELETED\"", WATCH_DELETED},
        {"\"BOOKMARK\"", WATCH_BOOKMARK}, {"\"ERROR\"", WATCH_ERROR},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (m->len == strlen(types[i].text) && memcmp(m->text, types[i].text, m->len) == 0) {
            *ret = types[i].type;
            return true;
        }
    }
    return false;
}

// Finds the two members in any order. Returns false if the line is not a JSON object.
static bool find_members(const char *line, size_t len, struct json_item *ret_type, struct json_item *ret_object)
{
    struct json_scan s;
    struct json_item m;
    int got;
    if (!json_scan_begin(&s, line, len) || s.close != '}')
        return false;
    s.counts = true; // objects of other programs may be nested at any depth
    while ((got = json_scan_next(&s, &m)) > 0) {
        if (json_item_is(&m, "type"))
            *ret_type = m;
        else if (json_item_is(&m, "object"))
            *ret_object = m;
    }
    return got == 0;
}

int watch_event_scan(const char *line, size_t len, struct watch_event *ret, struct err *err)
{
    struct json_item type = {0}, object = {0};
    int shown = (int)(len < 80 ? len : 80);
    if (!find_members(line, len, &type, &object))
        return err_set(err, ERR_PROTO, "a line of the watch is not a JSON object: %.*s", shown, line);
    if (!event_type(&type, &ret->type))
        return err_set(err, ERR_PROTO, "an event of the watch has no known type: %.*s", shown, line);
    if (!object.len || object.text[0] != '{')
        return err_set(err, ERR_PROTO, "an event of the watch has no object: %.*s", shown, line);
    ret->object = object.text;
    ret->object_len = object.len;
    return 0;
}

bool watch_event_begins(const char *line, size_t len, struct watch_event *ret)
{
    static const struct {
        const char *text;
        enum watch_event_type type;
    } starts[] = {
        {"{\"type\":\"ADDED\",\"object\":", WATCH_ADDED},
        {"{\"type\":\"MODIFIED\",\"object\":", WATCH_MODIFIED},
        {"{\"type\":\"DELETED\",\"object\":", WATCH_DELETED},
    };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        size_t n = strlen(starts[i].text);
        if (len < n + 3 || memcmp(line, starts[i].text, n) != 0 || line[n] != '{')
            continue;
        *ret = (struct watch_event){starts[i].type, line + n, len - n};
        return true;
    }
    return false;
}

bool watch_event_guess(const char *line, size_t len, struct watch_event *ret)
{
    if (!len || line[len - 1] != '}' || !watch_event_begins(line, len, ret))
        return false;
    ret->object_len--;
    return true;
}
