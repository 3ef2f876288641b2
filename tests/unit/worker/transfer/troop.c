// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/transfer/troop.h"

#include "common/base/clock.h"
#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/folder.h"
#include "worker/collective/star_frame.h"
#include "worker/device/device.h"
#include "worker/transfer/reshard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TENSORS = 4, FIRST_ID = 4711, AGAIN_ID = 5711, OTHER_ID = 6711 };

static const uint64_t matrix[] = {64, 4 * 4096}, narrow[] = {30, 7}, vector[] = {1000}, nothing[] = {0, 3};
const char *troop_names[TROOP_MAX];
static atomic_int *n_through; // transfers that members are through with; shared by all

const struct troop_scene troop_plain = {.n_receivers = 3,
                                        .n_senders = 2,
                                        .direct = true,
                                        .limit_ms = TROOP_LONG_MS,
                                        .victim = -1,
                                        .late = -1,
                                        .slow = -1,
                                        .started_again = -1,
                                        .packed = 10 * 1000,
                                        .nccl_limit = 1,
                                        .piece_max = RESHARD_PIECE_MAX};

static void name_members(const struct troop_scene *c)
{
    static const char *const all[2][3] = {{"rank 0 of rollout", "rank 1 of rollout", "rank 2 of rollout"},
                                          {"rank 0 of actor", "rank 1 of actor", "rank 2 of actor"}};
    for (int i = 0; i < c->n_receivers + c->n_senders; i++)
        troop_names[i] = i < c->n_receivers ? all[0][i] : all[1][i - c->n_receivers];
}

// Bytes over connections

static bool *is_counted; // by descriptors: somebody has come for weights
static uint64_t given;

static enum troop_lie lie; // what is wrong in its first message, or in ALL of the center

// With the hash of its side it says that all have every row of the first tensor. Or it gives up, and says an error that
// there is none of.
static void tell_lie(struct iovec *parts)
{
    enum { SPLIT = 6 + 2 + 2 * 8 }; // behind the name: dtype, number of dimensions, shape
    struct star_frame *f = parts[0].iov_base;
    if (lie == TROOP_LIES_ABOUT_SIDE)
        ((char *)memmem(parts[1].iov_base, parts[1].iov_len, "matrix", 6))[SPLIT] = -1;
    if (lie == TROOP_LIES_ABOUT_ERROR) {
        f->kind = DIALOG_FAILED;
        le_put_u32(parts[1].iov_base, UINT32_MAX);
        memset((char *)parts[1].iov_base + 4, 0, parts[1].iov_len - 4);
    }
    lie = TROOP_TRUTH;
}

// In ALL, the center says only 2 bytes, or none. Returns how many bytes are not sent.
static size_t shorten_all(struct iovec *parts)
{
    struct star_frame *f = parts[0].iov_base;
    size_t len = parts[1].iov_len;
    if (lie < TROOP_SAYS_NOTHING || f->kind != DIALOG_ALL)
        return 0;
    parts[1].iov_len = f->len = lie == TROOP_SAYS_LITTLE ? 2 : 0;
    return len - parts[1].iov_len;
}

static int n_awaited; // so many are to be through before this member goes on after its HELLO; 0 = it does not wait

static void be_slow(const struct iovec *parts)
{
    const struct star_frame *f = parts[0].iov_base;
    while (f->kind == DIALOG_HELLO && atomic_load(n_through) < n_awaited)
        usleep(1000);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    size_t cut = shorten_all(m->msg_iov);
    if (lie && lie < TROOP_SAYS_NOTHING)
        tell_lie(m->msg_iov);
    ssize_t n = __real_sendmsg(fd, m, flags);
    if (n_awaited)
        be_slow(m->msg_iov);
    given += n > 0 && is_counted[fd] ? (uint64_t)n : 0;
    return n > 0 ? n + (ssize_t)cut : n;
}

// Bytes written to the memory of others

