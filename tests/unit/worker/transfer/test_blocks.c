// SPDX-License-Identifier: Apache-2.0
// Weights on a GPU that hangs in the middle of a transfer. The driver is a stand-in, in the library path
// (cuda_stand_in.c).
#include "worker/transfer/back_buffer.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/mem.h"
#include "tests/unit/support/folder.h"
#include "tests/unit/worker/device/cuda_stand_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEN ((size_t)9 << 20) // more than the pinned memory of a copier
enum { SHORT_MS = 50, LONG_MS = 600 * 1000 };

static char folder[64];

struct fixture {
    struct gpu_copier gpu;
    struct block block;
    struct blocks blocks;
    struct back_buffer *back_buffer;
    char *host;
};

static void ok(int r, const struct err *err)
{
    if (r < 0)
        fail_msg("%s", err->msg);
}

static void set_time(struct fixture *f, int64_t ms)
{
    f->gpu.until_ms = clock_mono_ms(&clock_system) + ms;
}

static void begin(struct fixture *f)
{
    struct err err = ERR_INIT;
    folder_write(folder, "control", "");
    ok(device_open(&f->gpu.device, &err), &err);
    ok(device_enter(f->gpu.device, &err), &err);
    ok(copier_new(f->gpu.device, false, &f->gpu.copier, &err), &err);
    f->gpu.sweeper = sweeper_new();
    f->block = (struct block){.len = LEN, .on_device = true};
    ok(device_alloc(f->gpu.device, LEN, &f->block.data, &err), &err);
    f->blocks = (struct blocks){&f->block, 1, &f->gpu};
    f->back_buffer = back_buffer_new(true);
    f->host = xcalloc(1, LEN);
    ok(back_buffer_lay(f->back_buffer, &f->blocks, &err), &err);
}

static void end(struct fixture *f)
{
    struct err err = ERR_INIT;
    back_buffer_rest(f->back_buffer, &f->blocks);
    back_buffer_free(f->back_buffer);
    assert_true(sweeper_free(f->gpu.sweeper));
    device_free(f->gpu.device, f->block.data);
    ok(copier_free(f->gpu.copier, LONG_MS, &err), &err);
    device_leave(f->gpu.device);
    device_close(f->gpu.device);
    free(f->host);
}

static void is_over(int r, struct err *err)
{
    assert_int_equal(r, ERR_TIMEOUT);
    assert_non_null(strstr(err->msg, "the time of the transfer is over: the GPU was not done within "));
    *err = ERR_INIT;
}

static void no_copy_waits_longer_than_the_transfer(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    begin(&f);
    const struct pick pick = {0, 0, f.host, LEN};
    folder_write(folder, "control", "hang\n");
    set_time(&f, SHORT_MS);
    is_over(blocks_put(&f.blocks, &pick, 1, &err), &err);
    is_over(blocks_download(&f.blocks, 0, 0, f.host, 1, &err), &err);
    is_over(blocks_settle(&f.blocks, &err), &err);
    folder_write(folder, "control", "");
    set_time(&f, LONG_MS);
    ok(blocks_put(&f.blocks, &pick, 1, &err), &err);
    ok(blocks_settle(&f.blocks, &err), &err);
    end(&f);
}

static int allocated(void)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (const struct dirent *e; (e = readdir(d));)
        n += strncmp(e->d_name, "memory.", 7) == 0;
    closedir(d);
    return n;
}

static void is_freed(struct fixture *f)
{
    struct err err = ERR_INIT;
    while (allocated() > 1)
        usleep(1000);
    ok(back_buffer_lay(f->back_buffer, &f->blocks, &err), &err);
    assert_int_equal(allocated(), 2);
}

// The driver would wait for ever with freeing it.
static void memory_that_a_gpu_may_still_write_to_is_freed_when_it_is_done(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    begin(&f);
    folder_write(folder, "control", "hang\n");
    set_time(&f, SHORT_MS);
    is_over(blocks_download(&f.blocks, 0, 0, f.host, 1, &err), &err);
    back_buffer_rest(f.back_buffer, &f.blocks);
    assert_null(back_buffer_at(f.back_buffer, 0));
    assert_int_equal(allocated(), 2);
    folder_write(folder, "control", "");
    set_time(&f, LONG_MS);
    is_freed(&f);
    end(&f);
}

// A kernel of the program. The transfer does not know its stream.
static atomic_bool kernel_over;

static bool kernel_is_over(void *ctx)
{
    (void)ctx;
    return atomic_load(&kernel_over);
}

static void *begin_with_kernel(struct fixture *f)
{
    struct err err = ERR_INIT;
    void *stream;
    begin(f);
    ok(device_stream_new_apart(f->gpu.device, &stream, &err), &err);
    atomic_store(&kernel_over, false);
    stand_in_put(stream, kernel_is_over, NULL);
    return stream;
}

static void end_with_kernel(struct fixture *f, void *stream)
{
    atomic_store(&kernel_over, true);
    is_freed(f);
    device_stream_free(f->gpu.device, stream);
    end(f);
}

static void a_kernel_of_the_program_that_never_ends_does_not_hold_up_the_end(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    void *stream = begin_with_kernel(&f);
    set_time(&f, LONG_MS);
    ok(blocks_download(&f.blocks, 0, 0, f.host, 1, &err), &err);
    back_buffer_rest(f.back_buffer, &f.blocks);
    assert_int_equal(allocated(), 2);
    end_with_kernel(&f, stream);
}

// When this thread waited first, and until when it wanted to wait; 0 = it has not waited.
static _Thread_local int64_t waited_at_ms, waited_until_ms;

bool __real_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms);
bool __wrap_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms);
bool __wrap_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms)
{
    if (!waited_at_ms) {
        waited_at_ms = clock_mono_ms(&clock_system);
        waited_until_ms = mono_ms;
    }
    return __real_cond_wait_until(c, mutex, mono_ms);
}

// Rooms that are still being freed leave no room for the next ones.
static void rooms_that_are_being_freed_are_waited_for_no_longer_than_the_transfer(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    void *stream = begin_with_kernel(&f);
    folder_write(folder, "control", "memory 150000\n");
    back_buffer_rest(f.back_buffer, &f.blocks);
    set_time(&f, SHORT_MS);
    waited_at_ms = 0;
    assert_int_equal(back_buffer_lay(f.back_buffer, &f.blocks, &err), ERR_NOMEM);
    assert_int_not_equal(waited_at_ms, 0);
    assert_true(waited_until_ms <= waited_at_ms + SHORT_MS);
    folder_write(folder, "control", "");
    end_with_kernel(&f, stream);
}

// A decision is carried out, even if the time of the transfer has ended meanwhile.
static void new_weights_that_were_decided_for_are_taken_late(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    size_t copied;
    (void)state;
    begin(&f);
    folder_write(folder, "control", "lag 100000\n");
    set_time(&f, 0);
    ok(back_buffer_swap(f.back_buffer, &f.blocks, &copied, &err), &err);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_copy_waits_longer_than_the_transfer),
        cmocka_unit_test(memory_that_a_gpu_may_still_write_to_is_freed_when_it_is_done),
        cmocka_unit_test(a_kernel_of_the_program_that_never_ends_does_not_hold_up_the_end),
        cmocka_unit_test(rooms_that_are_being_freed_are_waited_for_no_longer_than_the_transfer),
        cmocka_unit_test(new_weights_that_were_decided_for_are_taken_late),
    };
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
