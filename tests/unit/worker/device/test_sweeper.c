// SPDX-License-Identifier: Apache-2.0
// Memory of the device that another thread frees, over the stand-in for the driver.
#include "worker/device/sweeper.h"

#include "tests/unit/support/folder.h"
#include "tests/unit/worker/device/cuda_stand_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>

enum { SHORT_MS = 50, LONG_MS = 600 * 1000, ROOM = 1000 };

static char folder[64];
static struct device *device;
static struct sweeper *sweeper;
static atomic_bool kernel_ends;

static void ok(int r, const struct err *err)
{
    if (r < 0)
        fail_msg("%s", err->msg);
}

static int setup(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    folder_write(folder, "control", "memory 1000\n");
    ok(device_open(&device, &err), &err);
    ok(device_enter(device, &err), &err);
    sweeper = sweeper_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    device_leave(device);
    device_close(device);
    return 0;
}

static void *alloc(size_t size)
{
    struct err err = ERR_INIT;
    void *memory;
    ok(sweeper_alloc(sweeper, device, size, LONG_MS, &memory, &err), &err);
    return memory;
}

static bool is_over(void *ctx)
{
    return atomic_load((atomic_bool *)ctx);
}

static void begin_kernel(void)
{
    atomic_store(&kernel_ends, false);
    stand_in_put(NULL, is_over, &kernel_ends);
}

static void memory_that_is_dropped_is_freed(void **state)
{
    (void)state;
    assert_true(sweeper_wait(sweeper, 0));
    for (int i = 0; i < 3; i++)
        sweeper_drop(sweeper, device, alloc(ROOM)); // all of it, so each one waits for the last one
    sweeper_drop(sweeper, device, NULL);
    assert_true(sweeper_wait(sweeper, LONG_MS));
    assert_true(sweeper_free(sweeper));
}

static void too_much_is_refused_at_once_if_nothing_is_being_freed(void **state)
{
    struct err err = ERR_INIT;
    void *memory;
    (void)state;
    assert_int_equal(sweeper_alloc(sweeper, device, ROOM + 1, LONG_MS, &memory, &err), ERR_NOMEM);
    assert_true(sweeper_free(sweeper));
}

static void a_kernel_that_never_ends_holds_up_nobody(void **state)
{
    (void)state;
    void *memory = alloc(ROOM);
    begin_kernel();
    sweeper_drop(sweeper, device, memory);
    assert_false(sweeper_wait(sweeper, SHORT_MS));
    atomic_store(&kernel_ends, true);
    sweeper_drop(sweeper, device, alloc(ROOM)); // waits for the memory
    assert_true(sweeper_wait(sweeper, LONG_MS));
    assert_true(sweeper_free(sweeper));
}

static void after_the_end_memory_stays(void **state)
{
    struct err err = ERR_INIT;
    void *memory;
    (void)state;
    void *first = alloc(ROOM);
    sweeper_close(sweeper);
    sweeper_drop(sweeper, device, first);
    assert_int_equal(sweeper_alloc(sweeper, device, ROOM, LONG_MS, &memory, &err), ERR_NOMEM);
    assert_true(sweeper_free(sweeper));
    device_free(device, first);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(memory_that_is_dropped_is_freed),
        T(too_much_is_refused_at_once_if_nothing_is_being_freed),
        T(a_kernel_that_never_ends_holds_up_nobody),
        T(after_the_end_memory_stays),
    };
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