static uint64_t written;
static enum troop_refusal refused;

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                 unsigned long n_there, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                 unsigned long n_there, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                 unsigned long n_there, unsigned long flags)
{
    if (refused == TROOP_NO_WRITE || (refused == TROOP_NO_SECOND_WRITE && written)) {
        errno = EPERM;
        return -1;
    }
    ssize_t n = __real_process_vm_writev(pid, here, n_here, there, n_there, flags);
    written += n > 0 ? (uint64_t)n : 0;
    return n;
}

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                unsigned long n_there, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                unsigned long n_there, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n_here, const struct iovec *there,
                                unsigned long n_there, unsigned long flags)
{
    if (refused != TROOP_NO_READ)
        return __real_process_vm_readv(pid, here, n_here, there, n_there, flags);
    errno = EPERM;
    return -1;
}

// Members meet at sockets that are named after the id of the rendezvous.

static socklen_t socket_name(uint64_t id, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "cadre-test-%d-%llx", (int)getppid(),
                     (unsigned long long)id);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool goes_on(const struct reshard_rendezvous *m, int64_t until)
{
    return clock_mono_ms(&clock_system) < until && !(m->stop && m->stop(m->ctx));
}

static void check_meets(const struct troop_scene *c, const struct reshard_rendezvous *m)
{
    if (c->again && m->id == AGAIN_ID + (m->stop != NULL)) { // at the center, or at the witness
        fprintf(stderr, "members that know each other meet\n");
        abort();
    }
}

static bool accept_one(int fd, const struct reshard_rendezvous *m, int *links)
{
    int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    char index;
    if (one < 0 || read(one, &index, 1) != 1)
        return false;
    links[(int)index] = one;
    is_counted[one] = m->id > FIRST_ID + 1; // than the links of the center and of the witness
    return true;
}

static int host(void *ctx, const struct reshard_rendezvous *m, int *links, struct err *err)
{
    struct sockaddr_un at;
    socklen_t len = socket_name(m->id, &at);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int64_t until = clock_mono_ms(&clock_system) + m->limit_ms;
    const struct troop_scene *c = ctx;
    check_meets(c, m);
    if (bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 64) != 0)
        return err_set(err, ERR_IO, "%s", strerror(errno));
    for (int i = 0; i < m->n; i++)
        links[i] = -1;
    int came = 1;
    for (bool over = false; came < m->n && !over;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        over = !goes_on(m, until);
        if (c->absent && m->stop && !over) {
            usleep(2000);
            continue;
        }
        while (came < m->n && poll(&p, 1, 20) == 1)
            came += accept_one(fd, m, links);
    }
    close(fd);
    bool stopped = came < m->n && m->stop && m->stop(m->ctx);
    return stopped ? err_set(err, ERR_CANCELED, "canceled while it waited for other ranks") : 0;
}

static int join(void *ctx, const struct reshard_rendezvous *m, int member, int index, int *link, struct err *err)
{
    struct sockaddr_un at;
    socklen_t len = socket_name(m->id, &at);
    int64_t until = clock_mono_ms(&clock_system) + m->limit_ms;
    char own = (char)index;
    check_meets(ctx, m);
    while (goes_on(m, until)) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&at, len) == 0 && write(fd, &own, 1) == 1) {
            *link = fd;
            return 0;
        }
        close(fd);
        usleep(2000);
    }
    return err_set(err, ERR_TIMEOUT, "%s was not found", troop_names[member]);
}

// Weights: each element has its number, plus one if it is new.

struct weights {
    struct mesh_dim dim;
    struct mesh mesh;
    struct transfer_tensor tensors[TENSORS];
    struct block blocks[TENSORS];
    void *host[TENSORS]; // the same values where they can be looked at
    struct transfer_side side;
    struct gpu_copier gpu;
};

static const int by_rows[] = {0}, by_columns[] = {1}, alike[] = {-1};

