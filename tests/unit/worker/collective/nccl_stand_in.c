// SPDX-License-Identifier: Apache-2.0
// libnccl.so.2 and libcuda.so.1 in one, as far as worker/collective and worker/device use them. The device
// has the memory of the process. Members exchange what they send through files in the folder NCCL_STAND_IN; an
// operation is done when all of its files are there. So it stands still where a real one does: when somebody does not
// call. The file `control` there raises what a real one will not on demand, in all processes:
//
//   hang            nothing on a stream is ever done
//   slow N          each call of NCCL is in progress N times before it has begun
//   init CODE       ncclCommInitRankConfig() fails with this
//   async CODE      ncclCommGetAsyncError() reports this
//   stream CODE     cuStreamQuery() reports this
//   alloc CODE      cuMemAlloc() fails with this
//   gpus N          so many devices; 1 by default
//   one-gpu         the members have the same one
//
// Each ncclCommAbort() adds a line to the file `aborts`.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/safetensors.h"
#include "sdk/c/include/cadre/collective.h"
#include "worker/collective/reduce.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { OK = 0, IN_PROGRESS = 7, NOT_READY = 600, NO_MEMORY = 2, OPS = 256, MEMBERS = 64, VERSION = 22304, AVG = 4 };
enum { CONTROL_SIZE = 4096 };

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
    unsigned number, sent[MEMBERS], received[MEMBERS];
};

struct op {
    enum kind kind;
    struct comm *comm;
    void *out;
    size_t n; // elements, of each member where there are more
    int type, reduction, peer;
    unsigned number;
};

static struct op ops[OPS]; // of the only stream, the oldest first
static size_t n_ops;
static int depth; // of contexts

