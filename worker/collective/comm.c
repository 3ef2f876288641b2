// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/comm.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/safetensors.h"
#include "worker/collective/backend.h"
#include "worker/collective/star.h"
#include "worker/collective/star_debug.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cadre_comm {
    char **names;
    int index, n;
    int64_t limit_ms;
    bool debug;
    bool streams;           // calls return when their work is on the program's stream
    bool unwaited;          // a collective has begun since the last wait
    struct backend_op last; // that collective, or the last operation
    uint32_t number;        // of the last collective
    const struct backend *backend;
    struct star *star;     // NULL = there is only one member
    pthread_mutex_t mutex; // protects the member below
    void *self;            // of the back end; NULL = there is only one member
    char error[STAR_REASON_SIZE + 128];
};

// Back ends

static const struct kind {
    const char *name;
    bool collective;      // all members call it, and it has a number
    bool all_in, all_out; // `in` and `out` have the parts of all members
} kinds[] = {
    [BACKEND_ALL_REDUCE] = {"all_reduce", true},
    [BACKEND_BROADCAST] = {"broadcast", true},
    [BACKEND_ALL_GATHER] = {"all_gather", true, .all_out = true},
    [BACKEND_REDUCE_SCATTER] = {"reduce_scatter", true, .all_in = true},
    [BACKEND_ALL_TO_ALL] = {"all_to_all", true, .all_in = true, .all_out = true},
    [BACKEND_SEND] = {"send", false},
    [BACKEND_RECV] = {"recv", false},
    [BACKEND_BARRIER] = {"barrier", true},
};

// Finds the file that contains this code: the program, or libcadre.so.
static void own_file(char *out, size_t size)
{
    Dl_info here;
    if (dladdr((const void *)kinds, &here) && here.dli_fname && strchr(here.dli_fname, '/')) {
        snprintf(out, size, "%s", here.dli_fname);
        return;
    }
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[MAX(n, (ssize_t)0)] = '\0';
}