static void value_blocks(const struct weights *w, uint32_t rank, bool check, bool *ret_new, bool *ret_old)
{
    *ret_new = *ret_old = true;
    for (size_t i = 0; i < w->side.n; i++) {
        const struct transfer_tensor *t = &w->tensors[i];
        struct shard s, whole = {.n_dims = t->n_dims};
        struct shard_runs r;
        size_t size = safetensors_dtype_bits(t->dtype) / 8;
        for (size_t d = 0; d < t->n_dims; d++)
            whole.to[d] = t->shape[d];
        shard_of_rank(&w->mesh, t->split, rank, t->shape, t->n_dims, &s);
        for (bool more = shard_runs_first(&r, &s, size, &whole, &s); more; more = shard_runs_next(&r)) {
            for (uint64_t k = 0; k < r.len / size; k++) {
                uint64_t number = r.from / size + k;
                char *at = (char *)w->host[i] + r.to + k * size;
                uint16_t new_ = (uint16_t)(number * 7 + 1), got;
                if (!check)
                    memcpy(at, &new_, sizeof new_);
                memcpy(&got, at, sizeof got);
                *ret_new = *ret_new && got == new_;
                *ret_old = *ret_old && got == 0xffff;
            }
        }
    }
}

// All, or all but the last, which stays in memory of the host.
static void put_on_device(struct weights *w, size_t n)
{
    struct err err = ERR_INIT;
    assert_int_equal(device_open(&w->gpu.device, &err), 0);
    assert_int_equal(device_enter(w->gpu.device, &err), 0);
    assert_int_equal(copier_new(w->gpu.device, false, &w->gpu.copier, &err), 0);
    w->gpu.sweeper = sweeper_new();
    for (size_t i = 0; i < n; i++) {
        size_t len = w->blocks[i].len;
        w->blocks[i].on_device = true;
        assert_int_equal(device_alloc(w->gpu.device, MAX(len, (size_t)1), &w->blocks[i].data, &err), 0);
        assert_int_equal(copier_upload(w->gpu.copier, w->blocks[i].data, w->host[i], len, DEVICE_NO_LIMIT, NULL, &err),
                         0);
    }
}

static void make_weights(const struct troop_scene *c, int index, struct weights *w)
{
    bool sends = index >= c->n_receivers;
    uint32_t rank = (uint32_t)(sends ? index - c->n_receivers : index);
    const int *split = sends ? by_rows : c->alike ? alike : by_columns;
    bool ignored;
    *w = (struct weights){.dim = {"tp", (uint32_t)(sends ? c->n_senders : c->n_receivers)}};
    w->mesh = (struct mesh){sends ? "actor" : "rollout", &w->dim, 1};
    const struct transfer_tensor tensors[TENSORS] = {{"matrix", SAFETENSORS_F32, matrix, 2, split},
                                                     {"narrow", SAFETENSORS_F64, narrow, 2, split},
                                                     {"none", SAFETENSORS_F32, nothing, 2, alike},
                                                     {"vector", SAFETENSORS_BF16, vector, 1, alike}};
    memcpy(w->tensors, tensors, sizeof tensors);
    if (c->mismatch && sends)
        w->tensors[1].shape = matrix;
    if (c->differs && index == c->n_receivers + 1)
        w->tensors[1].dtype = SAFETENSORS_I64;
    w->side = (struct transfer_side){w->mesh.name, &w->mesh, w->tensors, TENSORS, NULL};
    for (size_t i = 0; i < TENSORS; i++) {
        struct shard s;
        const struct transfer_tensor *t = &w->tensors[i];
        shard_of_rank(&w->mesh, t->split, rank, t->shape, t->n_dims, &s);
        w->blocks[i].len = shard_elements(&s) * safetensors_dtype_bits(t->dtype) / 8;
        w->host[i] = w->blocks[i].data = xmalloc(w->blocks[i].len + 1);
        memset(w->host[i], 0xff, w->blocks[i].len);
    }
    if (sends)
        value_blocks(w, rank, false, &ignored, &ignored);
    if (c->on_device[!sends] || c->by_nccl)
        put_on_device(w, c->by_nccl ? TENSORS : TENSORS - 1);
}

