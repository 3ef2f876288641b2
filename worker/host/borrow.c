// SPDX-License-Identifier: Apache-2.0
#include "worker/host/borrow.h"

#include "common/base/mem.h"
#include "common/wire/safetensors.h"
#include "worker/host/dial.h"
#include "worker/host/lending.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE_MAX = 512, PIECE = 1 << 20 };

static int unreachable(const struct borrow *b, const char *why, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "OwnerUnreachable: %s, which has the object, at %s: %s; workers fetch from each other directly: "
                   "NetworkPolicies must allow that",
                   b->owner, b->at, why);
}

static int lost(const struct borrow *b, uint64_t got, const char *why, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "OwnerUnreachable: %s was lost after %" PRIu64 " of %" PRIu64 " bytes of the object: %s", b->owner,
                   got, b->bytes, why);
}

static int stopped(const struct borrow *b, struct err *err)
{
    return err_set(err, ERR_CANCELED, "canceled while the object of %s was fetched", b->owner);
}

static int reach(const struct borrow *b, int *ret, struct err *err)
{
    struct err why = ERR_INIT;
    int r = dial(b->at, b->canceled, ret, &why);
    return r == ERR_CANCELED ? stopped(b, err) : r < 0 ? unreachable(b, why.msg, err) : 0;
}

// All of it, or an error; *got counts.
static int transfer(const struct borrow *b, int fd, bool out, char *data, size_t len, uint64_t *got, struct err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = out ? send(fd, data + done, len - done, MSG_NOSIGNAL) : recv(fd, data + done, len - done, 0);
        if (n > 0) {
            done += (size_t)n;
            *got += out ? 0 : (uint64_t)n;
            continue;
        }
        if (n == 0)
            return lost(b, *got, "it hung up", err);
        if (errno != EAGAIN && errno != EINTR)
            return lost(b, *got, strerror(errno), err);
        int r = dial_wait(fd, out ? POLLOUT : POLLIN, BORROW_SILENT_MS, b->canceled);
        if (r == ERR_CANCELED)
            return stopped(b, err);
        if (r < 0)
            return lost(b, *got, "nothing came for half a minute", err);
        if (atomic_load(b->canceled))
            return stopped(b, err);
    }
    return 0;
}

static int refused(const struct borrow *b, int fd, const struct lending_answer *a, struct err *err)
{
    char message[MESSAGE_MAX + 1];
    uint64_t ignored = 0;
    size_t len = (size_t)MIN(a->len, (uint64_t)MESSAGE_MAX);
    int code = a->code <= (uint32_t)-ERR_INTERNAL ? -(int)a->code : ERR_PROTO;
    if (transfer(b, fd, false, message, len, &ignored, err) < 0)
        return err->code;
    message[len] = '\0';
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "%s no longer has the object: %s", b->owner, message);
    return err_set(err, code, "%s does not give the object: %s", b->owner, message);
}

// Values for the device

// The head of the document, which says how long it is.
static int take_head(const struct borrow *b, int fd, char *out, size_t *ret_len, uint64_t *got, struct err *err)
{
    int r = b->bytes < SAFETENSORS_PREFIX ? ERR_PROTO : transfer(b, fd, false, out, SAFETENSORS_PREFIX, got, err);
    if (r == 0)
        r = safetensors_head_len(out, ret_len, err);
    if (r == ERR_PROTO || (r == 0 && *ret_len > b->bytes))
        return err_set(err, ERR_PROTO, "%s says that an object has values on a device, which is not a document",
                       b->owner);
    return r < 0 ? r : transfer(b, fd, false, out + SAFETENSORS_PREFIX, *ret_len - SAFETENSORS_PREFIX, got, err);
}

static int receive_values(const struct borrow *b, int fd, struct copier *copier, struct region *to, uint64_t *got,
                          struct err *err)
{
    _cleanup_(free_p) char *piece = xmalloc(PIECE);
    int r = 0;
    for (size_t at = 0; r == 0 && at < to->len; at += PIECE) {
        size_t n = MIN((size_t)PIECE, to->len - at);
        r = transfer(b, fd, false, piece, n, got, err);
        if (r == 0)
            r = copier_upload(copier, (char *)to->memory + at, piece, n, b->canceled, err);
    }
    return r < 0 ? r : copier_wait(copier, b->canceled, err);
}

