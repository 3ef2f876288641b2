// SPDX-License-Identifier: Apache-2.0
#include "common/wire/handshake.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HEADERS 64

struct field {
    const char *name, *value; // not NUL-terminated
    size_t name_len, value_len;
};

struct head {
    struct field start; // name: the first line
    struct field fields[MAX_HEADERS];
    size_t n;
};

void handshake_key(const uint8_t nonce[16], char out[HANDSHAKE_KEY_SIZE])
{
    EVP_EncodeBlock((unsigned char *)out, nonce, 16);
}

void handshake_accept(const char *key, char out[HANDSHAKE_ACCEPT_SIZE])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t digest[SHA_DIGEST_LENGTH] = {0};
    _cleanup_(free_p) char *text = xasprintf("%s%s", key, guid);
    SHA1((const unsigned char *)text, strlen(text), digest); // it proves nothing; the protocol requires it
    EVP_EncodeBlock((unsigned char *)out, digest, sizeof digest);
}

size_t handshake_head_len(const char *data, size_t len)
{
    const char *end = len ? memmem(data, len, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - data) + 4 : 0;
}

// Visible characters, blanks and bytes above ASCII: nothing that can end a line.
static bool is_field_text(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 ? *s != '\t' : *s == 0x7f)
            return false;
    return true;
}

// Writes the fields that have a value.
static int write_fields(struct buf *out, const struct handshake_header *fields, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct handshake_header *f = &fields[i];
        if (f->value && !is_field_text(f->value))
            return err_set(err, ERR_INVALID, "the value of header %s has a control character", f->name);
        if (f->value && buf_printf(out, "%s: %s\r\n", f->name, f->value) < 0)
            return err_set(err, ERR_LIMIT, "the request's head is too long");
    }
    return 0;
}

const struct handshake_header *handshake_headers_copy(const struct handshake_header *from, size_t n)
{
    struct handshake_header *to = xcalloc(n, sizeof *to);
    for (size_t i = 0; i < n; i++)
        to[i] = (struct handshake_header){xstrdup(from[i].name), xstrdup(from[i].value)};
    return to;
}

void handshake_headers_free(const struct handshake_header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((char *)headers[i].name);
        free((char *)headers[i].value);
    }
    free((struct handshake_header *)headers);
}

int handshake_request_write(struct buf *out, const struct handshake_request *request, const char *key, struct err *err)
{
    if (request->path[0] != '/' || !is_field_text(request->path) || strchr(request->path, ' '))
        return err_set(err, ERR_INVALID, "the path \"%s\" does not begin with / or has blanks", request->path);
    buf_printf(out, "GET %s HTTP/1.1\r\n", request->path);
    const struct handshake_header fixed[] = {
        {"Host", request->host},         {"Upgrade", "websocket"},   {"Connection", "Upgrade"},
        {"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", key}, {"Sec-WebSocket-Protocol", request->subprotocols}};
    if (write_fields(out, fixed, ARRAY_LEN(fixed), err) < 0 ||
        write_fields(out, request->headers, request->n_headers, err) < 0)
        return err->code;
    return buf_puts(out, "\r\n") < 0 ? err_set(err, ERR_LIMIT, "the request's head is over %zu bytes", out->cap) : 0;
}

static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

// Moves both ends of a text to its first and after its last byte that is not a blank.
static void trim(const char *text, size_t *from, size_t *to)
{
    while (*from < *to && (text[*from] == ' ' || text[*from] == '\t'))
        ++*from;
    while (*to > *from && (text[*to - 1] == ' ' || text[*to - 1] == '\t'))
        --*to;
}

static bool parse_field(const char *line, size_t len, struct field *ret)
{
    size_t name = 0;
    while (name < len && is_token_char(line[name]))
        name++;
    if (name == 0 || name == len || line[name] != ':')
        return false;
    size_t from = name + 1, to = len;
    trim(line, &from, &to);
    for (size_t i = from; i < to; i++)
        if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
            return false;
    *ret = (struct field){line, line + from, name, to - from};
    return true;
}

static int parse_head(const char *text, size_t len, struct head *ret, struct err *err)
{
    const char *end = text + len - 2; // the empty line
    ret->start = (struct field){.name = text, .value = text};
    ret->n = 0;
    for (const char *line = text, *next; line < end; line = next + 2) {
        next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        size_t n = (size_t)(next - line);
        if (line == text) {
            ret->start = (struct field){.name = line, .name_len = n};
            continue;
        }
        if (ret->n == MAX_HEADERS)
            return err_set(err, ERR_LIMIT, "more than %d headers", MAX_HEADERS);
        if (!parse_field(line, n, &ret->fields[ret->n++]))
            return err_set(err, ERR_PROTO, "a header line that is none: \"%.*s\"", (int)MIN(n, 60), line);
    }
    return 0;
}

static bool field_is(const struct field *f, const char *name)
{
    return f->name_len == strlen(name) && strncasecmp(f->name, name, f->name_len) == 0;
}

// NULL if it is missing or occurs more than once.
static const struct field *find(const struct head *head, const char *name)
{
    const struct field *found = NULL;
    for (size_t i = 0; i < head->n; i++)
        if (field_is(&head->fields[i], name)) {
            if (found)
                return NULL;
            found = &head->fields[i];
        }
    return found;
}

static bool value_is(const struct field *f, const char *value)
{
    return f && f->value_len == strlen(value) && strncasecmp(f->value, value, f->value_len) == 0;
}