static void free_weights(struct weights *w)
{
    struct err ignored = ERR_INIT;
    for (size_t i = 0; i < TENSORS; i++) {
        if (w->blocks[i].on_device)
            device_free(w->gpu.device, w->blocks[i].data);
        free(w->host[i]);
    }
    (void)copier_free(w->gpu.copier, 0, &ignored);
    if (w->gpu.device && sweeper_free(w->gpu.sweeper)) {
        device_leave(w->gpu.device);
        device_close(w->gpu.device);
    }
}

static void report(int out, const struct troop_scene *c, int index, const struct weights *w, int code,
                   const struct reshard_result *result, const struct err *err)
{
    bool is_new = true, is_old = true;
    struct err ignored = ERR_INIT;
    for (size_t i = 0; i < TENSORS; i++)
        if (w->blocks[i].on_device)
            (void)copier_download(w->gpu.copier, w->host[i], w->blocks[i].data, w->blocks[i].len, TROOP_LONG_MS, NULL,
                                  &ignored);
    if (index < c->n_receivers)
        value_blocks(w, (uint32_t)index, true, &is_new, &is_old);
    dprintf(out, "%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s%s\n",
            is_new && is_old ? "any"
            : is_new         ? "new"
            : is_old         ? "old"
                             : "MIXED",
            err_name(code), result->bytes.direct, result->bytes.nccl, result->bytes.sent, given, written,
            result->n_problems ? result->problems[0] : "", code ? err->msg : "");
}

// For the nth time.
static void wait_for_all(const struct troop_scene *c, int nth)
{
    atomic_fetch_add(n_through, 1);
    while (atomic_load(n_through) < nth * (c->n_receivers + c->n_senders))
        usleep(1000);
}

// The witness has answered the members that had asked, and a sender has missed a receiver's memory, after the center
// had decided.
static void leave_rest(const struct troop_scene *c, int index, const struct idle_connections *idle)
{
    char take[8], failed[] = "\1\0\0\0its memory is gone";
    int64_t until = clock_mono_ms(&clock_system) + TROOP_LONG_MS;
    le_put_u32(take, COMMIT_TAKE);
    le_put_u32(take + 4, 0);
    for (int i = 1; index == c->n_receivers && i < c->n_receivers; i++)
        assert_int_equal(star_frame_send(idle->links[i], DIALOG_DECISION, take, sizeof take, until), 0);
    if (index > c->n_receivers)
        assert_int_equal(star_frame_send(idle->links[0], DIALOG_FAILED, failed, sizeof failed - 1, until), 0);
}

// A transfer before the one that counts: all keep their connections.
static void know_each_other(const struct troop_scene *c, int index, struct reshard_config *config, struct weights *w)
{
    const struct participant_config counts = config->participant;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct reshard_result result;
    config->participant.limit_ms = config->participant.late_ms = config->participant.patience_ms = TROOP_LONG_MS;
    config->direct = c->direct && !c->by_nccl; // so that more members make a communicator
    w->gpu.until_ms = clock_mono_ms(&clock_system) + TROOP_LONG_MS;
    assert_int_equal(reshard(config, &a, &result, &err), 0);
    config->participant = counts;
    config->direct = c->direct;
    for (size_t i = 0; index < c->n_receivers && i < TENSORS; i++) {
        memset(w->host[i], 0xff, w->blocks[i].len);
        if (w->blocks[i].on_device)
            assert_int_equal(copier_upload(w->gpu.copier, w->blocks[i].data, w->host[i], w->blocks[i].len,
                                           DEVICE_NO_LIMIT, NULL, &err),
                             0);
    }
    *config->progress = (struct mover_progress){0};
    arena_done(&a);
    if (index == c->started_again) {
        *config->nccl = (struct nccl_link){.number = 0};
        folder_write(getenv("GPU_STAND_IN"), "control", "");
    }
    config->known_by = idle_connections_id(config->idle);
    assert_int_equal(config->known_by, FIRST_ID);
    config->id = c->apart && index == c->n_receivers ? OTHER_ID : AGAIN_ID;
    given = written = 0;
    wait_for_all(c, 1); // the client does so, too
    if (c->rest)
        leave_rest(c, index, config->idle);
}

