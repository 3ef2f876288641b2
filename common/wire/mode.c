// SPDX-License-Identifier: Apache-2.0
#include "common/wire/mode.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#define X(name, number, rule, pieces, takes, results)        \
    [number] = {#name,        RECORD_##name,  MODE_##pieces, \
                MODE_##takes, MODE_##results, #rule " " #pieces " " #takes " " #results},
static const struct dispatch_mode modes[] = {CADRE_DISPATCH_MODES(X)};
#undef X

#define X(name, number, ...) [number] = #name,
static const char *const dispatch_names[] = {CADRE_DISPATCH_MODES(X)};
static const char *const execute_names[] = {CADRE_EXECUTE_MODES(X)};
#undef X

// Numbers have no gap. The number after the last one is the count, DEFAULT included.
#define X(...) +1
_Static_assert(RECORD_DISPATCH_COUNT == 1 CADRE_DISPATCH_MODES(X), "dispatch modes are numbered from 1 in their order");
_Static_assert(RECORD_EXECUTE_COUNT == 1 CADRE_EXECUTE_MODES(X), "execute modes are numbered from 1 in their order");
#undef X

const struct dispatch_mode *mode_of(unsigned dispatch)
{
    return dispatch > 0 && dispatch < ARRAY_LEN(modes) ? &modes[dispatch] : NULL;
}

bool mode_lists_ranks(const struct dispatch_mode *m)
{
    return m->takes == MODE_NOTHING && m->results == MODE_LIST;
}

static const char *name_of(const char *const *names, size_t n, unsigned mode)
{
    return mode < n && names[mode] ? names[mode] : "?";
}

static uint8_t number_of(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 1; i < n; i++)
        if (str_eq(names[i], name))
            return (uint8_t)i;
    return 0;
}

static void list(const char *const *names, size_t n, struct buf *out)
{
    for (size_t i = 1; i < n; i++)
        buf_printf(out, "%s%s", i > 1 ? ", " : "", names[i]);
}

const char *mode_dispatch_name(unsigned dispatch)
{
    return name_of(dispatch_names, ARRAY_LEN(dispatch_names), dispatch);
}

const char *mode_execute_name(unsigned execute)
{
    return name_of(execute_names, ARRAY_LEN(execute_names), execute);
}

uint8_t mode_dispatch(const char *name)
{
    return number_of(dispatch_names, ARRAY_LEN(dispatch_names), name);
}

uint8_t mode_execute(const char *name)
{
    return number_of(execute_names, ARRAY_LEN(execute_names), name);
}

void mode_dispatch_list(struct buf *out)
{
    list(dispatch_names, ARRAY_LEN(dispatch_names), out);
}

void mode_execute_list(struct buf *out)
{
    list(execute_names, ARRAY_LEN(execute_names), out);
}