static int control(const char *name)
{
    char path[512], text[CONTROL_SIZE] = "\n";
    snprintf(path, sizeof path, "%s/control", getenv("NCCL_STAND_IN"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text + 1, sizeof text - 2) : 0;
    if (fd >= 0)
        close(fd);
    text[1 + MAX(n, (ssize_t)0)] = '\0';
    snprintf(path, sizeof path, "\n%s", name);
    const char *line = strstr(text, path);
    if (!line)
        return 0;
    line += strlen(path);
    return *line == ' ' ? (int)strtol(line, NULL, 10) : 1;
}

// Files

static void path_of(const struct op *o, int from, int to, char ret[512])
{
    const char *dir = getenv("NCCL_STAND_IN");
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

// Operations

static int dtype_of(int type)
{
    static const int dtypes[] = {SAFETENSORS_I8,  SAFETENSORS_U8,  SAFETENSORS_I32, SAFETENSORS_U32, SAFETENSORS_I64,
                                 SAFETENSORS_U64, SAFETENSORS_F16, SAFETENSORS_F32, SAFETENSORS_F64, SAFETENSORS_BF16};
    return type >= 0 && type < (int)ARRAY_LEN(dtypes) ? dtypes[type] : -1;
}

static size_t item(const struct op *o)
{
    return safetensors_dtype_bits((enum safetensors_dtype)dtype_of(o->type)) / 8;
}

static void reduce(const struct op *o, size_t skip)
{
    static const int reductions[] = {CADRE_SUM, CADRE_PRODUCT, CADRE_MAX, CADRE_MIN, CADRE_SUM};
    reduce_function add = reduce_find(dtype_of(o->type), reductions[o->reduction]);
    size_t len = o->n * item(o);
    void *one = xmalloc(len + 1);
    take(o, 0, skip, o->out, len);
    for (int i = 1; i < o->comm->n; i++) {
        take(o, i, skip, one, len);
        add(o->out, o->out, one, o->n);
    }
    if (o->reduction == AVG)
        reduce_divide(dtype_of(o->type), o->out, o->n, o->comm->n);
    free(one);
}

static bool all_arrived(const struct op *o)
{
    if (o->kind == SEND)
        return true;
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
        take(o, o->peer, 0, o->out, len);
    else if (o->kind == ALL_GATHER)
        for (int i = 0; i < o->comm->n; i++)
            take(o, i, 0, (char *)o->out + (size_t)i * len, len);
    return true;
}

static int begin(struct op o, const void *in, size_t len)
{
    bool pair = o.kind == SEND || o.kind == RECV;
    if (n_ops == OPS || depth < 1 || dtype_of(o.type) < 0)
        abort(); // a test of the back end has found something
    o.number = !pair ? ++o.comm->number : o.kind == SEND ? ++o.comm->sent[o.peer] : ++o.comm->received[o.peer];
    o.comm->slow = control("slow");
    if (o.kind != RECV)
        post(&o, o.peer, in, len);
    ops[n_ops++] = o;
    return o.comm->slow ? IN_PROGRESS : OK;
}

// NCCL

#define OFFERED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

OFFERED int ncclGetVersion(int *ret)
{
    *ret = VERSION;
    return OK;
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

OFFERED int ncclCommInitRankConfig(struct comm **ret, int n, struct id id, int rank, struct config *c)
{
    if (c->magic != 0xcafebeef || c->blocking || n > MEMBERS || depth < 1)
        abort();
    int code = control("init");
    if (code)
        return code;
    *ret = xcalloc(1, sizeof **ret);
    **ret = (struct comm){.id = id, .rank = rank, .n = n, .slow = control("slow")};
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
    int code = control("async");
    *ret = code ? code : c->slow > 0 && c->slow-- > 0 ? IN_PROGRESS : OK;
    return OK;
}

OFFERED int ncclCommFinalize(struct comm *c)
{
    (void)c;
    return OK;
}

OFFERED int ncclCommDestroy(struct comm *c)
{
    if (n_ops)
        abort();
    free(c);
    return OK;
}

OFFERED int ncclCommAbort(struct comm *c)
{
    char path[512];
    snprintf(path, sizeof path, "%s/aborts", getenv("NCCL_STAND_IN"));
    FILE *f = fopen(path, "ae");
    if (f) {
        fprintf(f, "%d\n", c->rank);
        fclose(f);
    }
    n_ops = 0;
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
    return OK;
}

OFFERED int ncclGroupEnd(void)
{
    return OK;
}

OFFERED int ncclAllReduce(const void *in, void *out, size_t n, int type, int op, struct comm *c, void *stream)
{
    struct op o = {.kind = ALL_REDUCE, .comm = c, .out = out, .n = n, .type = type, .reduction = op};
    (void)stream;
    return begin(o, in, n * item(&o));
}

OFFERED int ncclBroadcast(const void *in, void *out, size_t n, int type, int root, struct comm *c, void *stream)
{
    struct op o = {.kind = BROADCAST, .comm = c, .out = out, .n = n, .type = type, .peer = root};
    (void)stream;
    return begin(o, in, n * item(&o));
}

OFFERED int ncclAllGather(const void *in, void *out, size_t n, int type, struct comm *c, void *stream)
{
    struct op o = {.kind = ALL_GATHER, .comm = c, .out = out, .n = n, .type = type};
    (void)stream;
    return begin(o, in, n * item(&o));
}

OFFERED int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, struct comm *c, void *stream)
{
    struct op o = {.kind = REDUCE_SCATTER, .comm = c, .out = out, .n = n, .type = type, .reduction = op};
    (void)stream;
    return begin(o, in, n * item(&o) * (size_t)c->n);
}

OFFERED int ncclSend(const void *in, size_t n, int type, int to, struct comm *c, void *stream)
{
    struct op o = {.kind = SEND, .comm = c, .n = n, .type = type, .peer = to};
    (void)stream;
    return begin(o, in, n * item(&o));
}

OFFERED int ncclRecv(void *out, size_t n, int type, int from, struct comm *c, void *stream)
{
    struct op o = {.kind = RECV, .comm = c, .out = out, .n = n, .type = type, .peer = from};
    (void)stream;
    return begin(o, NULL, 0);
}

// The driver

OFFERED int cuInit(unsigned flags)
{
    return (int)flags;
}

OFFERED int cuDeviceGetCount(int *n)
{
    int gpus = control("gpus");
    *n = gpus ? MAX(gpus, 0) : 1;
    return OK;
}

OFFERED int cuDeviceGet(int *ret, int ordinal)
{
    *ret = ordinal;
    return OK;
}

OFFERED int cuDeviceGetUuid_v2(unsigned char *ret, int device)
{
    int pid = control("one-gpu") ? 0 : (int)getpid();
    memset(ret, 0, 16);
    memcpy(ret, &pid, sizeof pid);
    ret[15] = (unsigned char)device;
    return OK;
}

OFFERED int cuDevicePrimaryCtxRetain(void **ret, int device)
{
    *ret = (void *)(uintptr_t)(device + 1);
    return OK;
}

OFFERED int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return OK;
}

OFFERED int cuCtxGetCurrent(void **ret)
{
    *ret = NULL;
    return OK;
}

OFFERED int cuCtxGetDevice(int *ret)
{
    *ret = 0;
    return OK;
}

OFFERED int cuCtxPushCurrent_v2(void *context)
{
    depth += context != NULL;
    return OK;
}

OFFERED int cuCtxPopCurrent_v2(void **ret)
{
    *ret = NULL;
    return --depth < 0 ? 1 : OK;
}

OFFERED int cuMemAlloc_v2(uint64_t *ret, size_t size)
{
    int code = control("alloc");
    *ret = code ? 0 : (uintptr_t)xcalloc(1, size);
    return code;
}

OFFERED int cuMemFree_v2(uint64_t memory)
{
    free((void *)(uintptr_t)memory);
    return OK;
}

OFFERED int cuStreamCreate(void **ret, unsigned flags)
{
    *ret = flags ? NULL : ops;
    return OK;
}

OFFERED int cuStreamDestroy_v2(void *stream)
{
    (void)stream;
    return OK;
}

OFFERED int cuStreamQuery(void *stream)
{
    int code = control("stream");
    (void)stream;
    if (code || control("hang"))
        return code ? code : NOT_READY;
    while (n_ops && finish(&ops[0]))
        memmove(&ops[0], &ops[1], --n_ops * sizeof ops[0]);
    return n_ops ? NOT_READY : OK;
}

OFFERED int cuGetErrorName(int code, const char **ret)
{
    *ret = code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return OK;
}
