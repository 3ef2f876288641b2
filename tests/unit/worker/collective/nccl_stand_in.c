// SPDX-License-Identifier: Apache-2.0
// libnccl.so.2 as far as the workers use it, over the stand-in for the driver (cuda_stand_in.c). Members exchange what
// they send through files in the folder GPU_STAND_IN; an operation is done when all of its files are there, and a
// communicator is made when all of its members have asked for it. So both stand still where a real one does: when
// somebody does not call. The file `control` there raises what a real one will not on demand, in all processes, besides
// what the driver's stand-in reads there:
//
//   slow N          each call of NCCL is in progress N times before it has begun
//   buffer N        bytes that a send can be done with before they were taken; 4 MiB by default
//   nccl-init CODE  ncclCommInitRankConfig() fails with this
//   async CODE      ncclCommGetAsyncError() reports this
//   moving CODE     the same, of a communicator that has sent or received something
//   end-waits       ncclCommAbort() and ncclCommDestroy() wait while this line is there, as they do for a device that
//                   hangs
//
// Each communicator that a member has adds a line to the file `inits`, and each ncclCommAbort() one to `aborts`.
// NCCL_STAND_IN_VERSION is the version of the library in a process, 22304 by default, 0 = none of its calls succeeds.
// F8 types exist from 22400 on.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/safetensors.h"
#include "sdk/c/include/cadre/collective.h"
#include "tests/unit/worker/device/cuda_stand_in.h"
#include "worker/collective/reduce.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { OK = 0, UNHANDLED = 1, IN_PROGRESS = 7, OPS = 1024, MEMBERS = 64, VERSION = 22304, HAS_F8 = 22400, AVG = 4 };
enum { BUFFER = 4 << 20 };

struct id {
    char text[128];
};
struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
};

enum kind { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECV };

struct comm {
    struct id id;
    int rank, n, slow;
    bool made; // all members have come
    bool used; // something was sent or received
    unsigned number, sent[MEMBERS], received[MEMBERS];
};

struct op {
    enum kind kind;
    struct comm *comm; // NULL = the place is free
    const void *in;
    void *out;
    size_t n, len; // elements, of each member where there are more; bytes that are sent
    int type, reduction, peer;
    unsigned number;
    bool posted, waits, done; // waits: what it sends is not done before it was taken
    struct op *next;          // in its group
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct op ops[OPS];
// Operations of a group go on at the same time.
static _Thread_local struct {
    bool begun;
    struct op *first;
    void *stream;
} group;

// Files

static void path_of(const struct op *o, int from, int to, char ret[512])
{
    const char *dir = getenv("GPU_STAND_IN");
    if (o->kind == SEND || o->kind == RECV)
        snprintf(ret, 512, "%s/%s.p%d-%d.%u", dir, o->comm->id.text, from, to, o->number);
    else
        snprintf(ret, 512, "%s/%s.c%u.%d", dir, o->comm->id.text, o->number, from);
}

static void post(const struct op *o, int to, const void *data, size_t len)
{
    char path[512], part[520];
    path_of(o, o->comm->rank, to, path);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "we");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0 || rename(part, path) != 0)
        abort();
}

static bool arrived(const struct op *o, int from)
{
    char path[512];
    path_of(o, from, o->comm->rank, path);
    return access(path, F_OK) == 0;
}

static void take(const struct op *o, int from, size_t skip, void *data, size_t len)
{
    char path[512];
    path_of(o, from, o->comm->rank, path);
    FILE *f = fopen(path, "re");
    if (!f || fseek(f, (long)skip, SEEK_SET) != 0)
        abort();
    (void)!fread(data, 1, len, f); // one that has sent less than it should leaves the rest as it is
    fclose(f);
}

static void remove_file(const struct op *o, int from)
{
    char path[512];
    path_of(o, from, o->comm->rank, path);
    (void)unlink(path);
}

// Operations

static int version(void)
{
    const char *n = getenv("NCCL_STAND_IN_VERSION");
    return n ? (int)strtol(n, NULL, 10) : VERSION;
}

