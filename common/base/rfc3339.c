// SPDX-License-Identifier: Apache-2.0
#include "common/base/rfc3339.h"

#include "common/base/mem.h"

#include <stdio.h>
#include <time.h>

// The number of exactly n digits at *p, -1 if they are not there; moves after it.
static int take_digits(const char **p, const char *end, int n)
{
    int v = 0;
    if (end - *p < n)
        return -1;
    for (int i = 0; i < n; i++, ++*p) {
        if (**p < '0' || **p > '9')
            return -1;
        v = v * 10 + (**p - '0');
    }
    return v;
}

static bool take_char(const char **p, const char *end, char c)
{
    if (*p == end || **p != c)
        return false;
    ++*p;
    return true;
}

static int take_millis(const char **p, const char *end)
{
    int ms = 0, digits = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
        if (digits++ < 3)
            ms = ms * 10 + (**p - '0');
    for (int i = digits; i < 3; i++)
        ms *= 10;
    return digits ? ms : -1;
}

static bool take_offset(const char **p, const char *end, int *ret_minutes)
{
    *ret_minutes = 0;
    if (take_char(p, end, 'Z') || take_char(p, end, 'z'))
        return true;
    int sign = take_char(p, end, '+') ? 1 : take_char(p, end, '-') ? -1 : 0;
    int hours = take_digits(p, end, 2);
    bool colon = take_char(p, end, ':');
    int minutes = take_digits(p, end, 2);
    *ret_minutes = sign * (hours * 60 + minutes);
    return sign && hours >= 0 && hours < 24 && colon && minutes >= 0 && minutes < 60;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

// Days since 1970-01-01. Years begin in March here, so that the leap day is their last one.
static int64_t days_of(int year, int month, int day)
{
    int64_t y = year - (month <= 2), m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
}

bool rfc3339_parse(const char *s, size_t len, int64_t *ret_ms)
{
    const char *p = s, *end = s + len;
    int year = take_digits(&p, end, 4);
    bool ok = take_char(&p, end, '-');
    int month = take_digits(&p, end, 2);
    ok = ok && take_char(&p, end, '-');
    int day = take_digits(&p, end, 2);
    ok = ok && (take_char(&p, end, 'T') || take_char(&p, end, 't'));
    int hour = take_digits(&p, end, 2);
    ok = ok && take_char(&p, end, ':');
    int minute = take_digits(&p, end, 2);
    ok = ok && take_char(&p, end, ':');
    int second = take_digits(&p, end, 2);
    int ms = ok && take_char(&p, end, '.') ? take_millis(&p, end) : 0, offset;
    if (!ok || !take_offset(&p, end, &offset) || p != end || year < 1 || month < 1 || month > 12 || day < 1 ||
        day > month_days(year, month) || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60 || ms < 0)
        return false;
    int64_t minutes = days_of(year, month, day) * 1440 + hour * 60 + minute - offset;
    *ret_ms = (minutes * 60 + second) * 1000 + ms;
    return true;
}

// The date and time in UTC to the second, up to the place of the fraction; returns its length. An offset may make a
// time that is before the year 1 or after 9999: this becomes the nearest time that can be written.
static size_t put_seconds(int64_t ms, char out[RFC3339_SIZE], int *ret_ms)
{
    const int64_t first = INT64_C(-62135596800000), last = INT64_C(253402300799999);
    struct tm tm;
    ms = MAX(first, MIN(ms, last));
    *ret_ms = (int)((ms % 1000 + 1000) % 1000);
    time_t seconds = (time_t)((ms - *ret_ms) / 1000);
    if (!gmtime_r(&seconds, &tm))
        tm = (struct tm){.tm_mday = 1, .tm_year = 70};
    size_t n = (size_t)snprintf(out, RFC3339_SIZE, "%04d", tm.tm_year + 1900); // %Y does not fill up to four digits
    return n + strftime(out + n, RFC3339_SIZE - n, "-%m-%dT%H:%M:%S", &tm);
}

const char *rfc3339_format(int64_t ms, char out[RFC3339_SIZE])
{
    int rest;
    size_t n = put_seconds(ms, out, &rest);
    snprintf(out + n, RFC3339_SIZE - n, "Z");
    return out;
}

const char *rfc3339_format_micro(int64_t ms, char out[RFC3339_SIZE])
{
    int rest;
    size_t n = put_seconds(ms, out, &rest);
    snprintf(out + n, RFC3339_SIZE - n, ".%06dZ", rest * 1000);
    return out;
}
