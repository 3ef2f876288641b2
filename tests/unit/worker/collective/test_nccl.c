// SPDX-License-Identifier: Apache-2.0
// The errors of the back end nccl if NCCL or the GPU has trouble, over a stand-in for both (nccl_stand_in.c).
// test_comm.c tests the results of its collectives.
#include "tests/unit/support/team.h"

#include "common/base/mem.h"
#include "tests/unit/support/again.h"
#include "tests/unit/support/folder.h"
#include "worker/device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHORT_LIMIT_MS = 3000, MEMBERS = 3 };

static char folder[64];

static void control(const char *lines)
{
    folder_write(folder, "control", lines);
}

static int aborts(void)
{
    char text[256];
    int n = 0;
    folder_read(folder, "aborts", text, sizeof text);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

static void hear_folder(const char *name, char *out, size_t size)
{
    do {
        usleep(1000);
        folder_read(folder, name, out, size);
    } while (!out[0]);
}

// All make a communicator, say so or why not, wait until the test lets them, and reduce.
static int reduce(const struct team_member *m, void *ctx)
{
    static float x[4] = {1, 2, 3, 4}; // a GPU that hangs may use it later
    struct err err = ERR_INIT;
    cadre_comm *c = team_join(m, &err);
    char go[16];
    (void)ctx;
    team_say(m, c ? "made" : err.msg);
    if (!c)
        return 0;
    hear_folder("go", go, sizeof go);
    cadre_result r = cadre_all_reduce(c, "F32", x, x, 4, CADRE_SUM);
    team_say(m, r == CADRE_OK && x[3] == 4 * (float)m->n ? "reduced" : cadre_comm_error(c));
    cadre_comm_free(c);
    return 0;
}

static void begin(struct team *t, int n, int64_t limit_ms, const char *lines)
{
    folder_clear(folder);
    control(lines);
    team_start(t, n, limit_ms, reduce, NULL);
}

// Each says it, or something with it, next.
static void expect(struct team *t, const char *what)
{
    char line[1024];
    for (int i = 0; i < t->n; i++) {
        team_hear(t, i, line, sizeof line);
        if (!strstr(line, what))
            fail_msg("member %d says: %s", i, line);
    }
}

static void end(struct team *t)
{
    for (int i = 0; i < t->n; i++)
        assert_int_equal(team_wait(t, i), 0);
}

static void calls_that_begin_slowly_are_waited_for(void **state)
{
    struct team t;
    (void)state;
    begin(&t, MEMBERS, TEAM_LIMIT_MS, "slow 50\n");
    folder_write(folder, "go", "1");
    expect(&t, "made");
    expect(&t, "reduced");
    end(&t);
    assert_int_equal(aborts(), 0);
}

static bool hangs_until_the_limit(struct team *t, int64_t limit_ms, char said[TEAM_LINE])
{
    begin(t, MEMBERS, limit_ms, "");
    if (!team_all_say(t, -1, "made", said))
        return false;
    control("hang\n");
    folder_write(folder, "go", "1");
    return team_all_say(t, -1, "collective 1 waited too long; all ranks have called it", said);
}

static void again_with_twice(struct team *t, int64_t *limit_ms, const char *said)
{
    team_kill(t);
    *limit_ms *= 2;
    if (*limit_ms >= TEAM_LIMIT_MS)
        fail_msg("one says: %s", said);
}

static void a_device_that_never_ends_is_given_up_at_the_limit(void **state)
{
    struct team t;
    char said[TEAM_LINE];
    (void)state;
    for (int64_t limit_ms = SHORT_LIMIT_MS; !hangs_until_the_limit(&t, limit_ms, said);)
        again_with_twice(&t, &limit_ms, said);
    end(&t);
    assert_int_equal(aborts(), MEMBERS);
}

static void an_asynchronous_error_ends_the_wait(void **state)
{
    struct team t;
    (void)state;
    begin(&t, MEMBERS, TEAM_LIMIT_MS, "");
    expect(&t, "made");
    control("hang\nasync 6\n");
    folder_write(folder, "go", "1");
    expect(&t, "nccl: a collective: remote process exited or there was a network error: the stand-in was told to");
    end(&t);
    assert_int_equal(aborts(), MEMBERS);
}

static void an_illegal_address_is_named(void **state)
{
    struct team t;
    (void)state;
    begin(&t, MEMBERS, TEAM_LIMIT_MS, "");
    expect(&t, "made");
    control("stream 700\n");
    folder_write(folder, "go", "1");
    expect(&t, "the GPU: its stream: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    end(&t);
    assert_int_equal(aborts(), MEMBERS);
}

// Its collective is under way on all others, and none of them would ever end by itself.
static void a_member_that_dies_while_a_collective_hangs_frees_the_others(void **state)
{
    struct team t;
    char line[1024];
    (void)state;
    begin(&t, MEMBERS, TEAM_LIMIT_MS, "hang\n");
    expect(&t, "made");
    folder_write(folder, "go", "1");
    kill(t.pids[1], SIGKILL);
    assert_int_equal(team_wait(&t, 1), -SIGKILL);
    for (int i = 0; i < MEMBERS; i += 2) {
        team_hear(&t, i, line, sizeof line);
        if (!strstr(line, "rank 11 was lost"))
            fail_msg("member %d says: %s", i, line);
        assert_int_equal(team_wait(&t, i), 0);
    }
    assert_int_equal(aborts(), MEMBERS - 1); // one that has not begun yet frees its own in the same way
}

// All say what comes of 1 + 1 + 1, and of their mean.
static int reduce_f8(const struct team_member *m, void *ctx)
{
    const char *dtype = ctx;
    struct err err = ERR_INIT;
    cadre_comm *c = team_join(m, &err);
    unsigned char one = strcmp(dtype, "F8_E4M3") == 0 ? 0x38 : 0x3c, in[MEMBERS] = {one, one, one}, sum[1], mean[3];
    char text[32];
    bool reduced = c && cadre_reduce_scatter(c, dtype, in, sum, 1, CADRE_SUM) == CADRE_OK &&
                   cadre_all_reduce(c, dtype, in, mean, MEMBERS, CADRE_MEAN) == CADRE_OK;
    snprintf(text, sizeof text, "sum %02x mean %02x", reduced ? sum[0] : 0, reduced ? mean[2] : 0);
    team_say(m, !c ? err.msg : reduced ? text : cadre_comm_error(c));
    team_say(m, c && cadre_barrier(c) == CADRE_OK ? "and goes on" : "and does not");
    cadre_comm_free(c);
    return 0;
}

static void reduces_f8(const char *version, char *dtype, const char *want)
{
    struct team t;
    folder_clear(folder);
    setenv("NCCL_STAND_IN_VERSION", version, 1);
    team_start(&t, MEMBERS, TEAM_LIMIT_MS, reduce_f8, dtype);
    expect(&t, want);
    expect(&t, "and goes on");
    end(&t);
    unsetenv("NCCL_STAND_IN_VERSION");
}

static void types_of_8_bits_are_reduced_from_2_24_on(void **state)
{
    char e4m3[] = "F8_E4M3", e5m2[] = "F8_E5M2";
    (void)state;
    reduces_f8("22400", e4m3, "sum 44 mean 38");
    reduces_f8("22400", e5m2, "sum 42 mean 3c");
    reduces_f8("22304", e4m3,
               "reduce_scatter: NCCL 2.23.4 of this image does not reduce F8_E4M3: that needs 2.24 or newer");
    reduces_f8("22304", e5m2,
               "reduce_scatter: NCCL 2.23.4 of this image does not reduce F8_E5M2: that needs 2.24 or newer");
}

// On a stream

struct streamed {
    cadre_comm *comm;
    struct device *device;
    void *stream;
    float x[4];
};

static void open_stream(struct streamed *s)
{
    struct err err = ERR_INIT;
    if (device_open(&s->device, &err) < 0 || device_enter(s->device, &err) < 0 ||
        device_stream_new(s->device, &s->stream, &err) < 0)
        abort();
}

static void join_with_stream(const struct team_member *m, struct streamed *s)
{
    struct err err = ERR_INIT;
    struct team_member mine = *m;
    open_stream(s);
    mine.stream = s->stream;
    s->comm = team_join(&mine, &err);
    team_say(m, s->comm ? "made" : err.msg);
    if (!s->comm)
        exit(1);
}

static void close_all(struct streamed *s)
{
    cadre_comm_free(s->comm);
    device_stream_free(s->device, s->stream);
    device_leave(s->device);
    device_close(s->device);
}

static void say_result(const struct team_member *m, const struct streamed *s, cadre_result r)
{
    team_say(m, r == CADRE_OK ? "fine" : cadre_comm_error(s->comm));
}

// The stream is freed after the communicator.
static int reduce_on_a_short_stream(const struct team_member *m)
{
    struct streamed s = {.x = {1, 2, 3, 4}};
    char go[16];
    join_with_stream(m, &s);
    hear_folder("go", go, sizeof go);
    cadre_result r = cadre_all_reduce(s.comm, "F32", s.x, s.x, 4, CADRE_SUM);
    say_result(m, &s, r == CADRE_OK ? cadre_comm_wait(s.comm) : r);
    close_all(&s);
    return 0;
}

// Says how it went, frees its communicator, and ends when that has freed its memory of the GPU. ctx: on a stream.
static int reduce_and_free(const struct team_member *m, void *ctx)
{
    char go[16];
    const bool *on_stream = ctx;
    _cleanup_(free_p) char *scratch = xasprintf("%s/memory.%d.1", folder, (int)getpid());
    assert_int_equal(*on_stream ? reduce_on_a_short_stream(m) : reduce(m, NULL), 0);
    team_say(m, "freed");
    hear_folder("end", go, sizeof go);
    while (access(scratch, F_OK) == 0)
        usleep(1000);
    return 0;
}

// Also if nobody is lost: then ncclCommDestroy() waits.
static void a_gpu_that_hangs_when_a_communicator_ends_holds_nobody_up(void **state)
{
    char line[1024];
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct team t;
        bool on_stream = !lost;
        folder_clear(folder);
        control("");
        team_start(&t, MEMBERS, TEAM_LIMIT_MS, reduce_and_free, &on_stream);
        expect(&t, "made");
        control(lost ? "hang\nend-waits\n" : "end-waits\n");
        folder_write(folder, "go", "1");
        if (lost) {
            kill(t.pids[1], SIGKILL);
            assert_int_equal(team_wait(&t, 1), -SIGKILL);
        }
        for (int i = 0; i < MEMBERS; i += 1 + lost) {
            team_hear(&t, i, line, sizeof line);
            if (!strstr(line, lost ? "rank 11 was lost" : "fine"))
                fail_msg("member %d says: %s", i, line);
            team_hear(&t, i, line, sizeof line);
            assert_string_equal(line, "freed");
        }
        control("");
        folder_write(folder, "end", "1");
        for (int i = 0; i < MEMBERS; i += 1 + lost)
            assert_int_equal(team_wait(&t, i), 0);
    }
}

// ctx: the one that does not call; NULL = all do.
static int reduce_on_a_stream(const struct team_member *m, void *ctx)
{
    struct streamed s = {.x = {1, 2, 3, 4}};
    const int *absent = ctx;
    char how[64];
    struct err err = ERR_INIT;
    join_with_stream(m, &s);
    hear_folder("go", how, sizeof how);
    if (absent && *absent == m->index)
        team_say(m, "fine");
    else
        say_result(m, &s, cadre_all_reduce(s.comm, "F32", s.x, s.x, 4, CADRE_SUM));
    hear_folder("then", how, sizeof how);
    if (strcmp(how, "cuda") == 0) // as the program may wait for its stream
        team_say(m, device_stream_wait(s.device, s.stream, TEAM_LIMIT_MS, NULL, &err) == 0 ? "idle" : err.msg);
    say_result(m, &s, absent && *absent == m->index ? CADRE_OK : cadre_comm_wait(s.comm));
    if (strcmp(how, "read") == 0)
        team_say(m, s.x[3] == 4 * (float)m->n ? "reduced" : "something else");
    hear_folder("end", how, sizeof how);
    close_all(&s);
    return 0;
}

static bool streams_begin(struct team *t, int64_t limit_ms, const char *lines, int *absent, char said[TEAM_LINE])
{
    folder_clear(folder);
    control("");
    team_start(t, MEMBERS, limit_ms, reduce_on_a_stream, absent);
    if (!team_all_say(t, -1, "made", said))
        return false;
    control(lines);
    folder_write(folder, "go", "1");
    return true;
}

static void begin_streams(struct team *t, int64_t limit_ms, const char *lines, int *absent)
{
    char said[TEAM_LINE];
    if (!streams_begin(t, limit_ms, lines, absent, said))
        fail_msg("one says: %s", said);
}

static void calls_on_a_stream_do_not_wait_for_the_device(void **state)
{
    struct team t;
    (void)state;
    begin_streams(&t, TEAM_LIMIT_MS, "hang\n", NULL);
    expect(&t, "fine"); // the device stands still
    control("");
    folder_write(folder, "then", "read");
    expect(&t, "fine");
    expect(&t, "reduced");
    folder_write(folder, "end", "1");
    end(&t);
    assert_int_equal(aborts(), 0);
}

static bool one_is_waited_for(struct team *t, int64_t limit_ms, int *absent, char said[TEAM_LINE])
{
    if (!streams_begin(t, limit_ms, "", absent, said) || !team_all_say(t, -1, "fine", said))
        return false;
    folder_write(folder, "then", "wait");
    return team_all_say(t, *absent, "wait: collective 1 waited too long; rank 11 has not called it", said);
}

static void who_has_not_called_is_named_at_the_limit_of_the_wait(void **state)
{
    struct team t;
    int absent = 1;
    char said[TEAM_LINE];
    (void)state;
    for (int64_t limit_ms = SHORT_LIMIT_MS; !one_is_waited_for(&t, limit_ms, &absent, said);)
        again_with_twice(&t, &limit_ms, said);
    team_hear(&t, absent, said, sizeof said);
    assert_string_equal(said, "fine");
    folder_write(folder, "end", "1");
    end(&t);
    assert_int_equal(aborts(), MEMBERS);
}

static void an_error_on_a_stream_is_what_the_wait_says(void **state)
{
    struct team t;
    (void)state;
    begin_streams(&t, TEAM_LIMIT_MS, "hang\n", NULL);
    expect(&t, "fine");
    control("hang\nasync 6\n");
    folder_write(folder, "then", "wait");
    expect(&t, "nccl: its stream: remote process exited or there was a network error: the stand-in was told to");
    folder_write(folder, "end", "1");
    end(&t);
    assert_int_equal(aborts(), MEMBERS);
}

// Also where the program waits for its stream by itself: NCCL's kernels on it would wait for ever.
static void a_member_that_dies_frees_the_streams_of_the_others(void **state)
{
    static const char *const hows[] = {"cuda", "wait"};
    char line[1024];
    (void)state;
    for (size_t h = 0; h < ARRAY_LEN(hows); h++) {
        struct team t;
        int absent = 1;
        begin_streams(&t, TEAM_LIMIT_MS, "", &absent);
        expect(&t, "fine");
        folder_write(folder, "then", hows[h]);
        kill(t.pids[absent], SIGKILL);
        assert_int_equal(team_wait(&t, absent), -SIGKILL);
        for (int i = 0; i < MEMBERS; i += 2) {
            if (h == 0) {
                team_hear(&t, i, line, sizeof line);
                assert_string_equal(line, "idle");
            }
            team_hear(&t, i, line, sizeof line);
            if (!strstr(line, "wait: rank 11 was lost"))
                fail_msg("member %d says: %s", i, line);
        }
        folder_write(folder, "end", "1");
        for (int i = 0; i < MEMBERS; i += 2)
            assert_int_equal(team_wait(&t, i), 0);
        assert_int_equal(aborts(), MEMBERS - 1);
    }
}

static void a_back_end_without_streams_refuses_one(void **state)
{
    const char *const names[] = {"rank 0", "rank 1"};
    (void)state;
    for (int n = 1; n <= 2; n++) {
        struct err err = ERR_INIT;
        int links[] = {-1, -1};
        cadre_comm *c;
        const struct comm_config config = {
            .backend = "gloo", .names = names, .n = n, .links = links, .limit_ms = 1, .stream = links};
        assert_int_equal(comm_new(&config, &c, &err), ERR_INVALID);
        assert_null(c);
        assert_string_equal(err.msg, "the back end gloo moves memory of the host and has no streams: set none, or use "
                                     "the back end nccl");
    }
}

static int copy_and_reduce(const struct streamed *s, cadre_comm *c)
{
    struct err err = ERR_INIT;
    float x[] = {1, 2}, y[] = {0, 0};
    void *in = NULL, *out = NULL;
    bool done = device_alloc(s->device, sizeof x, &in, &err) == 0 &&
                device_alloc(s->device, sizeof x, &out, &err) == 0 &&
                device_copy(s->device, in, x, sizeof x, s->stream, &err) == 0 &&
                cadre_all_reduce(c, "F32", in, out, 2, CADRE_SUM) == CADRE_OK && cadre_comm_wait(c) == CADRE_OK &&
                device_copy(s->device, y, out, sizeof y, s->stream, &err) == 0 &&
                device_stream_wait(s->device, s->stream, TEAM_LIMIT_MS, NULL, &err) == 0;
    device_free(s->device, in);
    device_free(s->device, out);
    return done && memcmp(x, y, sizeof x) == 0 ? 0 : 1;
}

// Memory of the device cannot be read or written here.
static int reduce_alone(const struct team_member *m, void *ctx)
{
    struct streamed s = {.device = NULL};
    (void)ctx;
    join_with_stream(m, &s);
    int r = copy_and_reduce(&s, s.comm);
    close_all(&s);
    return r;
}

// The program's stream has something to do that never ends, and the communicator goes before it.
static int free_beside_a_kernel(const struct team_member *m, void *ctx)
{
    struct streamed s = {.device = NULL};
    struct err err = ERR_INIT;
    char go[16];
    void *in, *out;
    (void)ctx;
    join_with_stream(m, &s);
    if (device_alloc(s.device, 8, &out, &err) < 0 || device_pin(s.device, 8, &in, &err) < 0)
        return 1;
    hear_folder("go", go, sizeof go);
    if (device_copy(s.device, out, in, 8, s.stream, &err) < 0)
        return 1;
    cadre_comm_free(s.comm);
    team_say(m, "freed");
    hear_folder("end", go, sizeof go);
    device_free(s.device, out);
    device_unpin(s.device, in);
    s.comm = NULL;
    close_all(&s);
    return 0;
}

static atomic_bool kernel_ends;

static bool is_over(void *ctx)
{
    (void)ctx;
    return atomic_load(&kernel_ends);
}

// The kernel is on a stream that the communicator knows nothing of. Freeing memory waits for it.
static int free_beside_a_kernel_elsewhere(const struct team_member *m, void *ctx)
{
    struct streamed s = {.device = NULL};
    struct err err = ERR_INIT;
    void (*put)(void *stream, bool (*turn)(void *ctx), void *ctx), *stream;
    _cleanup_(free_p) char *scratch = xasprintf("%s/memory.%d.1", folder, (int)getpid());
    (void)ctx;
    join_with_stream(m, &s);
    void *symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "stand_in_put");
    memcpy(&put, &symbol, sizeof put);
    if (device_stream_new_apart(s.device, &stream, &err) < 0 || access(scratch, F_OK) != 0)
        return 1;
    put(stream, is_over, NULL);
    cadre_comm_free(s.comm);
    team_say(m, access(scratch, F_OK) == 0 ? "freed" : "gone too early");
    atomic_store(&kernel_ends, true);
    while (access(scratch, F_OK) == 0)
        usleep(1000);
    device_stream_free(s.device, stream);
    s.comm = NULL;
    close_all(&s);
    return 0;
}

