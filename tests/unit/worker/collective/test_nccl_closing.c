// SPDX-License-Identifier: Apache-2.0
// The end of a communicator of NCCL, with functions of this test in the place of NCCL.
#include "worker/collective/nccl_closing.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/mem.h"
#include "tests/unit/support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static struct device *device;
static int n_aborts, n_destroys;
static atomic_bool hangs, then_hangs;
static atomic_int n_then, abort_us;

static void wait_for_gpu(const atomic_bool *waits)
{
    while (atomic_load(waits))
        usleep(1000);
}

static int abort_comm(void *comm)
{
    n_aborts += comm != NULL;
    usleep((useconds_t)atomic_load(&abort_us));
    wait_for_gpu(&hangs);
    return NCCL_OK;
}

static int destroy_comm(void *comm)
{
    n_destroys += comm != NULL;
    wait_for_gpu(&hangs);
    return NCCL_OK;
}

static const struct nccl_library library = {.abort = abort_comm, .destroy = destroy_comm};

static void then(void *ctx)
{
    wait_for_gpu(&then_hangs);
    if (ctx == &library)
        atomic_fetch_add(&n_then, 1);
}

static struct nccl_closing *begin(bool empty, bool aborts)
{
    static int thing;
    struct nccl_comm comm = {&library, empty ? NULL : &thing};
    n_aborts = n_destroys = 0;
    atomic_store(&n_then, 0);
    struct nccl_closing *n = nccl_closing_new(&comm, aborts, device);
    assert_null(comm.handle);
    return n;
}

static void end(struct nccl_closing *n)
{
    nccl_closing_end(n, then, (void *)(uintptr_t)&library);
}

static void a_communicator_is_aborted_or_destroyed_and_its_owner_goes_on(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < 2; aborts++) {
        struct nccl_closing *n = begin(false, aborts);
        assert_true(nccl_closing_wait(n));
        assert_int_equal(atomic_load(&n_then), 0);
        end(n);
        assert_int_equal(atomic_load(&n_then), 1);
        assert_int_equal(n_aborts, aborts);
        assert_int_equal(n_destroys, !aborts);
    }
}

static void an_empty_communicator_is_left_alone(void **state)
{
    (void)state;
    end(begin(true, true));
    assert_int_equal(atomic_load(&n_then), 1);
    assert_int_equal(n_aborts, 0);
}

static void the_owner_does_not_wait_for_a_gpu_that_hangs(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < 2; aborts++) {
        atomic_store(&hangs, true);
        struct nccl_closing *n = begin(false, aborts);
        assert_false(nccl_closing_wait(n));
        assert_false(nccl_closing_wait(n)); // at once
        end(n);
        assert_int_equal(atomic_load(&n_then), 0);
        atomic_store(&hangs, false);
        while (!atomic_load(&n_then))
            usleep(1000);
    }
}

// When this thread waited first, and until when it wanted to wait last.
static _Thread_local int64_t first_wait_ms, last_until_ms;

bool __real_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms);
bool __wrap_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms);
bool __wrap_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms)
{
    if (!first_wait_ms)
        first_wait_ms = clock_mono_ms(&clock_system);
    last_until_ms = mono_ms;
    return __real_cond_wait_until(c, mutex, mono_ms);
}

// NCCL needs a part of the time, and the memory gets the rest.
static void memory_that_the_gpu_still_uses_does_not_hold_up_its_owner(void **state)
{
    (void)state;
    int64_t begun = clock_mono_ms(&clock_system);
    first_wait_ms = 0;
    atomic_store(&then_hangs, true);
    atomic_store(&abort_us, NCCL_CLOSING_MS / 2 * 1000);
    end(begin(false, true));
    assert_int_equal(atomic_load(&n_then), 0);
    assert_true(clock_mono_ms(&clock_system) - begun >= NCCL_CLOSING_MS);
    assert_true(last_until_ms <= first_wait_ms + NCCL_CLOSING_MS);
    atomic_store(&then_hangs, false);
    while (!atomic_load(&n_then))
        usleep(1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_communicator_is_aborted_or_destroyed_and_its_owner_goes_on),
        cmocka_unit_test(an_empty_communicator_is_left_alone),
        cmocka_unit_test(the_owner_does_not_wait_for_a_gpu_that_hangs),
        cmocka_unit_test(memory_that_the_gpu_still_uses_does_not_hold_up_its_owner),
    };
    struct err err = ERR_INIT;
    char folder[64];
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    if (device_open(&device, &err) < 0)
        return 1;
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(device);
    folder_free(folder);
    return r;
}
