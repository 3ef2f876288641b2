// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/nccl.h"

#include "common/base/clock.h"
#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/wire/safetensors.h"
#include "worker/collective/agreement.h"
#include "worker/collective/nccl_closing.h"
#include "worker/device/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NCCL_NO_TYPE = -1, NCCL_HAS_F8 = 22400 };
enum {
    SPINS = 2000, // a small collective is done before a sleep would end
    PAUSE_NS = 20 * 1000,
    CLOSE_MS = 5000, // for operations that are still under way on other members
    BARRIER_BYTES = 16,
};

// The members tell each other:
struct member_info {
    struct nccl_id id; // of member 0
    unsigned char uuid[DEVICE_UUID_SIZE];
    char version[4]; // of NCCL
};

struct self {
    struct device *device;
    int index, n, version;
    const char *const *names; // borrowed from the communicator
    int64_t limit_ms;
    void *stream, *scratch; // on the device
    bool borrowed;          // the stream belongs to the program, and run() does not wait for it
    atomic_bool aborted;    // a member was lost
    pthread_mutex_t mutex;  // of the following members: one thread at a time is in NCCL
    struct nccl_comm comm;
    struct nccl_closing *closing; // NULL = the communicator has not ended
};

struct polling {
    int64_t until_ms;
    unsigned spins;
};

static void pause_a_moment(struct polling *p)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (++p->spins > SPINS)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static int check_patience(struct self *s, const struct polling *p, const char *what, struct err *err)
{
    if (atomic_load(&s->aborted))
        return err_set(err, ERR_IO, "nccl: %s: aborted", what);
    if (clock_mono_ms(&clock_system) > p->until_ms)
        return err_set(err, ERR_TIMEOUT, "nccl: %s: it waited too long", what);
    return 0;
}

// Waits until NCCL has begun with the work, or has failed.
static int wait_host(struct self *s, int result, const char *what, struct polling *p, struct err *err)
{
    if (result != NCCL_OK && result != NCCL_IN_PROGRESS)
        return nccl_comm_fail(&s->comm, result, what, err);
    for (;;) {
        int begun = nccl_comm_poll(&s->comm, what, err);
        if (begun)
            return MIN(begun, 0);
        if (check_patience(s, p, what, err) < 0)
            return err->code;
        pause_a_moment(p);
    }
}

// Waits until the device has done the work. If another member fails, the stream stands still, and NCCL reports it as an
// asynchronous error.
static int wait_device(struct self *s, const char *what, struct polling *p, struct err *err)
{
    for (;;) {
        int done = device_stream_poll(s->device, s->stream, err);
        if (done)
            return MIN(done, 0);
        if (nccl_comm_poll(&s->comm, what, err) < 0)
            return err->code;
        if (check_patience(s, p, what, err) < 0)
            return err->code;
        pause_a_moment(p);
    }
}

// Making

static int make_own(struct self *s, struct nccl_id *ret, struct err *err)
{
    const struct nccl_library *f = s->comm.f;
    int e = s->index == 0 ? f->unique_id(ret) : NCCL_OK;
    if (e != NCCL_OK || (e = f->version(&s->version)) != NCCL_OK)
        return nccl_comm_fail(&s->comm, e, "its unique id", err);
    int r = s->borrowed ? 0 : device_stream_new(s->device, &s->stream, err);
    if (r == 0 && (r = device_alloc(s->device, BARRIER_BYTES, &s->scratch, err)) < 0 && !s->borrowed)
        device_stream_free(s->device, s->stream);
    return r;
}