static void a_kernel_elsewhere_does_not_either(void **state)
{
    struct team t;
    (void)state;
    folder_clear(folder);
    control("");
    team_start(&t, 1, TEAM_LIMIT_MS, free_beside_a_kernel_elsewhere, NULL);
    expect(&t, "made");
    expect(&t, "freed");
    end(&t);
}

static void a_kernel_that_never_ends_does_not_hold_up_the_end_of_a_communicator(void **state)
{
    struct team t;
    (void)state;
    folder_clear(folder);
    control("");
    team_start(&t, 1, TEAM_LIMIT_MS, free_beside_a_kernel, NULL);
    expect(&t, "made");
    control("hang\n");
    folder_write(folder, "go", "1");
    expect(&t, "freed");
    control("");
    folder_write(folder, "end", "1");
    end(&t);
}

static void one_member_uses_the_device_too(void **state)
{
    struct team t;
    (void)state;
    folder_clear(folder);
    team_start(&t, 1, TEAM_LIMIT_MS, reduce_alone, NULL);
    expect(&t, "made");
    end(&t);
}

static void one_gpu_for_two_members_is_refused_with_its_name(void **state)
{
    struct team t;
    (void)state;
    begin(&t, 2, TEAM_LIMIT_MS, "one-gpu\n");
    expect(&t, "rank 10 and rank 11 have the same GPU, GPU-00000000-0000-0000-0000-000000000000: NCCL needs one for");
    end(&t);
}