// Whether a comma-separated list has the element.
static bool list_has(const char *list, size_t len, const char *element, size_t element_len, bool any_case)
{
    for (size_t i = 0; i < len;) {
        size_t to = i;
        while (to < len && list[to] != ',')
            to++;
        size_t from = i, end = to;
        trim(list, &from, &end);
        if (end - from == element_len && (any_case ? strncasecmp(list + from, element, element_len)
                                                   : strncmp(list + from, element, element_len)) == 0)
            return true;
        i = to + 1;
    }
    return false;
}

static bool has_upgrade(const struct head *head)
{
    for (size_t i = 0; i < head->n; i++)
        if (field_is(&head->fields[i], "Connection") &&
            list_has(head->fields[i].value, head->fields[i].value_len, "upgrade", 7, true))
            return value_is(find(head, "Upgrade"), "websocket");
    return false;
}

bool handshake_offers(const char *subprotocols, const char *name)
{
    return subprotocols && list_has(subprotocols, strlen(subprotocols), name, strlen(name), false);
}

// False if the header is missing, or is not a number.
static bool find_number(const struct head *head, const char *name, int64_t *ret)
{
    const struct field *f = find(head, name);
    char digits[12] = "";
    if (f && f->value_len < sizeof digits)
        memcpy(digits, f->value, f->value_len);
    return str_to_i64(digits, ret);
}

static int code_of(int status)
{
    switch (status) {
    case 401:
        return ERR_UNAUTHORIZED;
    case 403:
        return ERR_FORBIDDEN;
    case 404:
        return ERR_NOT_FOUND;
    case 429:
        return ERR_THROTTLED;
    default:
        return status >= 500 ? ERR_UNAVAILABLE : ERR_PROTO;
    }
}

// The text from an API server in between: it answers with a Status, a JSON object. NULL: this is not one.
static const char *status_message(const char *body, size_t len, struct arena *a)
{
    return len && *body == '{' ? json_str(json_get(json_read(body, len, a), "message"), a) : NULL;
}

// Turns an answer other than 101 into an error with the server's words.
static int refused(const struct head *head, int status, const char *rest, size_t rest_len, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    int64_t seconds;
    const char *message = status_message(rest, rest_len, &a);
    if (message) {
        rest = message;
        rest_len = strlen(message);
    }
    size_t len = MIN(rest_len, 200);
    while (len && (unsigned char)rest[len - 1] <= ' ')
        len--;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)rest[i] < ' ' && rest[i] != '\n')
            len = i;
    err->http_status = status;
    if (find_number(head, "Retry-After", &seconds) && seconds >= 0 && seconds <= 86400)
        err->retry_after_ms = seconds * 1000;
    return err_set(err, code_of(status), "the server refused with HTTP status %d%s%.*s", status, len ? ": " : "",
                   (int)len, len ? rest : "");
}

bool handshake_answer_complete(const char *data, size_t len)
{
    struct head h;
    struct err err = ERR_INIT;
    int64_t n;
    size_t head = handshake_head_len(data, len);
    if (!head || parse_head(data, head, &h, &err) < 0)
        return head > 0;
    return !find_number(&h, "Content-Length", &n) || (int64_t)(len - head) >= MIN(n, 1024);
}

int handshake_answer_check(const char *head, size_t len, const char *rest, size_t rest_len, const char *key,
                           const char *subprotocols, char protocol[HANDSHAKE_PROTOCOL_SIZE], struct err *err)
{
    struct head h;
    char accept[HANDSHAKE_ACCEPT_SIZE], digits[4] = "";
    int64_t status;
    protocol[0] = '\0';
    int r = parse_head(head, len, &h, err);
    if (r < 0)
        return r;
    if (h.start.name_len >= 12)
        memcpy(digits, h.start.name + 9, 3);
    if (h.start.name_len < 12 || strncmp(h.start.name, "HTTP/1.", 7) != 0 || !str_to_i64(digits, &status))
        return err_set(err, ERR_PROTO, "the answer to the upgrade is not HTTP: \"%.*s\"",
                       (int)MIN(h.start.name_len, 40), h.start.name);
    if (status != 101)
        return refused(&h, (int)status, rest, rest_len, err);
    const struct field *got = find(&h, "Sec-WebSocket-Accept"), *chosen = find(&h, "Sec-WebSocket-Protocol");
    handshake_accept(key, accept);
    if (!has_upgrade(&h) || !got || got->value_len != strlen(accept) || memcmp(got->value, accept, got->value_len) != 0)
        return err_set(err, ERR_PROTO, "the server said 101 without the websocket handshake of RFC 6455");
    if (find(&h, "Sec-WebSocket-Extensions"))
        return err_set(err, ERR_PROTO, "the server uses an extension that nobody asked for");
    if (!chosen)
        return 0;
    if (!subprotocols || chosen->value_len >= HANDSHAKE_PROTOCOL_SIZE ||
        !list_has(subprotocols, strlen(subprotocols), chosen->value, chosen->value_len, false))
        return err_set(err, ERR_PROTO, "the server chose subprotocol \"%.*s\", which was not offered",
                       (int)MIN(chosen->value_len, 40), chosen->value);
    memcpy(protocol, chosen->value, chosen->value_len);
    protocol[chosen->value_len] = '\0';
    return 0;
}

int handshake_refuse_write(struct buf *out, int status, const char *message)
{
    return buf_printf(out,
                      "HTTP/1.1 %d Refused\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
                      "%sConnection: close\r\n\r\n%s\n",
                      status, strlen(message) + 1,
                      status == 426 ? "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" : "", message);
}