// Loads a back end from beside that file, or from the folders of the system.
static void *open_library(const char *name)
{
    char file[4096], *slash;
    own_file(file, sizeof file);
    slash = strrchr(file, '/');
    if (slash) {
        snprintf(slash + 1, sizeof file - (size_t)(slash + 1 - file), "%s", name);
        if (access(file, F_OK) == 0)
            return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static const struct source {
    const char *name, *needs; // what the image needs besides the library
    bool on_host;             // it moves memory of the host; a single member does not need it
} sources[] = {{"gloo", "libgloo0", true}, {"nccl", "nothing else to load it", false}};

static const struct source *find_source(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (str_eq(name, sources[i].name))
            return &sources[i];
    return NULL;
}

static int check_stream(const struct comm_config *config, const struct source *source, struct err *err)
{
    if (!config->stream || !source->on_host)
        return 0;
    return err_set(err, ERR_INVALID,
                   "the back end %s moves memory of the host and has no streams: set none, or use the back end nccl",
                   source->name);
}

// It stays loaded, because threads of its libraries may run until the process ends.
static const struct backend *load(const struct comm_config *config, struct err *err)
{
    char file[64];
    const char *name = config->backend;
    const struct source *source = find_source(name);
    if (!source) {
        err_set(err, ERR_INVALID, "there is no back end '%.40s' for collectives; there are gloo and nccl", name);
        return NULL;
    }
    if (check_stream(config, source, err) < 0)
        return NULL;
    snprintf(file, sizeof file, "libcadre_%s.so", name);
    void *library = open_library(file), *symbol = library ? dlsym(library, BACKEND_SYMBOL) : NULL;
    const struct backend *(*find)(void) = NULL;
    memcpy(&find, &symbol, sizeof find);
    const struct backend *backend = find ? find() : NULL;
    if (!backend) {
        const char *why = dlerror();
        err_set(err, ERR_INVALID, "the back end %s cannot be loaded: %s; the image needs %s of Cadre, and %s", name,
                why ? why : "its version is another one", file, source->needs);
        return NULL;
    }
    if (backend->version != BACKEND_VERSION) {
        err_set(err, ERR_INVALID, "%s and this program are from different versions of Cadre", file);
        return NULL;
    }
    return backend;
}

// Making

static void on_broken(void *ctx)
{
    struct cadre_comm *c = ctx;
    pthread_mutex_lock(&c->mutex);
    if (c->self)
        c->backend->abort(c->self);
    pthread_mutex_unlock(&c->mutex);
}

// A member tells the others whether it is in debug mode, and then what its back end says.
static int check_modes(const struct cadre_comm *c, char *const *said, const size_t *lens, struct err *err)
{
    for (int i = 0; i < c->n; i++)
        if (!lens[i] || said[i][0] != said[0][0])
            return err_set(err, ERR_INVALID,
                           "%s and %s differ in CADRE_COLLECTIVE_DEBUG: set it for all ranks, or none", c->names[0],
                           c->names[i]);
    return 0;
}

static int connect_all(struct cadre_comm *c, const char *blob, size_t len, struct err *err)
{
    char **said = xcalloc((size_t)c->n, sizeof *said), **blobs = xcalloc((size_t)c->n, sizeof *blobs);
    size_t *lens = xcalloc((size_t)c->n, sizeof *lens);
    struct err mine = ERR_INIT;
    _cleanup_(free_p) char *own = xmalloc(len + 1);
    own[0] = (char)c->debug;
    memcpy(own + 1, blob, len);
    int r = star_exchange(c->star, own, len + 1, said, lens, err);
    if (r == 0) {
        if (check_modes(c, said, lens, &mine) == 0) {
            for (int i = 0; i < c->n; i++) {
                blobs[i] = said[i] + 1;
                lens[i]--;
            }
            (void)c->backend->connect(c->self, blobs, lens, &mine);
        }
        r = star_agree(c->star, &mine, err);
    }
    for (int i = 0; i < c->n; i++)
        free(said[i]);
    free(said);
    free(blobs);
    free(lens);
    return r;
}

static int make(struct cadre_comm *c, const struct comm_config *config, struct err *err)
{
    const struct backend_config b = {config->index,   config->n,        (const char *const *)c->names,
                                     config->address, config->limit_ms, config->stream};
    struct err mine = ERR_INIT;
    char *blob = NULL;
    size_t len = 0;
    c->backend = load(config, &mine);
    if (c->backend)
        c->self = c->backend->open(&b, &blob, &len, &mine);
    int r = star_agree(c->star, &mine, err); // so that no member waits for one that has failed
    if (mine.code)
        r = err_set(err, mine.code, "%s", mine.msg);
    else if (r == 0)
        r = connect_all(c, blob, len, err);
    free(blob);
    return r;
}

int comm_new(const struct comm_config *config, cadre_comm **ret, struct err *err)
{
    struct cadre_comm *c = xcalloc(1, sizeof *c);
    const struct source *source = find_source(config->backend);
    int r = 0;
    *c = (struct cadre_comm){.index = config->index,
                             .n = config->n,
                             .limit_ms = config->limit_ms,
                             .debug = config->debug,
                             .streams = config->stream != NULL};
    c->names = xcalloc((size_t)c->n, sizeof *c->names);
    for (int i = 0; i < c->n; i++)
        c->names[i] = xstrdup(config->names[i]);
    pthread_mutex_init(&c->mutex, NULL);
    if (c->n == 1 && source && source->on_host) {
        r = check_stream(config, source, err);
    } else {
        c->star = star_new(&(struct star_config){.index = c->index,
                                                 .n = c->n,
                                                 .names = (const char *const *)c->names,
                                                 .links = config->links,
                                                 .limit_ms = config->limit_ms});
        r = make(c, config, err);
        if (r == 0)
            star_watch(c->star, on_broken, c);
    }
    if (r < 0)
        cadre_comm_free(TAKE_PTR(c));
    *ret = c;
    return r;
}

CADRE_EXPORT void cadre_comm_free(cadre_comm *c)
{
    if (!c)
        return;
    star_free(c->star);
    if (c->self)
        c->backend->close(c->self);
    pthread_mutex_destroy(&c->mutex);
    for (int i = 0; i < c->n; i++)
        free(c->names[i]);
    free(c->names);
    free(c);
}

CADRE_EXPORT int cadre_comm_rank(const cadre_comm *c)
{
    return c->index;
}

CADRE_EXPORT int cadre_comm_size(const cadre_comm *c)
{
    return c->n;
}

CADRE_EXPORT const char *cadre_comm_error(const cadre_comm *c)
{
    return c->error;
}

// Running

static cadre_result fail(struct cadre_comm *c, const char *what, cadre_result r, const char *why)
{
    snprintf(c->error, sizeof c->error, "%s: %s", what, why);
    return r;
}

// The star knows which members have called a collective. It does not know that for the two functions of a pair.
static void name_other(const struct cadre_comm *c, const struct backend_op *op, struct err *err)
{
    bool sends = op->kind == BACKEND_SEND;
    bool passed_on = c->debug && c->index && op->peer;
    err_set(err, ERR_TIMEOUT,
            "%s waited %lld ms to %s %s, which has not called cadre_%s(), is stopped, or cannot be reached%s%s%s",
            c->names[c->index], (long long)c->limit_ms, sends ? "send to" : "receive from", c->names[op->peer],
            sends ? "recv" : "send", passed_on ? "; or " : "", passed_on ? c->names[0] : "",
            passed_on ? " is stopped, which passes on what the two say in debug mode" : "");
}

// The back end has failed in `what`, which has waited for that operation. The members agree on the reason.
static cadre_result give_up(struct cadre_comm *c, const char *what, const struct backend_op *op, struct err *err)
{
    char reason[STAR_REASON_SIZE];
    bool late = err->code == ERR_TIMEOUT, collective = kinds[op->kind].collective;
    if (late && !collective)
        name_other(c, op, err);
    else
        err_wrap(err, "on %s", c->names[c->index]);
    star_give_up(c->star, late && collective ? NULL : err->msg, reason);
    return fail(c, what, CADRE_ERROR, reason);
}

// Only an all_reduce can work in place.
static bool overlaps(const struct cadre_comm *c, const struct backend_op *op)
{
    size_t part = op->n * op->item, all = part * (size_t)c->n;
    uintptr_t in = (uintptr_t)op->in, out = (uintptr_t)op->out;
    if (!in || !out || (in == out && op->kind == BACKEND_ALL_REDUCE))
        return false;
    return in < out + (kinds[op->kind].all_out ? all : part) && out < in + (kinds[op->kind].all_in ? all : part);
}

static const char *wrong(const struct cadre_comm *c, const char *dtype, struct backend_op *op)
{
    bool reduces = op->kind == BACKEND_ALL_REDUCE || op->kind == BACKEND_REDUCE_SCATTER;
    bool pairs = op->kind == BACKEND_SEND || op->kind == BACKEND_RECV;
    enum safetensors_dtype found;
    if (!safetensors_dtype_find(dtype, &found))
        return "this type does not exist; the types are the same as in batches";
    size_t bits = safetensors_dtype_bits(found);
    op->dtype = found;
    if (reduces && bits < 8)
        return "elements that are smaller than a byte can be moved, but not reduced";
    if (reduces && (op->reduction < CADRE_SUM || op->reduction > CADRE_MEAN))
        return "there is no such reduction";
    if (op->peer < 0 || op->peer >= c->n || (pairs && op->peer == c->index))
        return pairs ? "the other member must not be this one, and must be from 0 to the size of the communicator"
                     : "there is no such member";
    if (op->n > SIZE_MAX / bits / (size_t)c->n)
        return "too many elements";
    if (op->n * bits % 8)
        return "the part of a member must be whole bytes: n must be a multiple of 2 for F4, of 4 for F6_E2M3 and "
               "F6_E3M2";
    op->item = MAX(bits / 8, (size_t)1);
    op->n = op->n * bits / 8 / op->item;
    if (overlaps(c, op))
        return op->kind == BACKEND_ALL_REDUCE ? "`in` and `out` overlap: pass the same memory twice, or two arrays"
                                              : "`in` and `out` overlap: pass two arrays";
    return NULL;
}

// The only member copies.
static void run_alone(const struct backend_op *op)
{
    if (op->in && op->out && op->in != op->out)
        memcpy(op->out, op->in, op->n * op->item);
}

static size_t count(const struct backend_op *op)
{
    return op->n * op->item * 8 / safetensors_dtype_bits((enum safetensors_dtype)op->dtype);
}

// Describes the operation in words. Equal collectives have equal words.
static void describe(const struct cadre_comm *c, const struct backend_op *op, char out[STAR_WHAT_SIZE])
{
    static const char *const reductions[] = {[CADRE_SUM] = " with sum",
                                             [CADRE_PRODUCT] = " with product",
                                             [CADRE_MIN] = " with min",
                                             [CADRE_MAX] = " with max",
                                             [CADRE_MEAN] = " with mean"};
    bool from = op->kind == BACKEND_BROADCAST;
    snprintf(out, STAR_WHAT_SIZE, "%s of %zu %s%s%s%s", kinds[op->kind].name, count(op),
             safetensors_dtype_name((enum safetensors_dtype)op->dtype), op->reduction ? reductions[op->reduction] : "",
             from ? " from " : "", from ? c->names[op->peer] : "");
}

static cadre_result compare_all(struct cadre_comm *c, const struct backend_op *op)
{
    char what[STAR_WHAT_SIZE], reason[STAR_REASON_SIZE];
    describe(c, op, what);
    int r = star_compare(c->star, what, c->limit_ms);
    if (r == ERR_TIMEOUT)
        star_give_up(c->star, NULL, reason);
    else if (r < 0)
        (void)star_broken(c->star, reason);
    return r < 0 ? fail(c, kinds[op->kind].name, CADRE_ERROR, reason) : CADRE_OK;
}

// The receiver compares. The sender does not wait for it: without debug mode, it may not wait for the receiver, either.
static cadre_result compare_pair(struct cadre_comm *c, const struct backend_op *op)
{
    char mine[STAR_WHAT_SIZE], theirs[STAR_WHAT_SIZE], reason[STAR_REASON_SIZE];
    struct err late = {.code = ERR_TIMEOUT};
    snprintf(mine, sizeof mine, "%zu %s", count(op), safetensors_dtype_name((enum safetensors_dtype)op->dtype));
    if (op->kind == BACKEND_SEND) {
        star_tell(c->star, op->peer, mine);
        return CADRE_OK;
    }
    int r = star_hear(c->star, op->peer, theirs, c->limit_ms);
    if (r == ERR_TIMEOUT)
        return give_up(c, "recv", op, &late);
    if (r < 0) {
        (void)star_broken(c->star, reason);
        return fail(c, "recv", CADRE_ERROR, reason);
    }
    if (!*theirs || str_eq(mine, theirs))
        return CADRE_OK;
    const char *from = c->names[op->peer], *to = c->names[c->index];
    char differ[STAR_REASON_SIZE];
    snprintf(differ, sizeof differ, "what %s sends to %s differs: %s: send of %s; %s: recv of %s", from, to, from,
             theirs, to, mine);
    star_break(c->star, differ, reason);
    return fail(c, "recv", CADRE_ERROR, reason);
}

// The time that it takes counts for the limit of the operation.
static cadre_result compare(struct cadre_comm *c, struct backend_op *op)
{
    if (!c->debug)
        return CADRE_OK;
    int64_t begin = clock_mono_ms(&clock_system);
    cadre_result r = kinds[op->kind].collective ? compare_all(c, op) : compare_pair(c, op);
    op->limit_ms = MAX(c->limit_ms - (clock_mono_ms(&clock_system) - begin), (int64_t)1);
    return r;
}

static cadre_result run_together(struct cadre_comm *c, struct backend_op *op)
{
    struct err err = ERR_INIT;
    bool collective = kinds[op->kind].collective;
    const char *name = kinds[op->kind].name;
    op->limit_ms = c->limit_ms;
    if (collective) {
        op->number = ++c->number;
        star_progress(c->star, op->number);
    }
    if (compare(c, op) != CADRE_OK)
        return CADRE_ERROR;
    if (!op->n)
        return CADRE_OK;
    int r = c->backend->run(c->self, op, &err);
    if (r == ERR_INVALID) {
        c->number -= collective;
        star_progress(c->star, c->number);
        return fail(c, name, CADRE_INVALID_ARGUMENT, err.msg);
    }
    if (collective || !c->unwaited)
        c->last = *op;
    c->unwaited = c->unwaited || collective;
    return r == 0 ? CADRE_OK : give_up(c, name, op, &err);
}

static cadre_result run(struct cadre_comm *c, const char *dtype, struct backend_op *op)
{
    char reason[STAR_REASON_SIZE];
    const char *why = wrong(c, dtype, op), *name = kinds[op->kind].name;
    c->error[0] = '\0';
    if (why)
        return fail(c, name, CADRE_INVALID_ARGUMENT, why);
    if (!c->self) {
        run_alone(op);
        return CADRE_OK;
    }
    if (star_broken(c->star, reason))
        return fail(c, name, CADRE_ERROR, reason);
    return op->n || c->debug ? run_together(c, op) : CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_comm_wait(cadre_comm *c)
{
    char reason[STAR_REASON_SIZE];
    struct err err = ERR_INIT;
    c->error[0] = '\0';
    if (!c->self)
        return CADRE_OK;
    if (star_broken(c->star, reason))
        return fail(c, "wait", CADRE_ERROR, reason);
    if (c->streams && c->backend->wait(c->self, c->limit_ms, &err) < 0)
        return give_up(c, "wait", &c->last, &err);
    c->unwaited = false;
    return CADRE_OK;
}

CADRE_EXPORT cadre_result cadre_all_reduce(cadre_comm *c, const char *dtype, const void *in, void *out, size_t n,
                                           cadre_reduction reduction)
{
    return run(
        c, dtype,
        &(struct backend_op){.kind = BACKEND_ALL_REDUCE, .in = in, .out = out, .n = n, .reduction = (int)reduction});
}

CADRE_EXPORT cadre_result cadre_broadcast(cadre_comm *c, const char *dtype, void *data, size_t n, int root)
{
    return run(c, dtype, &(struct backend_op){.kind = BACKEND_BROADCAST, .out = data, .n = n, .peer = root});
}

CADRE_EXPORT cadre_result cadre_all_gather(cadre_comm *c, const char *dtype, const void *in, void *out, size_t n)
{
    return run(c, dtype, &(struct backend_op){.kind = BACKEND_ALL_GATHER, .in = in, .out = out, .n = n});
}

CADRE_EXPORT cadre_result cadre_reduce_scatter(cadre_comm *c, const char *dtype, const void *in, void *out, size_t n,
                                               cadre_reduction reduction)
{
    return run(c, dtype,
               &(struct backend_op){
                   .kind = BACKEND_REDUCE_SCATTER, .in = in, .out = out, .n = n, .reduction = (int)reduction});
}

CADRE_EXPORT cadre_result cadre_all_to_all(cadre_comm *c, const char *dtype, const void *in, void *out, size_t n)
{
    return run(c, dtype, &(struct backend_op){.kind = BACKEND_ALL_TO_ALL, .in = in, .out = out, .n = n});
}

CADRE_EXPORT cadre_result cadre_send(cadre_comm *c, const char *dtype, const void *data, size_t n, int to)
{
    return run(c, dtype, &(struct backend_op){.kind = BACKEND_SEND, .in = data, .n = n, .peer = to});
}

CADRE_EXPORT cadre_result cadre_recv(cadre_comm *c, const char *dtype, void *data, size_t n, int from)
{
    return run(c, dtype, &(struct backend_op){.kind = BACKEND_RECV, .out = data, .n = n, .peer = from});
}

CADRE_EXPORT cadre_result cadre_barrier(cadre_comm *c)
{
    return run(c, "U8", &(struct backend_op){.kind = BACKEND_BARRIER, .n = 1});
}