// The owner keeps the values as long as this process does not hang up. Memory that a copy reads stays mapped: so the
// copy is not canceled, and one that does not end keeps its mapping until the process ends.
static int copy_values(const struct borrow *b, struct copier *copier, const struct device_handle *handle,
                       struct region *to, struct err *err)
{
    struct device *d = rank_device_of(b->device);
    struct device_mapping map;
    int r = device_import(d, handle, &map, err);
    if (r < 0)
        return r;
    r = device_copy(d, to->memory, map.memory, to->len, copier_stream(copier), err);
    if (r == 0)
        r = device_stream_wait(d, copier_stream(copier), BORROW_COPY_MS, NULL, err);
    if (r != ERR_TIMEOUT)
        device_unimport(d, &map);
    return r;
}

static int take_values(const struct borrow *b, int fd, const struct device_handle *handle, size_t len,
                       struct region **ret, uint64_t *got, struct err *err)
{
    struct copier *copier;
    struct region *values = NULL;
    int r = rank_device_enter(b->device, err);
    if (r < 0)
        return r;
    r = rank_device_lend(b->device, true, &copier, err);
    if (r == 0)
        r = region_new(b->device, len, &values, err);
    if (r == 0)
        r = handle ? copy_values(b, copier, handle, values, err) : receive_values(b, fd, copier, values, got, err);
    rank_device_leave(b->device);
    rank_device_give(b->device, copier);
    if (r == 0)
        *ret = values;
    else
        region_unref_now(values);
    return r;
}

static int take_device(const struct borrow *b, int fd, enum lending_form form, char *out, struct region **ret,
                       bool *ret_unusable, struct err *err)
{
    struct device_handle handle;
    size_t head = 0;
    uint64_t got = 0;
    int r = 0;
    if (form == LENDING_HANDLE)
        r = transfer(b, fd, false, (char *)handle.bytes, sizeof handle.bytes, &got, err);
    if (r == 0)
        r = take_head(b, fd, out, &head, &got, err);
    if (r < 0)
        return r;
    r = take_values(b, fd, form == LENDING_HANDLE ? &handle : NULL, (size_t)b->bytes - head, ret, &got, err);
    *ret_unusable = r == ERR_INVALID;
    return r < 0 ? err_wrap(err, "the object of %s", b->owner) : 0;
}

// Asking

// *ret_unusable: this process can do nothing with an answer of that form.
static int ask(const struct borrow *b, int fd, uint32_t place, char *out, struct region **ret, bool *ret_unusable,
               struct err *err)
{
    char question[LENDING_QUESTION_LEN], head[LENDING_ANSWER_LEN];
    struct lending_question q = {.place = place, .id = b->id, .until = b->until};
    struct lending_answer a;
    uint64_t got = 0;
    memcpy(q.key, b->key, sizeof q.key);
    lending_question_write(&q, question);
    int r = transfer(b, fd, true, question, sizeof question, &got, err);
    if (r == 0)
        r = transfer(b, fd, false, head, sizeof head, &got, err);
    if (r < 0)
        return r;
    got = 0;
    if (lending_answer_read(head, &a) < 0)
        return unreachable(b, "another program listens there", err);
    if (a.code)
        return refused(b, fd, &a, err);
    if (a.len != b->bytes)
        return err_set(err, ERR_INVALID, "the object of %s has %" PRIu64 " bytes, and %" PRIu64 " by its reference",
                       b->owner, a.len, b->bytes);
    return a.form == LENDING_BYTES ? transfer(b, fd, false, out, (size_t)a.len, &got, err)
                                   : take_device(b, fd, a.form, out, ret, ret_unusable, err);
}

int borrow(const struct borrow *b, char *out, struct region **ret_values, struct err *err)
{
    const uint32_t places[] = {b->device ? rank_device_place(b->device) : LENDING_NO_GPU, (uint32_t)LENDING_ELSEWHERE,
                               LENDING_NO_GPU};
    bool unusable = true;
    int r = 0;
    *ret_values = NULL;
    for (size_t i = 0; unusable && i < ARRAY_LEN(places); i++) {
        int fd = -1;
        unusable = false;
        *err = ERR_INIT; // of a form that was of no use
        r = reach(b, &fd, err);
        if (r == 0)
            r = ask(b, fd, places[i], out, ret_values, &unusable, err);
        if (fd >= 0)
            close(fd);
    }
    return r;
}
