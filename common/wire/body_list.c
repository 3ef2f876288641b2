// SPDX-License-Identifier: Apache-2.0
#include "common/wire/body_list.h"

#include "common/base/le.h"

#include <string.h>

enum { HEAD = 8, PREFIX = 8 };

static const char mark[4] = "\xff\xff\xff\xff", zeros[8];

static size_t padding(size_t len)
{
    return -len % sizeof zeros;
}

bool body_list_is(const char *data, size_t len)
{
    return len >= sizeof mark && memcmp(data, mark, sizeof mark) == 0;
}

bool body_list_next(struct body_list *l, struct scatter_source *ret)
{
    if (!l->n)
        return false;
    l->n--;
    *ret = (struct scatter_source){l->p + PREFIX, (size_t)le_get_u64(l->p)};
    l->p += PREFIX + ret->len + padding(ret->len);
    return true;
}

// Whether body_list_next() stays inside the data, and ends at its end.
static bool fits(const struct body_list *l)
{
    const char *p = l->p;
    size_t left = l->len - HEAD;
    for (uint32_t i = 0; i < l->n; i++) {
        if (left < PREFIX)
            return false;
        uint64_t len = le_get_u64(p);
        left -= PREFIX;
        if (len > left || padding(len) > left - len)
            return false;
        left -= len + padding(len);
        p += PREFIX + len + padding(len);
    }
    return left == 0;
}

int body_list_read(const char *data, size_t len, struct body_list *ret, struct err *err)
{
    if (len < HEAD || !body_list_is(data, len))
        return err_set(err, ERR_INVALID, "no list of bodies");
    *ret = (struct body_list){.data = data, .p = data + HEAD, .len = len, .n = le_get_u32(data + sizeof mark)};
    return fits(ret)
               ? 0
               : err_set(err, ERR_INVALID, "a list of %u bodies that do not end where its %zu bytes end", ret->n, len);
}

void body_list_begin(struct scatter *out, uint32_t n)
{
    char number[4];
    le_put_u32(number, n);
    scatter_own(out, mark, sizeof mark);
    scatter_own(out, number, sizeof number);
}

void body_list_before(struct scatter *out, size_t len)
{
    char prefix[PREFIX];
    le_put_u64(prefix, len);
    scatter_own(out, prefix, sizeof prefix);
}

void body_list_behind(struct scatter *out, size_t len)
{
    scatter_own(out, zeros, padding(len));
}