// Pretended machines and containers, which are processes of this one.
static struct window_place place_of(const struct troop_scene *c, int index)
{
    struct window_place place;
    window_place(&place);
    if (c->places) {
        place.host[0] = c->places[index][0];
        place.pids = (uint64_t)c->places[index][1];
    }
    return place;
}

static void be_odd(const struct troop_scene *c, int index, struct reshard_config *config)
{
    if (c->oddity == TROOP_SAME_GPU && (index == c->odd || index == 0))
        setenv("CUDA_STAND_IN_GPU", "1", 1);
    if (index != c->odd)
        return;
    if (c->oddity == TROOP_WANTS_NO_NCCL)
        config->nccl = NULL;
    if (c->oddity == TROOP_NCCL_BLOCKS)
        setenv("NCCL_COMM_BLOCKING", "1", 1);
    if (c->oddity == TROOP_LACKS_NCCL)
        setenv("NCCL_STAND_IN_VERSION", "0", 1);
    if (c->oddity == TROOP_OTHER_NCCL)
        setenv("NCCL_STAND_IN_VERSION", "22403", 1);
}

// With something to do on each.
static void hang(const struct troop_scene *c, int index, const struct weights *w)
{
    struct err err = ERR_INIT;
    assert_int_equal(copier_wait(w->gpu.copier, DEVICE_NO_LIMIT, NULL, &err), 0);
    wait_for_all(c, 1);
    if (index == 0)
        folder_write(getenv("GPU_STAND_IN"), "control", "hang\n");
    wait_for_all(c, 2);
    assert_int_equal(copier_upload(w->gpu.copier, w->blocks[0].data, w->host[0], 1, DEVICE_NO_LIMIT, NULL, &err), 0);
}