// Member 1 has another image.
static int join_with_another_version(const struct team_member *m, void *ctx)
{
    struct err err = ERR_INIT;
    (void)ctx;
    if (m->index == 1)
        setenv("NCCL_STAND_IN_VERSION", "22403", 1);
    cadre_comm *c = team_join(m, &err);
    team_say(m, c ? "made" : err.msg);
    cadre_comm_free(c);
    return 0;
}

static void different_versions_of_nccl_are_refused_at_once(void **state)
{
    struct team t;
    (void)state;
    folder_clear(folder);
    team_start(&t, MEMBERS, TEAM_LIMIT_MS, join_with_another_version, NULL);
    expect(&t, "all members need the same version of NCCL in their images: rank 10, rank 12: NCCL 2.23.4; rank 11: "
               "NCCL 2.24.3");
    end(&t);
    assert_int_equal(aborts(), 0); // NCCL was not asked
}

static void a_rank_without_a_gpu_says_so(void **state)
{
    struct team t;
    (void)state;
    begin(&t, 2, TEAM_LIMIT_MS, "gpus -1\n");
    expect(&t, "NVIDIA's driver sees no GPU here: was this worker given one?");
    end(&t);
    setenv("CADRE_DEVICE", "3", 1);
    begin(&t, 2, TEAM_LIMIT_MS, "gpus 2\n");
    expect(&t, "this rank has no GPU: CADRE_DEVICE is 3, and it sees 2");
    end(&t);
    unsetenv("CADRE_DEVICE");
}