static int dtype_of(int type)
{
    static const int dtypes[] = {SAFETENSORS_I8,  SAFETENSORS_U8,   SAFETENSORS_I32,     SAFETENSORS_U32,
                                 SAFETENSORS_I64, SAFETENSORS_U64,  SAFETENSORS_F16,     SAFETENSORS_F32,
                                 SAFETENSORS_F64, SAFETENSORS_BF16, SAFETENSORS_F8_E4M3, SAFETENSORS_F8_E5M2};
    int n = version() < HAS_F8 ? ARRAY_LEN(dtypes) - 2 : ARRAY_LEN(dtypes);
    return type >= 0 && type < n ? dtypes[type] : -1;
}

static size_t item(const struct op *o)
{
    return safetensors_dtype_bits((enum safetensors_dtype)dtype_of(o->type)) / 8;
}

// Not for infinity and NaN.
static float widen(int dtype, unsigned char code)
{
    int digits = dtype == SAFETENSORS_F8_E4M3 ? 3 : 2, bias = digits == 3 ? 7 : 15;
    int exponent = (code & 0x7f) >> digits, fraction = code & ((1 << digits) - 1);
    float x = ldexpf((float)(exponent ? fraction | 1 << digits : fraction), MAX(exponent, 1) - bias - digits);
    return code & 0x80 ? -x : x;
}

static unsigned char narrow(int dtype, float x)
{
    int best = 0, end = dtype == SAFETENSORS_F8_E4M3 ? 0x7f : 0x7c;
    for (int code = 0; code < 0x100; code++)
        if ((code & 0x7f) < end &&
            fabsf(widen(dtype, (unsigned char)code) - x) < fabsf(widen(dtype, (unsigned char)best) - x))
            best = code;
    return (unsigned char)best;
}

// Adds what it takes of a member, of a type that is as wide as it computes with.
static void add_member(const struct op *o, int from, size_t skip, int dtype, void *sum)
{
    static const int reductions[] = {CADRE_SUM, CADRE_PRODUCT, CADRE_MAX, CADRE_MIN, CADRE_SUM};
    size_t len = o->n * item(o);
    bool f8 = dtype != dtype_of(o->type);
    unsigned char *one = xmalloc(len + 1);
    float *wide = xcalloc(o->n + 1, sizeof *wide);
    take(o, from, skip, one, len);
    for (size_t i = 0; f8 && i < o->n; i++)
        wide[i] = widen(dtype_of(o->type), one[i]);
    const void *values = f8 ? (const void *)wide : one;
    if (from)
        reduce_find(dtype, reductions[o->reduction])(sum, sum, values, o->n);
    else
        memcpy(sum, values, o->n * (f8 ? sizeof *wide : item(o)));
    free(wide);
    free(one);
}

static void reduce(const struct op *o, size_t skip)
{
    int dtype = dtype_of(o->type);
    bool f8 = dtype == SAFETENSORS_F8_E4M3 || dtype == SAFETENSORS_F8_E5M2;
    float *wide = f8 ? xcalloc(o->n + 1, sizeof *wide) : NULL;
    unsigned char *out = stand_in_memory(o->out);
    void *sum = f8 ? (void *)wide : out;
    int as = f8 ? SAFETENSORS_F32 : dtype;
    for (int i = 0; i < o->comm->n; i++)
        add_member(o, i, skip, as, sum);
    if (o->reduction == AVG)
        reduce_divide(as, sum, o->n, o->comm->n);
    for (size_t i = 0; f8 && i < o->n; i++)
        out[i] = narrow(dtype, wide[i]);
    free(wide);
}

static bool all_arrived(const struct op *o)
{
    char path[512];
    if (o->kind == SEND) {
        path_of(o, o->comm->rank, o->peer, path);
        return !o->waits || access(path, F_OK) != 0;
    }
    if (o->kind == RECV)
        return arrived(o, o->peer);
    for (int i = 0; i < o->comm->n; i++)
        if (!arrived(o, i))
            return false;
    return true;
}