static int be_member(const struct troop_scene *c, int index, int out, const char *fault)
{
    struct weights w;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct reshard_result result;
    struct mover_progress progress = {0};
    struct idle_connections idle = {.id = 0};
    struct nccl_link nccl = {.number = 0};
    // So that weights of this size take several steps.
    const struct mover_sizes sizes = {
        .step = 100 * 1000, .least_written = 1000, .told = 200 * 1000, .round = 200 * 1000, .packed = c->packed};
    atomic_bool canceled = c->canceled && index == c->n_receivers;
    is_counted = xcalloc((size_t)sysconf(_SC_OPEN_MAX), sizeof *is_counted);
    struct back_buffer *back_buffer = back_buffer_new(true);
    struct reshard_config config = {.id = FIRST_ID,
                                    .participant = {.index = index,
                                                    .n_receivers = c->n_receivers,
                                                    .n_senders = c->n_senders,
                                                    .names = troop_names,
                                                    .limit_ms = c->limit_ms,
                                                    .late_ms = c->limit_ms,
                                                    .patience_ms = c->limit_ms * TROOP_PATIENCE,
                                                    .canceled = &canceled},
                                    .back_buffer = back_buffer,
                                    .piece_max = c->piece_max,
                                    .place = place_of(c, index),
                                    .direct = c->direct,
                                    .groups = {"actor", "rollout"},
                                    .progress = &progress,
                                    .sizes = &sizes,
                                    .ways = {host, join, (void *)(uintptr_t)c},
                                    .idle = &idle,
                                    .nccl = c->by_nccl ? &nccl : NULL,
                                    .nccl_limit_ms = c->limit_ms / c->nccl_limit};
    be_odd(c, index, &config);
    make_weights(c, index, &w);
    config.side = w.side;
    config.blocks = (struct blocks){w.blocks, TENSORS, w.gpu.device ? &w.gpu : NULL};
    if (c->again)
        know_each_other(c, index, &config, &w);
    lie = index == (c->lie < TROOP_SAYS_NOTHING ? c->n_receivers : 0) ? c->lie : TROOP_TRUTH;
    refused = index >= c->n_receivers ? c->refused : TROOP_LET;
    if (index == c->victim)
        setenv("CADRE_TRANSFER_FAULT", fault, 1);
    if (c->gpus_hang)
        hang(c, index, &w);
    w.gpu.until_ms = clock_mono_ms(&clock_system) + c->limit_ms;
    n_awaited = index == c->slow ? (1 + c->again) * (c->n_receivers + c->n_senders) - 1 : 0;
    int code = reshard(&config, &a, &result, &err);
    if (c->slow >= 0)
        atomic_fetch_add(n_through, 1);
    if (c->gpus_hang) {
        wait_for_all(c, 3);
        if (index == 0)
            folder_write(getenv("GPU_STAND_IN"), "control", "");
    }
    report(out, c, index, &w, code, &result, &err);
    if (code == 0 && !result.n_problems && index < c->n_receivers)
        assert_int_equal(atomic_load(&progress.done), atomic_load(&progress.total));
    idle_connections_drop(&idle);
    nccl_link_drop(&nccl, NULL);
    back_buffer_free(back_buffer);
    free_weights(&w);
    free(is_counted);
    arena_done(&a);
    return 0;
}

struct troop {
    pid_t pids[TROOP_MAX];
    int says[TROOP_MAX], n;
};

static void start(struct troop *t, const struct troop_scene *c, const char *fault_file)
{
    t->n = c->n_receivers + c->n_senders;
    for (int i = 0; i < t->n; i++) {
        int out[2];
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        t->says[i] = out[0];
        t->pids[i] = i == c->late ? 0 : fork();
        if (i != c->late && t->pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("CMOCKA_TEST_ABORT", "1", 1); // a check that fails shall not go on with the tests of the parent
            int code = be_member(c, i, out[1], fault_file);
            if (c->leaves_thread)
                _exit(code);
            exit(code);
        }
        close(out[1]);
    }
}