static void calls_that_block_are_refused(void **state)
{
    struct team t;
    (void)state;
    setenv("NCCL_COMM_BLOCKING", "1", 1);
    begin(&t, 2, TEAM_LIMIT_MS, "");
    expect(&t, "calls of NCCL would wait without a limit: remove NCCL_COMM_BLOCKING from the environment");
    end(&t);
    unsetenv("NCCL_COMM_BLOCKING");
}

static void making_it_can_fail(void **state)
{
    struct team t;
    (void)state;
    begin(&t, 2, TEAM_LIMIT_MS, "nccl-init 1\n");
    expect(&t, "nccl: making a communicator: unhandled cuda error: the stand-in was told to");
    end(&t);
    begin(&t, 2, TEAM_LIMIT_MS, "alloc 2\n");
    expect(&t, "of its 0 bytes are free: CUDA_ERROR_OUT_OF_MEMORY (2)");
    end(&t);
    char said[TEAM_LINE];
    int64_t limit_ms = SHORT_LIMIT_MS;
    for (begin(&t, 2, limit_ms, "slow 1000000000\n");
         !team_all_say(&t, -1, "nccl: making a communicator: it waited too long", said);
         begin(&t, 2, limit_ms, "slow 1000000000\n"))
        again_with_twice(&t, &limit_ms, said);
    end(&t);
}

