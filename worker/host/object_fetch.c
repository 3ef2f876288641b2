// SPDX-License-Identifier: Apache-2.0
#include "worker/host/object_fetch.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/wire/safetensors.h"
#include "worker/host/dial.h"
#include "worker/host/peer_wire.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE_MAX = 512, PIECE = 1 << 20 };

static int unreachable(const struct object_fetch *f, const char *why, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "OwnerUnreachable: %s, which has the object, at %s: %s; workers fetch from each other directly: "
                   "NetworkPolicies must allow that",
                   f->owner, f->at, why);
}

static int lost(const struct object_fetch *f, uint64_t got, const char *why, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "OwnerUnreachable: %s was lost after %" PRIu64 " of %" PRIu64 " bytes of the object: %s", f->owner,
                   got, f->bytes, why);
}

static int stopped(const struct object_fetch *f, struct err *err)
{
    return err_set(err, ERR_CANCELED, "canceled while the object of %s was fetched", f->owner);
}

static int reach(const struct object_fetch *f, int *ret, struct err *err)
{
    struct err why = ERR_INIT;
    int r = dial(f->at, f->canceled, ret, &why);
    return r == ERR_CANCELED ? stopped(f, err) : r < 0 ? unreachable(f, why.msg, err) : 0;
}

// Transfers everything, or returns an error. *got counts the bytes that came.
static int transfer(const struct object_fetch *f, int fd, bool out, char *data, size_t len, uint64_t *got,
                    struct err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = out ? send(fd, data + done, len - done, MSG_NOSIGNAL) : recv(fd, data + done, len - done, 0);
        if (n > 0) {
            done += (size_t)n;
            *got += out ? 0 : (uint64_t)n;
            continue;
        }
        if (n == 0)
            return lost(f, *got, "it hung up", err);
        if (errno != EAGAIN && errno != EINTR)
            return lost(f, *got, strerror(errno), err);
        int r = dial_wait(fd, out ? POLLOUT : POLLIN, OBJECT_FETCH_SILENT_MS, f->canceled);
        if (r == ERR_CANCELED)
            return stopped(f, err);
        if (r < 0)
            return lost(f, *got, "nothing came for half a minute", err);
        if (atomic_load(f->canceled))
            return stopped(f, err);
    }
    return 0;
}

static int refused(const struct object_fetch *f, int fd, const struct peer_answer *a, struct err *err)
{
    char message[MESSAGE_MAX + 1];
    uint64_t ignored = 0;
    size_t len = (size_t)MIN(a->len, (uint64_t)MESSAGE_MAX);
    int code = a->code <= (uint32_t)-ERR_INTERNAL ? -(int)a->code : ERR_PROTO;
    if (transfer(f, fd, false, message, len, &ignored, err) < 0)
        return err->code;
    message[len] = '\0';
    if (code == ERR_NOT_FOUND)
        return err_set(err, code, "%s no longer has the object: %s", f->owner, message);
    return err_set(err, code, "%s does not give the object: %s", f->owner, message);
}

// Values for the device

// Reads the head of the document. Its first bytes say how long it is.
static int take_head(const struct object_fetch *f, int fd, char *out, size_t *ret_len, uint64_t *got, struct err *err)
{
    int r = f->bytes < SAFETENSORS_PREFIX ? ERR_PROTO : transfer(f, fd, false, out, SAFETENSORS_PREFIX, got, err);
    if (r == 0)
        r = safetensors_head_len(out, ret_len, err);
    if (r == ERR_PROTO || (r == 0 && *ret_len > f->bytes))
        return err_set(err, ERR_PROTO, "%s says that an object has values on a device, which is not a document",
                       f->owner);
    return r < 0 ? r : transfer(f, fd, false, out + SAFETENSORS_PREFIX, *ret_len - SAFETENSORS_PREFIX, got, err);
}

static int receive_values(const struct object_fetch *f, int fd, struct copier *copier, struct region *to, uint64_t *got,
                          struct err *err)
{
    _cleanup_(free_p) char *piece = xmalloc(PIECE);
    int r = 0;
    for (size_t at = 0; r == 0 && at < to->len; at += PIECE) {
        size_t n = MIN((size_t)PIECE, to->len - at);
        r = transfer(f, fd, false, piece, n, got, err);
        if (r == 0)
            r = copier_upload(copier, (char *)to->memory + at, piece, n, DEVICE_NO_LIMIT, f->canceled, err);
    }
    return r < 0 ? r : copier_wait(copier, DEVICE_NO_LIMIT, f->canceled, err);
}

