// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_writer.h"

#include "common/base/fiber.h"
#include "common/base/json_scan.h"
#include "common/base/rfc3339.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <string.h>

void writer_done(struct json_writer *w)
{
    buf_done(&w->buf);
}

char *writer_finish(struct json_writer *w, struct arena *a)
{
    char *text = w->buf.over ? NULL : arena_strndup(a, buf_str(&w->buf), w->buf.len);
    writer_done(w);
    return text;
}

static void put_escaped(struct buf *b, unsigned char c)
{
    static const char short_for[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *s = memchr(short_for, c, sizeof short_for - 1);
    if (s)
        buf_append(b, (const char[]){'\\', letter[s - short_for]}, 2);
    else
        buf_printf(b, "\\u%04x", c);
}

#define REPLACEMENT "\xef\xbf\xbd"

static void put_plain(struct buf *b, const char *s, size_t n)
{
    if (buf_reserve(b, n + 2) < 0)
        return;
    char *at = b->data + b->len;
    at[0] = '"';
    if (n)
        memcpy(at + 1, s, n);
    memcpy(at + 1 + n, "\"", 2);
    b->len += n + 2;
}

static void put_string(struct buf *b, const char *s, size_t n)
{
    size_t plain = 0,
           rest = 0; // `plain` bytes before i wait to be appended; fiber_spend() has counted the bytes up to `rest`
    if (n <= FIBER_STEP && json_plain_end(s, s + n) == s + n) {
        put_plain(b, s, n);
        return;
    }
    buf_putc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (i - rest >= FIBER_STEP) {
            fiber_spend(i - rest);
            rest = i;
        }
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            plain++;
            continue;
        }
        size_t len = c >= 0x80 ? str_utf8_len(s + i, n - i) : 0;
        if (len) {
            plain += len;
            i += len - 1;
            continue;
        }
        buf_append(b, s + i - plain, plain);
        plain = 0;
        if (c >= 0x80)
            buf_puts(b, REPLACEMENT);
        else
            put_escaped(b, c);
    }
    buf_append(b, s + n - plain, plain);
    buf_putc(b, '"');
}

void writer_key(struct json_writer *w, const char *key, size_t len)
{
    if (w->comma)
        buf_putc(&w->buf, ',');
    put_string(&w->buf, key, len);
    buf_putc(&w->buf, ':');
    w->comma = false;
}

// Writes the name or the comma before a value. The next value then needs a comma.
static void put_lead(struct json_writer *w, const char *key)
{
    if (key)
        writer_key(w, key, strlen(key));
    else if (w->comma)
        buf_putc(&w->buf, ',');
    w->comma = true;
}

static void put_open(struct json_writer *w, const char *key, char c)
{
    put_lead(w, key);
    buf_putc(&w->buf, c);
    w->comma = false;
}

static void put_close(struct json_writer *w, char c)
{
    buf_putc(&w->buf, c);
    w->comma = true;
}

void writer_object(struct json_writer *w, const char *key)
{
    put_open(w, key, '{');
}

void writer_object_end(struct json_writer *w)
{
    put_close(w, '}');
}

void writer_list(struct json_writer *w, const char *key)
{
    put_open(w, key, '[');
}

void writer_list_end(struct json_writer *w)
{
    put_close(w, ']');
}

void writer_null(struct json_writer *w, const char *key)
{
    writer_raw(w, key, "null", 4);
}

void writer_str(struct json_writer *w, const char *key, const char *s)
{
    if (!s) {
        writer_null(w, key);
        return;
    }
    put_lead(w, key);
    put_string(&w->buf, s, fiber_strlen(s));
}

void writer_str_max(struct json_writer *w, const char *key, const char *s, size_t max)
{
    if (!s) {
        writer_null(w, key);
        return;
    }
    size_t n = 0, read = 0, all = strlen(s);
    while (n < all) {
        size_t len = str_utf8_len(s + n, all - n);
        read += len ? len : strlen(REPLACEMENT);
        if (read > max)
            break;
        n += len ? len : 1;
    }
    put_lead(w, key);
    put_string(&w->buf, s, n);
}

void writer_str_set(struct json_writer *w, const char *key, const char *s)
{
    if (!str_empty(s))
        writer_str(w, key, s);
}

void writer_i64(struct json_writer *w, const char *key, int64_t v)
{
    put_lead(w, key);
    buf_printf(&w->buf, "%" PRId64, v);
}

void writer_bool(struct json_writer *w, const char *key, bool v)
{
    put_lead(w, key);
    buf_puts(&w->buf, v ? "true" : "false");
}

void writer_time(struct json_writer *w, const char *key, int64_t ms)
{
    char text[RFC3339_SIZE];
    writer_str(w, key, ms ? rfc3339_format(ms, text) : NULL);
}

void writer_micro(struct json_writer *w, const char *key, int64_t ms)
{
    char text[RFC3339_SIZE];
    writer_str(w, key, ms ? rfc3339_format_micro(ms, text) : NULL);
}

void writer_raw(struct json_writer *w, const char *key, const char *json, size_t len)
{
    put_lead(w, key);
    buf_append(&w->buf, json, len);
}

void writer_copy(struct json_writer *w, const struct json *v)
{
    if (v->key)
        writer_key(w, v->key, v->key_len);
    writer_raw(w, NULL, v->text, v->len);
}

void writer_strs(struct json_writer *w, const char *key, const char *const *items, size_t n)
{
    writer_list(w, key);
    for (size_t i = 0; i < n; i++)
        writer_str(w, NULL, items[i]);
    writer_list_end(w);
}

// Writes the value for the directive after a %. Returns the text after the directive.
static const char *put_value(struct json_writer *w, const char *directive, va_list *ap)
{
    w->comma = false; // the format has the commas
    if (str_starts(directive, PRId64)) {
        writer_i64(w, NULL, va_arg(*ap, int64_t));
        return directive + strlen(PRId64);
    }
    bool raw = *directive == '-';
    const char *s = va_arg(*ap, const char *);
    if (raw)
        writer_raw(w, NULL, s, strlen(s));
    else
        writer_str(w, NULL, s);
    return directive + (raw ? 2 : 1);
}

static void print(struct json_writer *w, const char *key, const char *format, va_list *ap)
{
    put_lead(w, key);
    for (;;) {
        size_t n = strcspn(format, "'%");
        buf_append(&w->buf, format, n);
        format += n;
        if (!*format)
            break;
        if (*format++ == '%')
            format = put_value(w, format, ap);
        else
            buf_putc(&w->buf, '"');
    }
    w->comma = true;
}

void writer_print(struct json_writer *w, const char *key, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print(w, key, format, &ap);
    va_end(ap);
}

char *json_print(struct arena *a, const char *format, ...)
{
    struct json_writer w = WRITER_INIT;
    va_list ap;
    va_start(ap, format);
    print(&w, NULL, format, &ap);
    va_end(ap);
    return writer_finish(&w, a);
}