// Prints why a communicator of two cannot be made, without the other one.
static int make_alone(void)
{
    const char *const names[] = {"rank 0", "rank 1"};
    int links[] = {-1, -1};
    cadre_comm *c;
    struct err err = ERR_INIT;
    const struct comm_config config = {.backend = "nccl", .names = names, .n = 2, .links = links, .limit_ms = 1};
    if (comm_new(&config, &c, &err) == 0)
        cadre_comm_free(c);
    puts(err.msg);
    return 0;
}

// says_without(FOLDERS, WHAT): without the stand-ins, with the back end and with those folders.
static void says_without(const char *folders, const char *what)
{
    const char *all = getenv("LD_LIBRARY_PATH"); // the back end, the stand-ins
    char path[1024], out[1024];
    assert_non_null(all);
    snprintf(path, sizeof path, "%s:%.*s", folders, (int)strcspn(all, ":"), all);
    again("--make", path, out, sizeof out);
    if (!strstr(out, what))
        fail_msg("it says: %s", out);
}

static void an_image_without_nccl_or_with_an_old_one_is_told_what_it_needs(void **state)
{
    (void)state;
    folder_clear(folder);
    again_make_empty_library(folder, "libnccl.so.2");
    says_without(folder, "libnccl.so.2 of this image has no ncclGetVersion: Cadre needs NCCL 2.14 or newer");
    folder_clear(folder);
    char out[1024];
    again("--find", folder, out, sizeof out);
    if (strcmp(out, "found\n") == 0) // of the system
        skip();
    says_without(folder,
                 "NCCL is not in this image: libnccl.so.2: cannot open shared object file: No such file or "
                 "directory: add NCCL 2.14 or newer, which images of CUDA and PyTorch have, or use the back end "
                 "gloo");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--find") == 0)
        return puts(dlopen("libnccl.so.2", RTLD_NOW) ? "found" : "not found") < 0;
    if (argc > 1)
        return make_alone();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_begin_slowly_are_waited_for),
        cmocka_unit_test(a_device_that_never_ends_is_given_up_at_the_limit),
        cmocka_unit_test(an_asynchronous_error_ends_the_wait),
        cmocka_unit_test(an_illegal_address_is_named),
        cmocka_unit_test(a_member_that_dies_while_a_collective_hangs_frees_the_others),
        cmocka_unit_test(a_gpu_that_hangs_when_a_communicator_ends_holds_nobody_up),
        cmocka_unit_test(types_of_8_bits_are_reduced_from_2_24_on),
        cmocka_unit_test(calls_on_a_stream_do_not_wait_for_the_device),
        cmocka_unit_test(who_has_not_called_is_named_at_the_limit_of_the_wait),
        cmocka_unit_test(an_error_on_a_stream_is_what_the_wait_says),
        cmocka_unit_test(a_member_that_dies_frees_the_streams_of_the_others),
        cmocka_unit_test(a_back_end_without_streams_refuses_one),
        cmocka_unit_test(one_member_uses_the_device_too),
        cmocka_unit_test(a_kernel_that_never_ends_does_not_hold_up_the_end_of_a_communicator),
        cmocka_unit_test(a_kernel_elsewhere_does_not_either),
        cmocka_unit_test(one_gpu_for_two_members_is_refused_with_its_name),
        cmocka_unit_test(different_versions_of_nccl_are_refused_at_once),
        cmocka_unit_test(a_rank_without_a_gpu_says_so),
        cmocka_unit_test(calls_that_block_are_refused),
        cmocka_unit_test(making_it_can_fail),
        cmocka_unit_test(an_image_without_nccl_or_with_an_old_one_is_told_what_it_needs),
    };
    team_backend = "nccl";
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