static void *open_self(const struct backend_config *config, char **ret_blob, size_t *ret_len, struct err *err)
{
    struct self *s = xcalloc(1, sizeof *s);
    struct member_info *mine = xcalloc(1, sizeof *mine);
    *s = (struct self){.index = config->index,
                       .n = config->n,
                       .names = config->names,
                       .limit_ms = config->limit_ms,
                       .stream = config->stream,
                       .borrowed = config->stream != NULL};
    pthread_mutex_init(&s->mutex, NULL);
    int r = 0;
    if (nccl_library_blocks())
        r = err_set(err, ERR_INVALID,
                    "calls of NCCL would wait without a limit: remove NCCL_COMM_BLOCKING from the environment, or use "
                    "the back end gloo");
    else if (!(s->comm.f = nccl_library_load(err)))
        r = err->code;
    if (r == 0)
        r = device_open(&s->device, err);
    if (r == 0 && (r = device_enter(s->device, err)) == 0) {
        r = make_own(s, &mine->id, err);
        device_leave(s->device);
    }
    if (r < 0) {
        device_close(s->device);
        pthread_mutex_destroy(&s->mutex);
        free(mine);
        free(s);
        return NULL;
    }
    le_put_u32(mine->version, (uint32_t)s->version);
    memcpy(mine->uuid, device_uuid(s->device), sizeof mine->uuid);
    *ret_blob = (char *)mine;
    *ret_len = sizeof *mine;
    return s;
}

// Members with different versions would wait for each other: versions send different messages, and reduce different
// types.
static int check_versions(const struct self *s, char *const *blobs, struct err *err)
{
    char(*texts)[NCCL_VERSION_TEXT] = xcalloc((size_t)s->n, sizeof *texts);
    const char **versions = xcalloc((size_t)s->n, sizeof *versions);
    _cleanup_(buf_done) struct buf differ = BUF_INIT(sizeof err->msg);
    int r = 0;
    for (int i = 0; i < s->n; i++) {
        nccl_version_text((int)le_get_u32(((const struct member_info *)blobs[i])->version), texts[i]);
        versions[i] = texts[i];
    }
    if (!agreement_holds(versions, s->names, s->n, &differ))
        r = err_set(err, ERR_INVALID, "all members need the same version of NCCL in their images: %s",
                    buf_str(&differ));
    free(versions);
    free(texts);
    return r;
}

// NCCL would wait for ever, or fail with a message that does not help.
static int check_members(const struct self *s, char *const *blobs, const size_t *lens, struct err *err)
{
    char text[DEVICE_UUID_TEXT];
    for (int i = 0; i < s->n; i++) {
        const struct member_info *one = (const struct member_info *)blobs[i];
        if (lens[i] != sizeof *one)
            return err_set(err, ERR_PROTO, "a member sent something other than its GPU");
        for (int k = 0; k < i; k++) {
            if (memcmp(one->uuid, ((const struct member_info *)blobs[k])->uuid, sizeof one->uuid) != 0)
                continue;
            device_uuid_text(one->uuid, text);
            return err_set(err, ERR_INVALID, "%s and %s have the same GPU, %s: NCCL needs one for each member",
                           s->names[k], s->names[i], text);
        }
    }
    return check_versions(s, blobs, err);
}

// Call this with the mutex, once the communicator is watched.
static void begin_closing(struct self *s, bool aborts)
{
    if (!s->closing)
        s->closing = nccl_closing_new(&s->comm, aborts, s->device);
}

static int connect_self(void *self, char *const *blobs, const size_t *lens, struct err *err)
{
    struct self *s = self;
    struct polling p = {.until_ms = clock_mono_ms(&clock_system) + s->limit_ms};
    struct nccl_id id;
    if (check_members(s, blobs, lens, err) < 0 || device_enter(s->device, err) < 0)
        return err->code;
    memcpy(&id, blobs[0], sizeof id);
    int r = nccl_comm_begin(&s->comm, s->n, s->index, &id, err);
    if (r == 0)
        r = wait_host(s, NCCL_OK, "making a communicator", &p, err);
    if (r < 0)
        begin_closing(s, true);
    device_leave(s->device);
    return r;
}

// A thread that waits in run() or wait() sees the flag and releases the mutex. If no thread waits there, the program
// may wait for its stream, so this function aborts by itself.
static void abort_self(void *self)
{
    struct self *s = self;
    atomic_store(&s->aborted, true);
    pthread_mutex_lock(&s->mutex);
    begin_closing(s, true);
    pthread_mutex_unlock(&s->mutex);
}

