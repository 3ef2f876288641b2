// SPDX-License-Identifier: Apache-2.0
// Copies through pinned memory.
#include "worker/device/copier.h"

#include "common/base/mem.h"
#include "tests/unit/support/folder.h"
#include "worker/device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define BIG (((size_t)9 << 20) + 5) // several pieces, the last one short

static char folder[64];

struct fixture {
    struct device *device;
    struct copier *copier;
    void *memory;
    char *in, *out;
};

static void ok(int r, const struct err *err)
{
    if (r < 0)
        fail_msg("%s", err->msg);
}

static void begin(struct fixture *f, const char *control)
{
    struct err err = ERR_INIT;
    folder_clear(folder);
    folder_write(folder, "control", control);
    ok(device_open(&f->device, &err), &err);
    ok(device_enter(f->device, &err), &err);
    ok(copier_new(f->device, false, &f->copier, &err), &err);
    ok(device_alloc(f->device, BIG, &f->memory, &err), &err);
    f->in = xmalloc(BIG);
    f->out = xcalloc(1, BIG);
    for (size_t i = 0; i < BIG; i++)
        f->in[i] = (char)(i * 31 >> 9);
}

static void end(struct fixture *f)
{
    struct err err = ERR_INIT;
    ok(copier_free(f->copier, DEVICE_NO_LIMIT, &err), &err);
    device_free(f->device, f->memory);
    device_leave(f->device);
    device_close(f->device);
    free(f->in);
    free(f->out);
}

// With a device that lags behind, memory that is used again too early would hold other bytes.
static void there_and_back(const char *control)
{
    struct fixture f;
    struct err err = ERR_INIT;
    begin(&f, control);
    ok(copier_upload(f.copier, f.memory, f.in, BIG, DEVICE_NO_LIMIT, NULL, &err), &err);
    memset(f.in, 0, 1000); // the caller's again
    ok(copier_download(f.copier, f.out, f.memory, BIG, DEVICE_NO_LIMIT, NULL, &err), &err);
    for (size_t i = 0; i < BIG; i++)
        if (f.out[i] != (char)(i * 31 >> 9))
            fail_msg("byte %zu is %d", i, f.out[i]);
    end(&f);
}

static void bytes_come_back_as_they_were(void **state)
{
    (void)state;
    there_and_back("");
    there_and_back("lag 3000\n");
}

static void small_copies_that_follow_each_other_do_not_mix(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    begin(&f, "lag 500\n");
    for (size_t i = 0; i < 50; i++) {
        memset(f.in, (int)i, 100);
        ok(copier_upload(f.copier, (char *)f.memory + i * 100, f.in, 100, DEVICE_NO_LIMIT, NULL, &err), &err);
    }
    ok(copier_download(f.copier, f.out, f.memory, 5000, DEVICE_NO_LIMIT, NULL, &err), &err);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(f.out[i], i / 100);
    end(&f);
}

static void a_call_that_is_canceled_waits_no_longer(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    atomic_bool canceled = true;
    (void)state;
    begin(&f, "hang\n");
    assert_int_equal(copier_upload(f.copier, f.memory, f.in, BIG, DEVICE_NO_LIMIT, &canceled, &err), ERR_CANCELED);
    assert_int_equal(copier_download(f.copier, f.out, f.memory, 10, DEVICE_NO_LIMIT, &canceled, &err), ERR_CANCELED);
    assert_int_equal(copier_wait(f.copier, DEVICE_NO_LIMIT, &canceled, &err), ERR_CANCELED);
    folder_write(folder, "control", "");
    end(&f);
}

static void hangs(int r, const struct err *err)
{
    assert_int_equal(r, ERR_TIMEOUT);
    assert_non_null(strstr(err->msg, " ms: a kernel on it may never end, or it hangs: 'kubectl cadre stack' shows"));
}

static void a_device_that_hangs_is_waited_for_as_long_as_was_said(void **state)
{
    enum { SHORT_MS = 20, LONG_MS = 600 * 1000 };
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    begin(&f, "hang\n");
    hangs(copier_upload(f.copier, f.memory, f.in, BIG, SHORT_MS, NULL, &err), &err);
    hangs(copier_download(f.copier, f.out, f.memory, 10, SHORT_MS, NULL, &err), &err);
    hangs(copier_wait(f.copier, SHORT_MS, NULL, &err), &err);
    folder_write(folder, "control", "lag 3000\n"); // it goes on
    ok(copier_download(f.copier, f.out, f.memory, 10, LONG_MS, NULL, &err), &err);
    end(&f);
}

static void what_a_device_that_hangs_uses_is_not_freed(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    begin(&f, "hang\n");
    ok(copier_upload(f.copier, f.memory, f.in, 10, DEVICE_NO_LIMIT, NULL, &err), &err);
    hangs(copier_free(f.copier, 20, &err), &err);
    f.copier = NULL;
    folder_write(folder, "control", "");
    end(&f);
}

static void pinned_memory_that_is_short_fails_the_copy(void **state)
{
    struct fixture f;
    struct err err = ERR_INIT;
    (void)state;
    begin(&f, "pin 2\n");
    assert_int_equal(copier_upload(f.copier, f.memory, f.in, BIG, DEVICE_NO_LIMIT, NULL, &err), ERR_NOMEM);
    assert_string_equal(err.msg, "the GPU: pinned memory of the host: CUDA_ERROR_OUT_OF_MEMORY (2)");
    folder_write(folder, "control", "");
    ok(copier_upload(f.copier, f.memory, f.in, BIG, DEVICE_NO_LIMIT, NULL, &err), &err);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back_as_they_were),
        cmocka_unit_test(small_copies_that_follow_each_other_do_not_mix),
        cmocka_unit_test(a_call_that_is_canceled_waits_no_longer),
        cmocka_unit_test(a_device_that_hangs_is_waited_for_as_long_as_was_said),
        cmocka_unit_test(pinned_memory_that_is_short_fails_the_copy),
        cmocka_unit_test(what_a_device_that_hangs_uses_is_not_freed),
    };
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