static bool finish(const struct op *o)
{
    size_t len = o->n * item(o);
    if (!all_arrived(o))
        return false;
    if (o->kind == ALL_REDUCE)
        reduce(o, 0);
    else if (o->kind == REDUCE_SCATTER)
        reduce(o, (size_t)o->comm->rank * len);
    else if (o->kind == BROADCAST || o->kind == RECV)
        take(o, o->peer, 0, stand_in_memory(o->out), len);
    else if (o->kind == ALL_GATHER)
        for (int i = 0; i < o->comm->n; i++)
            take(o, i, 0, (char *)stand_in_memory(o->out) + (size_t)i * len, len);
    if (o->kind == RECV)
        remove_file(o, o->peer);
    return true;
}

static void go_on(struct op *o)
{
    if (o->kind != RECV && !o->posted)
        post(o, o->peer, stand_in_memory(o->in), o->len);
    o->posted = true;
    o->done = o->done || finish(o);
}

// On the thread of the device: an operation, or a group of them.
static bool turn(void *ctx)
{
    struct op *first = ctx;
    bool done = true;
    for (struct op *o = first; o; o = o->next) {
        go_on(o);
        done = done && o->done;
    }
    pthread_mutex_lock(&mutex);
    for (struct op *o = first; done && o; o = o->next)
        o->comm = NULL;
    pthread_mutex_unlock(&mutex);
    return done;
}

static struct op *place(const struct op *o)
{
    pthread_mutex_lock(&mutex);
    size_t i = 0;
    while (i < OPS && ops[i].comm)
        i++;
    if (i == OPS)
        abort();
    ops[i] = *o;
    pthread_mutex_unlock(&mutex);
    return &ops[i];
}

static int begin(struct op o, const void *in, size_t len, void *stream)
{
    bool pair = o.kind == SEND || o.kind == RECV;
    struct comm *c = o.comm;
    if (stand_in_depth() < 1 || dtype_of(o.type) < 0)
        abort(); // a test of the back end has found something
    o.in = in;
    o.len = len;
    int buffer = stand_in_control("buffer");
    o.waits = len > (size_t)(buffer ? buffer : BUFFER);
    o.number = !pair ? ++c->number : o.kind == SEND ? ++c->sent[o.peer] : ++c->received[o.peer];
    c->used = true;
    c->slow = stand_in_control("slow");
    o.next = group.first;
    struct op *placed = place(&o);
    if (group.begun)
        group.first = placed;
    else
        stand_in_put(stream, turn, placed);
    group.stream = stream;
    return c->slow ? IN_PROGRESS : OK;
}

// Its operations that are under way. A group is on the stream by its first one.
static bool drop_ops(const struct comm *c)
{
    bool any = false;
    for (size_t i = 0; i < OPS; i++) {
        pthread_mutex_lock(&mutex);
        bool is = ops[i].comm == c;
        pthread_mutex_unlock(&mutex);
        if (is)
            stand_in_drop(&ops[i]);
        any = any || is;
    }
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < OPS; i++)
        if (ops[i].comm == c)
            ops[i].comm = NULL;
    pthread_mutex_unlock(&mutex);
    return any;
}

// NCCL

#define OFFERED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

OFFERED int ncclGetVersion(int *ret)
{
    *ret = version();
    return *ret ? OK : UNHANDLED;
}

OFFERED int ncclGetUniqueId(struct id *ret)
{
    uint64_t number = 0;
    *ret = (struct id){""};
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    snprintf(ret->text, sizeof ret->text, "%016llx", (unsigned long long)number);
    return OK;
}

static void note(const char *name, const struct comm *c)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", getenv("GPU_STAND_IN"), name);
    FILE *f = fopen(path, "ae");
    if (!f)
        return;
    fprintf(f, "%d\n", c->rank);
    fclose(f);
}

// Whether all have come to it; `comes`: this member does so now.
static bool attend(const struct comm *c, bool comes)
{
    char path[512];
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        snprintf(path, sizeof path, "%s/%s.member%d", getenv("GPU_STAND_IN"), c->id.text, i);
        FILE *f = fopen(path, comes && i == c->rank ? "we" : "re");
        n += f != NULL;
        if (f)
            fclose(f);
    }
    return n == c->n;
}