// The owner keeps the values until this process hangs up. Memory that a copy reads must stay mapped. So the copy cannot
// be canceled. If it does not end in time, its mapping stays until the process ends.
static int copy_values(const struct object_fetch *f, struct copier *copier, const struct device_handle *handle,
                       struct region *to, struct err *err)
{
    struct device *d = rank_device_of(f->device);
    struct device_mapping map;
    int r = device_import(d, handle, &map, err);
    if (r < 0)
        return r;
    r = device_copy(d, to->memory, map.memory, to->len, copier_stream(copier), err);
    if (r == 0)
        r = device_stream_wait(d, copier_stream(copier), OBJECT_FETCH_COPY_MS, NULL, err);
    if (r != ERR_TIMEOUT)
        device_unimport(d, &map);
    return r;
}

static int take_values(const struct object_fetch *f, int fd, const struct device_handle *handle, size_t len,
                       struct region **ret, uint64_t *got, struct err *err)
{
    struct copier *copier;
    struct region *values = NULL;
    int r = rank_device_enter(f->device, err);
    if (r < 0)
        return r;
    r = rank_device_lend(f->device, true, &copier, err);
    if (r == 0)
        r = region_new(f->device, len, &values, err);
    if (r == 0)
        r = handle ? copy_values(f, copier, handle, values, err) : receive_values(f, fd, copier, values, got, err);
    rank_device_leave(f->device);
    rank_device_give(f->device, copier);
    if (r == 0)
        *ret = values;
    else
        region_unref(values);
    return r;
}

static int take_device(const struct object_fetch *f, int fd, enum peer_form form, char *out, struct region **ret,
                       bool *ret_unusable, struct err *err)
{
    struct device_handle handle;
    size_t head = 0;
    uint64_t got = 0;
    if ((form == PEER_HANDLE && transfer(f, fd, false, (char *)handle.bytes, sizeof handle.bytes, &got, err) < 0) ||
        take_head(f, fd, out, &head, &got, err) < 0)
        return err->code;
    int r = take_values(f, fd, form == PEER_HANDLE ? &handle : NULL, (size_t)f->bytes - head, ret, &got, err);
    *ret_unusable = r == ERR_INVALID;
    return r < 0 ? err_wrap(err, "the object of %s", f->owner) : 0;
}

// Asking

// Whether a process that has said this place can get an answer of that form.
static bool is_expected(enum peer_form form, uint32_t place)
{
    return form == PEER_BYTES || (place != PEER_NO_GPU && (form != PEER_HANDLE || place != (uint32_t)PEER_ELSEWHERE));
}

// *ret_unusable: this process cannot use an answer of that form.
static int ask(const struct object_fetch *f, int fd, uint32_t place, char *out, struct region **ret, bool *ret_unusable,
               struct err *err)
{
    char question[PEER_REQUEST_LEN], head[PEER_ANSWER_LEN];
    struct peer_request q = {.magic = PEER_OBJECT_MAGIC, .place = place, .id = f->id, .until = f->until};
    struct peer_answer a;
    uint64_t got = 0;
    memcpy(q.key, f->key, sizeof q.key);
    peer_request_write(&q, question);
    if (transfer(f, fd, true, question, sizeof question, &got, err) < 0 ||
        transfer(f, fd, false, head, sizeof head, &got, err) < 0)
        return err->code;
    got = 0;
    if (peer_answer_read(head, &a) < 0)
        return unreachable(f, "another program listens there", err);
    if (a.code)
        return refused(f, fd, &a, err);
    if (a.len != f->bytes)
        return err_set(err, ERR_INVALID, "the object of %s has %" PRIu64 " bytes, and %" PRIu64 " by its reference",
                       f->owner, a.len, f->bytes);
    if (!is_expected(a.form, place))
        return err_set(err, ERR_PROTO, "%s gives the object in a form that this process has not asked for", f->owner);
    return a.form == PEER_BYTES ? transfer(f, fd, false, out, (size_t)a.len, &got, err)
                                : take_device(f, fd, a.form, out, ret, ret_unusable, err);
}

int object_fetch(const struct object_fetch *f, char *out, struct region **ret_values, struct err *err)
{
    const uint32_t places[] = {f->device ? rank_device_place(f->device) : PEER_NO_GPU, (uint32_t)PEER_ELSEWHERE,
                               PEER_NO_GPU};
    bool unusable = true;
    int r = 0;
    *ret_values = NULL;
    for (size_t i = 0; unusable && i < ARRAY_LEN(places); i++) {
        int fd = -1;
        unusable = false;
        *err = ERR_INIT; // the error of the form that could not be used
        r = reach(f, &fd, err);
        if (r == 0)
            r = ask(f, fd, places[i], out, ret_values, &unusable, err);
        file_close(&fd);
    }
    return r;
}
