// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOG_LINE_MAX = 16 * 1024, LOG_MSG_MAX = 8 * 1024 };

static enum log_level log_threshold = LOG_INFO;
static enum log_format log_style = LOG_JSON;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level level, enum log_format format)
{
    log_threshold = level;
    log_style = format;
}

bool log_level_parse(const char *s, enum log_level *ret)
{
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++)
        if (str_eq(s, level_names[i])) {
            *ret = (enum log_level)i;
            return true;
        }
    return false;
}

bool log_enabled(enum log_level level)
{
    return level >= log_threshold;
}

// The character at s, of `len` bytes, as it may stand in a JSON string; len 0: a byte that is not UTF-8.
static void put_char(struct buf *b, const char *s, size_t len)
{
    unsigned char c = (unsigned char)*s;
    if (len == 0)
        buf_puts(b, "\xef\xbf\xbd"); // U+FFFD
    else if (c == '"' || c == '\\')
        buf_printf(b, "\\%c", c);
    else if (c == '\n')
        buf_puts(b, "\\n");
    else if (c < 0x20)
        buf_printf(b, "\\u%04x", c);
    else
        buf_append(b, s, len);
}

static void put_quoted(struct buf *b, const char *s, size_t max)
{
    size_t limit = b->len + max;
    buf_putc(b, '"');
    for (size_t left = strlen(s), len; left && b->len < limit; s += MAX(len, 1), left -= MAX(len, 1)) {
        len = str_utf8_len(s, left);
        put_char(b, s, len);
    }
    buf_putc(b, '"');
}

static void put_time(struct buf *b)
{
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    char text[32];
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    buf_printf(b, "%s.%03ldZ", text, ts.tv_nsec / 1000000);
}

static void put_pair(struct buf *b, const char *key, const char *value)
{
    if (log_style == LOG_JSON) {
        buf_putc(b, ',');
        put_quoted(b, key, LOG_MSG_MAX);
        buf_putc(b, ':');
    } else {
        buf_printf(b, " %s=", key);
    }
    put_quoted(b, value, LOG_LINE_MAX);
}

void log_write(enum log_level level, const char *msg, ...)
{
    if (!log_enabled(level))
        return;
    _cleanup_(buf_done) struct buf b = BUF_INIT(LOG_LINE_MAX);
    if (log_style == LOG_JSON) {
        buf_puts(&b, "{\"time\":\"");
        put_time(&b);
        buf_printf(&b, "\",\"level\":\"%s\",\"msg\":", level_names[level]);
        put_quoted(&b, msg, LOG_MSG_MAX);
    } else {
        put_time(&b);
        buf_printf(&b, " %-5s %.*s", level_names[level], LOG_MSG_MAX, msg);
    }
    va_list ap;
    va_start(ap, msg);
    for (const char *key; (key = va_arg(ap, const char *));) {
        const char *value = va_arg(ap, const char *);
        size_t before = b.len;
        if (value)
            put_pair(&b, key, value);
        if (b.over) { // a line is cut between pairs, so that it stays JSON
            b.len = before;
            break;
        }
    }
    va_end(ap);
    b.over = false;
    b.cap += 8;
    buf_puts(&b, log_style == LOG_JSON ? "}\n" : "\n");
    for (size_t off = 0; off < b.len;) {
        ssize_t n = write(STDERR_FILENO, b.data + off, b.len - off);
        if (n <= 0)
            break; // nowhere left to say it
        off += (size_t)n;
    }
}

const char *log_i64(long long v)
{
    static _Thread_local char ring[8][24];
    static _Thread_local unsigned next;
    char *s = ring[next++ % 8];
    snprintf(s, sizeof ring[0], "%lld", v);
    return s;
}