// Returns true if all work is done and the communicator is finalized, so that it need not be aborted.
static bool is_over(struct self *s)
{
    static const char what[] = "freeing a communicator";
    struct err ignored = ERR_INIT;
    struct polling p = {.until_ms = clock_mono_ms(&clock_system) + CLOSE_MS};
    if (!s->comm.handle || atomic_load(&s->aborted) || device_enter(s->device, &ignored) < 0)
        return false;
    bool over = wait_device(s, what, &p, &ignored) == 0 &&
                wait_host(s, s->comm.f->finalize(s->comm.handle), what, &p, &ignored) == 0;
    device_leave(s->device);
    return over;
}

// The driver waits for all work on the GPU. The program may have freed a borrowed stream before NCCL was done.
static void free_self(void *self)
{
    struct self *s = self;
    struct err ignored = ERR_INIT;
    if (device_enter(s->device, &ignored) == 0) {
        device_free(s->device, s->scratch);
        if (!s->borrowed)
            device_stream_free(s->device, s->stream);
        device_leave(s->device);
    }
    device_close(s->device);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static void close_self(void *self)
{
    struct self *s = self;
    begin_closing(s, !is_over(s));
    nccl_closing_end(s->closing, free_self, s);
}

// Running

static const struct type {
    int dtype, type, since; // `since`: the first version
} types[] = {
    {SAFETENSORS_I8, 0, 0},
    {SAFETENSORS_U8, 1, 0},
    {SAFETENSORS_I32, 2, 0},
    {SAFETENSORS_U32, 3, 0},
    {SAFETENSORS_I64, 4, 0},
    {SAFETENSORS_U64, 5, 0},
    {SAFETENSORS_F16, 6, 0},
    {SAFETENSORS_F32, 7, 0},
    {SAFETENSORS_F64, 8, 0},
    {SAFETENSORS_BF16, 9, 0},
    {SAFETENSORS_F8_E4M3, 10, NCCL_HAS_F8},
    {SAFETENSORS_F8_E5M2, 11, NCCL_HAS_F8},
};

static bool is_whole(int dtype)
{
    return dtype != SAFETENSORS_F16 && dtype != SAFETENSORS_F32 && dtype != SAFETENSORS_F64 &&
           dtype != SAFETENSORS_BF16 && dtype != SAFETENSORS_F8_E4M3 && dtype != SAFETENSORS_F8_E5M2;
}

// *ret: the number of the type in NCCL, NCCL_NO_TYPE = the operation does not reduce.
static int find_type(const struct self *s, const struct backend_op *op, int *ret, struct err *err)
{
    *ret = NCCL_NO_TYPE;
    if (op->kind != BACKEND_ALL_REDUCE && op->kind != BACKEND_REDUCE_SCATTER)
        return 0;
    const struct type *t = types, *end = types + ARRAY_LEN(types);
    while (t < end && t->dtype != op->dtype)
        t++;
    if (t == end || (op->reduction == CADRE_MEAN && is_whole(op->dtype)))
        return err_set(err, ERR_INVALID, "nccl does not reduce this type in this way");
    if (s->version < t->since) {
        char version[NCCL_VERSION_TEXT];
        nccl_version_text(s->version, version);
        return err_set(err, ERR_INVALID, "%s of this image does not reduce %s: that needs %d.%d or newer", version,
                       safetensors_dtype_name((enum safetensors_dtype)op->dtype), t->since / 10000,
                       t->since / 100 % 100);
    }
    *ret = t->type;
    return 0;
}

static int all_to_all(struct self *s, const struct backend_op *op, size_t bytes)
{
    const struct nccl_library *f = s->comm.f;
    int r = f->group_start(), first = NCCL_OK;
    for (int i = 0; i < s->n && r == NCCL_OK && first == NCCL_OK; i++) {
        first = f->send((const char *)op->in + (size_t)i * bytes, bytes, NCCL_U8, i, s->comm.handle, s->stream);
        if (first == NCCL_OK || first == NCCL_IN_PROGRESS)
            first = f->recv((char *)op->out + (size_t)i * bytes, bytes, NCCL_U8, i, s->comm.handle, s->stream);
        if (first == NCCL_IN_PROGRESS)
            first = NCCL_OK;
    }
    if (r == NCCL_OK)
        r = f->group_end();
    return first != NCCL_OK ? first : r;
}

// Operations that do not reduce move bytes of any type.
static int begin(struct self *s, const struct backend_op *op, int type)
{
    static const int reductions[] = {
        [CADRE_SUM] = 0, [CADRE_PRODUCT] = 1, [CADRE_MAX] = 2, [CADRE_MIN] = 3, [CADRE_MEAN] = 4};
    const struct nccl_library *f = s->comm.f;
    size_t bytes = op->n * op->item;
    switch (op->kind) {
    case BACKEND_ALL_REDUCE:
        return f->all_reduce(op->in, op->out, op->n, type, reductions[op->reduction], s->comm.handle, s->stream);
    case BACKEND_REDUCE_SCATTER:
        return f->reduce_scatter(op->in, op->out, op->n, type, reductions[op->reduction], s->comm.handle, s->stream);
    case BACKEND_BROADCAST:
        return f->broadcast(op->out, op->out, bytes, NCCL_U8, op->peer, s->comm.handle, s->stream);
    case BACKEND_ALL_GATHER:
        return f->all_gather(op->in, op->out, bytes, NCCL_U8, s->comm.handle, s->stream);
    case BACKEND_ALL_TO_ALL:
        return all_to_all(s, op, bytes);
    case BACKEND_SEND:
        return f->send(op->in, bytes, NCCL_U8, op->peer, s->comm.handle, s->stream);
    case BACKEND_RECV:
        return f->recv(op->out, bytes, NCCL_U8, op->peer, s->comm.handle, s->stream);
    case BACKEND_BARRIER:
        return f->all_reduce(s->scratch, s->scratch, 1, NCCL_U8, reductions[CADRE_MAX], s->comm.handle, s->stream);
    }
    abort(); // there is no other kind
}

static int enter(struct self *s, struct err *err)
{
    pthread_mutex_lock(&s->mutex);
    int r = s->comm.handle && !atomic_load(&s->aborted) ? device_enter(s->device, err)
                                                        : err_set(err, ERR_IO, "nccl: aborted");
    if (r < 0)
        pthread_mutex_unlock(&s->mutex);
    return r;
}

// After a failure, NCCL may use the memory of the program until it has aborted.
static int leave(struct self *s, int r)
{
    if (r < 0)
        begin_closing(s, true);
    device_leave(s->device);
    pthread_mutex_unlock(&s->mutex);
    if (r < 0)
        (void)nccl_closing_wait(s->closing);
    return r;
}

static int run_self(void *self, const struct backend_op *op, struct err *err)
{
    struct self *s = self;
    struct polling p = {.until_ms = clock_mono_ms(&clock_system) + op->limit_ms};
    int type;
    if (find_type(s, op, &type, err) < 0 || enter(s, err) < 0)
        return err->code;
    int r = wait_host(s, begin(s, op, type), "a collective", &p, err);
    if (r == 0 && !s->borrowed)
        r = wait_device(s, "a collective", &p, err);
    return leave(s, r);
}

static int wait_self(void *self, int64_t limit_ms, struct err *err)
{
    struct self *s = self;
    struct polling p = {.until_ms = clock_mono_ms(&clock_system) + limit_ms};
    return enter(s, err) < 0 ? err->code : leave(s, wait_device(s, "its stream", &p, err));
}

static const struct backend nccl_backend = {BACKEND_VERSION, open_self,  connect_self, run_self,
                                            wait_self,       abort_self, close_self};

const struct backend *cadre_backend(void)
{
    return &nccl_backend;
}