OFFERED int ncclCommInitRankConfig(struct comm **ret, int n, struct id id, int rank, struct config *c)
{
    if (c->magic != 0xcafebeef || c->blocking || n > MEMBERS || stand_in_depth() < 1)
        abort();
    int code = stand_in_control("nccl-init");
    if (code)
        return code;
    *ret = xcalloc(1, sizeof **ret);
    **ret = (struct comm){.id = id, .rank = rank, .n = n, .slow = stand_in_control("slow")};
    (*ret)->made = attend(*ret, true);
    note("inits", *ret);
    return IN_PROGRESS;
}

OFFERED int ncclCommInitRank(struct comm **ret, int n, struct id id, int rank)
{
    struct config c = {.magic = 0xcafebeef};
    int r = ncclCommInitRankConfig(ret, n, id, rank, &c);
    return r == IN_PROGRESS ? OK : r;
}

OFFERED int ncclCommGetAsyncError(struct comm *c, int *ret)
{
    int code = c->used ? stand_in_control("moving") : 0;
    code = code ? code : stand_in_control("async");
    c->made = c->made || attend(c, false);
    *ret = code ? code : !c->made || (c->slow > 0 && c->slow-- > 0) ? IN_PROGRESS : OK;
    return OK;
}

OFFERED int ncclCommFinalize(struct comm *c)
{
    (void)c;
    return OK;
}

static void wait_for_device(void)
{
    while (stand_in_control("end-waits"))
        usleep(1000);
}

OFFERED int ncclCommDestroy(struct comm *c)
{
    wait_for_device();
    if (drop_ops(c))
        abort();
    free(c);
    return OK;
}

OFFERED int ncclCommAbort(struct comm *c)
{
    note("aborts", c);
    wait_for_device();
    (void)drop_ops(c);
    free(c);
    return OK;
}

OFFERED const char *ncclGetLastError(struct comm *c)
{
    (void)c;
    return "the stand-in was told to";
}

OFFERED const char *ncclGetErrorString(int code)
{
    return code == 6 ? "remote process exited or there was a network error" : "unhandled cuda error";
}

OFFERED int ncclGroupStart(void)
{
    group.begun = true;
    return OK;
}

OFFERED int ncclGroupEnd(void)
{
    struct op *first = group.first;
    int slow = first ? first->comm->slow : 0;
    group.begun = false;
    group.first = NULL;
    if (first)
        stand_in_put(group.stream, turn, first);
    return slow ? IN_PROGRESS : OK;
}

OFFERED int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, struct comm *c, void *stream)
{
    struct op o = {.kind = ALL_REDUCE, .comm = c, .out = out, .n = n, .type = type, .reduction = op};
    return begin(o, in, n * item(&o), stream);
}

OFFERED int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, struct comm *c, void *stream)
{
    struct op o = {.kind = BROADCAST, .comm = c, .out = out, .n = n, .type = type, .peer = root};
    return begin(o, in, n * item(&o), stream);
}

OFFERED int ncclAllGather(const void *in, void *out, size_t n, int type, struct comm *c, void *stream)
{
    struct op o = {.kind = ALL_GATHER, .comm = c, .out = out, .n = n, .type = type};
    return begin(o, in, n * item(&o), stream);
}

OFFERED int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, struct comm *c, void *stream)
{
    struct op o = {.kind = REDUCE_SCATTER, .comm = c, .out = out, .n = n, .type = type, .reduction = op};
    return begin(o, in, n * item(&o) * (size_t)c->n, stream);
}

OFFERED int ncclSend(const void *in, size_t n, int type, int to, struct comm *c, void *stream)
{
    struct op o = {.kind = SEND, .comm = c, .n = n, .type = type, .peer = to};
    return begin(o, in, n * item(&o), stream);
}

OFFERED int ncclRecv(void *out, size_t n, int type, int from, struct comm *c, void *stream)
{
    struct op o = {.kind = RECV, .comm = c, .out = out, .n = n, .type = type, .peer = from};
    return begin(o, NULL, 0, stream);
}
