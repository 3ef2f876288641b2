// SPDX-License-Identifier: Apache-2.0
#include "operator/api/quantity.h"
#include "common/base/str.h"
#include "operator/api/resource.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// A number as mantissa * 10^exponent; `inexact`: some dropped digits are not 0.
struct decimal {
    unsigned __int128 mantissa;
    int64_t exponent;
    bool inexact;
};

static const struct unit {
    char text[3];
    int binary;  // power of 2
    int decimal; // power of 10
} units[] = {
    {"", 0, 0},    {"n", 0, -9},  {"u", 0, -6},  {"m", 0, -3},  {"k", 0, 3},   {"M", 0, 6},
    {"G", 0, 9},   {"T", 0, 12},  {"P", 0, 15},  {"E", 0, 18},  {"Ki", 10, 0}, {"Mi", 20, 0},
    {"Gi", 30, 0}, {"Ti", 40, 0}, {"Pi", 50, 0}, {"Ei", 60, 0},
};

// Keeps nineteen digits. This is more than an int64 has, and with any binary unit (60 bits) it fits into 128 bits.
static const char *read_digits(const char *p, struct decimal *d, bool fraction, bool *ret_any)
{
    const unsigned __int128 full = 1000000000000000000u;
    for (; *p >= '0' && *p <= '9'; p++) {
        *ret_any = true;
        if (d->mantissa < full) {
            d->mantissa = d->mantissa * 10 + (unsigned)(*p - '0');
            d->exponent -= fraction;
        } else {
            d->inexact |= *p != '0';
            d->exponent += !fraction;
        }
    }
    return p;
}

static bool read_suffix(const char *p, int64_t *ret_exponent, int *ret_binary)
{
    *ret_binary = 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(p, units[i].text) == 0) {
            *ret_binary = units[i].binary;
            *ret_exponent += units[i].decimal;
            return true;
        }
    }
    if (*p != 'e' && *p != 'E')
        return false;
    p++;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    int64_t e = 0;
    const char *digits = p;
    for (; *p >= '0' && *p <= '9'; p++)
        e = e < 100000 ? e * 10 + (*p - '0') : e; // far out of every range
    *ret_exponent += negative ? -e : e;
    return p > digits && !*p;
}

// Rounds away from zero, as Kubernetes does.
static int64_t to_milli(struct decimal d, int binary)
{
    unsigned __int128 v = d.mantissa << binary;
    int64_t e = d.exponent + 3;
    for (; e > 0 && v && v <= INT64_MAX; e--)
        v *= 10;
    for (; e < 0 && v; e++) {
        d.inexact |= v % 10 != 0;
        v /= 10;
    }
    v += d.inexact && v <= INT64_MAX;
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

int quantity_parse(const char *s, int64_t *ret_milli, struct err *err)
{
    struct decimal d = {0};
    bool negative = *s == '-', any = false;
    const char *p = s + (*s == '-' || *s == '+');
    int binary;
    p = read_digits(p, &d, false, &any);
    if (*p == '.')
        p = read_digits(p + 1, &d, true, &any);
    if (!any || !read_suffix(p, &d.exponent, &binary))
        return err_set(err, ERR_INVALID,
                       "\"%.48s\" is not a quantity; write a number with or without a unit, like 500m, 4 or 1.5Gi", s);
    int64_t milli = to_milli(d, binary);
    *ret_milli = negative ? -milli : milli;
    return 0;
}

static bool counts_bytes(int id)
{
    return id == RESOURCE_MEMORY || id == RESOURCE_EPHEMERAL_STORAGE || str_starts(resource_name(id), "hugepages-");
}

const char *quantity_format(int id, int64_t milli, struct arena *a)
{
    if (milli % 1000)
        return arena_printf(a, "%" PRId64 "m", milli);
    int64_t n = milli / 1000;
    char shortest[32];
    int len = snprintf(shortest, sizeof shortest, "%" PRId64, n);
    for (size_t i = 0; n && counts_bytes(id) && i < sizeof units / sizeof units[0]; i++) {
        int64_t unit = INT64_C(1) << units[i].binary;
        for (int k = 0; k < units[i].decimal; k++)
            unit *= 10;
        char text[32];
        int text_len = snprintf(text, sizeof text, "%" PRId64 "%s", n / unit, units[i].text);
        if (units[i].decimal >= 0 && n % unit == 0 && text_len < len) {
            len = text_len;
            memcpy(shortest, text, sizeof shortest);
        }
    }
    return arena_strdup(a, shortest);
}