static void hear(struct troop *t, int i, struct troop_result *ret)
{
    char line[TROOP_LINE] = "";
    size_t n = 0;
    *ret = (struct troop_result){.died = true};
    while (n + 1 < sizeof line && read(t->says[i], line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    if (n) {
        char *rest = line, *words[7];
        for (size_t k = 0; k < ARRAY_LEN(words); k++)
            words[k] = strsep(&rest, " ");
        ret->died = false;
        snprintf(ret->weights, sizeof ret->weights, "%s", words[0]);
        snprintf(ret->code, sizeof ret->code, "%s", words[1]);
        ret->direct = strtoull(words[2], NULL, 10);
        ret->nccl = strtoull(words[3], NULL, 10);
        ret->sent = strtoull(words[4], NULL, 10);
        ret->given = strtoull(words[5], NULL, 10);
        ret->written = strtoull(words[6], NULL, 10);
        snprintf(ret->text, sizeof ret->text, "%s", rest);
    }
    close(t->says[i]);
}

// By a signal, and not because a sanitizer looks at it.
static bool stands_still(pid_t pid)
{
    char path[32], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state == 'T';
}

// Until it has ended: it may stand still only now.
static void let_go_on(struct troop *t, int i)
{
    struct pollfd p = {.fd = t->says[i], .events = POLLIN};
    do
        if (stands_still(t->pids[i]))
            kill(t->pids[i], SIGCONT);
    while (poll(&p, 1, 50) == 0);
}

bool troop_run(const struct troop_scene *c, struct troop_result *said)
{
    struct troop t;
    char folder[64], fault[32];
    folder_new(folder);
    _cleanup_(free_p) char *file = xasprintf("%s/fault", folder);
    snprintf(fault, sizeof fault, "%s %d\n", c->fault ? c->fault : "", c->signal);
    if (c->victim >= 0)
        folder_write(folder, "fault", fault);
    name_members(c);
    n_through = mmap(NULL, sizeof *n_through, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(n_through, MAP_FAILED);
    start(&t, c, file);
    for (int i = 0; i < t.n; i++)
        if (i != c->victim)
            hear(&t, i, &said[i]);
    if (c->victim >= 0)
        let_go_on(&t, c->victim);
    if (c->victim >= 0)
        hear(&t, c->victim, &said[c->victim]);
    for (int i = 0; i < t.n; i++) {
        int state = 0;
        if (t.pids[i])
            assert_int_equal(waitpid(t.pids[i], &state, 0), t.pids[i]);
        if (i != c->victim)
            assert_int_equal(state, 0);
    }
    munmap(n_through, sizeof *n_through);
    bool happened = access(file, F_OK) != 0;
    folder_free(folder);
    return happened;
}

static int count_lines(const char *folder, const char *name)
{
    char text[4096];
    int n = 0;
    folder_read(folder, name, text, sizeof text);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

bool troop_run_on_gpus(const struct troop_scene *c, const char *control, struct troop_result *said,
                       struct troop_counts *ret)
{
    char folder[64];
    folder_new(folder);
    folder_write(folder, "control", control);
    setenv("GPU_STAND_IN", folder, 1);
    bool happened = troop_run(c, said);
    if (ret)
        *ret = (struct troop_counts){count_lines(folder, "inits"), count_lines(folder, "aborts")};
    unsetenv("GPU_STAND_IN");
    folder_free(folder);
    return happened;
}

void troop_all_have(const struct troop_scene *c, const struct troop_result *said, const char *weights, const char *code)
{
    for (int i = 0; i < c->n_receivers + c->n_senders; i++) {
        if (strcmp(said[i].code, code) != 0)
            fail_msg("%s: %s, not %s: %s", troop_names[i], said[i].code, code, said[i].text);
        assert_string_equal(said[i].weights, i < c->n_receivers ? weights : "any");
    }
}

void troop_agree(const struct troop_scene *c, const struct troop_result *said)
{
    const char *weights = NULL;
    for (int i = 0; i < c->n_receivers; i++) {
        if (said[i].died)
            continue;
        weights = weights ? weights : said[i].weights;
        if (strcmp(said[i].weights, weights) != 0 || strcmp(weights, "MIXED") == 0)
            fail_msg("victim %d, %s, signal %d: receiver %d has %s weights, another one %s (%s)", c->victim, c->fault,
                     c->signal, i, said[i].weights, weights, said[i].text);
    }
}

struct troop_scene troop_on_gpus(void)
{
    struct troop_scene c = troop_plain;
    c.direct = false;
    c.by_nccl = true;
    return c;
}

uint64_t troop_given(const struct troop_scene *c, const struct troop_result *said)
{
    uint64_t sum = 0, sent = 0;
    for (int i = 0; i < c->n_receivers + c->n_senders; i++) {
        sum += said[i].given;
        sent += said[i].sent;
    }
    assert_int_equal(sent, sum);
    return sum;
}

uint64_t troop_run_by_nccl(const struct troop_scene *c, const char *control, struct troop_counts *ret)
{
    struct troop_result said[TROOP_MAX];
    troop_run_on_gpus(c, control, said, ret);
    troop_all_have(c, said, "new", "OK");
    for (int i = 0; i < c->n_receivers; i++) {
        assert_int_equal(said[i].direct, 0);
        assert_true(said[i].nccl + said[i].sent > 0);
    }
    return troop_given(c, said);
}
