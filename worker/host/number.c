// SPDX-License-Identifier: Apache-2.0
#include "worker/host/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        abort(); // "C" always exists, so there is no memory
}

static locale_t plain_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain;
}

bool number_read(const struct json *v, double *ret)
{
    char digits[512];
    if (!v || v->type != JSON_NUMBER || v->len >= sizeof digits)
        return false;
    memcpy(digits, v->text, v->len);
    digits[v->len] = '\0';
    *ret = strtod_l(digits, NULL, plain_locale());
    return isfinite(*ret);
}

bool number_format(double v, char out[NUMBER_SIZE])
{
    if (!isfinite(v))
        return false;
    locale_t before = uselocale(plain_locale());
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_SIZE, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    uselocale(before);
    return true;
}
