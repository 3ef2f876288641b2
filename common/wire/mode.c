// SPDX-License-Identifier: Apache-2.0
#include "common/wire/mode.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#define X(name, number, rule, pieces, takes, results)        \
    [number] = {#name,        RECORD_##name,  MODE_##pieces, \
                MODE_##takes, MODE_##results, #rule " " #pieces " " #takes " " #results},
static const struct dispatch_mode modes[] = {CADRE_DISPATCH_MODES(X)};
#undef X

#define X(name, number) [number] = #name,
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

const char *mode_dispatch_of(unsigned dispatch)
{
    const struct dispatch_mode *m = mode_of(dispatch);
    return m ? m->name : NULL;
}

const char *mode_execute_of(unsigned execute)
{
    return execute < ARRAY_LEN(execute_names) ? execute_names[execute] : NULL;
}

static const char *shown(const char *name)
{
    return name ? name : "?";
}

const char *mode_dispatch_name(unsigned dispatch)
{
    return shown(mode_dispatch_of(dispatch));
}

const char *mode_execute_name(unsigned execute)
{
    return shown(mode_execute_of(execute));
}

static uint8_t number_of(const char *(*of)(unsigned), const char *name)
{
    for (unsigned i = 1; of(i); i++)
        if (str_eq(of(i), name))
            return (uint8_t)i;
    return 0;
}

uint8_t mode_dispatch(const char *name)
{
    return number_of(mode_dispatch_of, name);
}

uint8_t mode_execute(const char *name)
{
    return number_of(mode_execute_of, name);
}

static void list(const char *(*of)(unsigned), struct buf *out)
{
    for (unsigned i = 1; of(i); i++)
        buf_printf(out, "%s%s", i > 1 ? ", " : "", of(i));
}

void mode_dispatch_list(struct buf *out)
{
    list(mode_dispatch_of, out);
}

void mode_execute_list(struct buf *out)
{
    list(mode_execute_of, out);
}
