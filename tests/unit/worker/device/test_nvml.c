// SPDX-License-Identifier: Apache-2.0
// Reports of the driver about GPUs. The driver is a stand-in, in its library path (nvml_stand_in.c).
#include "worker/device/nvml.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "tests/unit/support/again.h"
#include "tests/unit/support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 600 * 1000, OLD_WAIT_MS = 100 };

static char control[64];

static void driver_says(const char *lines)
{
    char part[80];
    snprintf(part, sizeof part, "%s.part", control);
    FILE *f = fopen(part, "we");
    assert_true(fputs(lines, f) >= 0);
    fclose(f);
    assert_int_equal(rename(part, control), 0);
}

static struct nvml *open_nvml(void)
{
    struct err err = ERR_INIT;
    struct nvml *n = nvml_open(&err);
    if (!n)
        fail_msg("%s", err.msg);
    return n;
}

static const struct gpu *read_all(struct nvml *n, size_t count)
{
    size_t found;
    const struct gpu *gpus = nvml_read(n, &found);
    assert_int_equal(found, count);
    return gpus;
}

static void all_gpus_are_told_with_what_they_say(void **state)
{
    (void)state;
    driver_says("gpu GPU-a H200 300 41 2 0 ok 17 312500\ngpu GPU-b L4 0 30 0 0 no-ecc\n");
    struct nvml *n = open_nvml();
    const struct gpu *g = read_all(n, 2);
    assert_string_equal(g[0].uuid, "GPU-a");
    assert_string_equal(g[0].name, "H200");
    assert_int_equal(g[0].values[GPU_MEMORY_BYTES], 1000);
    assert_int_equal(g[0].values[GPU_USED_BYTES], 300);
    assert_int_equal(g[0].values[GPU_TEMPERATURE], 41);
    assert_int_equal(g[0].values[GPU_UTILIZATION], 7);
    assert_int_equal(g[0].values[GPU_XID], 0);
    assert_int_equal(g[0].values[GPU_ECC_UNCORRECTED], 2);
    assert_int_equal(g[0].values[GPU_ECC_CORRECTED], 17);
    assert_int_equal(g[0].values[GPU_POWER], 312500);
    assert_int_equal(g[1].values[GPU_ECC_UNCORRECTED], GPU_UNKNOWN);
    assert_int_equal(g[1].values[GPU_ECC_CORRECTED], GPU_UNKNOWN);
    assert_int_equal(g[1].values[GPU_POWER], GPU_UNKNOWN);
    assert_false(g[0].lost || g[1].lost);
    nvml_close(n);
}

static void an_xid_ends_the_wait_and_stays(void **state)
{
    (void)state;
    driver_says("gpu GPU-a H200 0 40 0 0 ok\ngpu GPU-b H200 0 40 0 0 ok\n");
    struct nvml *n = open_nvml();
    assert_false(nvml_wait(n, 1));
    driver_says("gpu GPU-a H200 0 40 0 0 ok\ngpu GPU-b H200 0 40 5 48 ok\n");
    assert_true(nvml_wait(n, WAIT_MS));
    const struct gpu *g = read_all(n, 2);
    assert_int_equal(g[0].values[GPU_XID], 0);
    assert_int_equal(g[1].values[GPU_XID], 48);
    assert_int_equal(g[1].values[GPU_ECC_UNCORRECTED], 5);
    assert_false(g[1].lost);
    nvml_close(n);
}

static void a_gpu_that_the_driver_lost_stays_lost_and_keeps_its_name(void **state)
{
    (void)state;
    driver_says("gpu GPU-a H200 0 40 0 0 ok\ngpu GPU-b H200 0 40 0 0 ok\n");
    struct nvml *n = open_nvml();
    driver_says("gpu GPU-a H200 0 40 0 0 lost\ngpu GPU-b H200 0 40 0 0 ok\n");
    const struct gpu *g = read_all(n, 2);
    assert_true(g[0].lost && !g[1].lost);
    assert_string_equal(g[0].uuid, "GPU-a");
    for (int v = 0; v < GPU_VALUES; v++)
        if (v != GPU_XID)
            assert_int_equal(g[0].values[v], GPU_UNKNOWN);
    driver_says("gpu GPU-a H200 0 40 0 0 ok\ngpu GPU-b H200 0 40 0 0 ok\n");
    assert_true(read_all(n, 2)[0].lost);
    nvml_close(n);
}

static void xid_79_is_a_loss_before_the_driver_says_more(void **state)
{
    (void)state;
    driver_says("gpu GPU-a H200 0 40 0 0 ok\n");
    struct nvml *n = open_nvml();
    driver_says("gpu GPU-a H200 0 40 0 79 ok\n");
    assert_true(nvml_wait(n, WAIT_MS));
    assert_true(read_all(n, 1)[0].lost);
    nvml_close(n);
}

static void a_gpu_without_a_handle_hides_no_other_one(void **state)
{
    (void)state;
    driver_says("gpu GPU-a H200 0 40 0 0 no-handle\ngpu GPU-b H200 0 40 0 0 ok\ngpu GPU-c H200 0 40 0 0 lost\n");
    struct nvml *n = open_nvml();
    const struct gpu *g = read_all(n, 3);
    assert_string_equal(g[0].uuid, "unknown-0");
    assert_string_equal(g[1].uuid, "GPU-b");
    assert_true(g[2].lost);
    nvml_close(n);
}

static void a_driver_that_refuses_says_why(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    driver_says("init 9\n");
    assert_null(nvml_open(&err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_string_equal(err.msg, "the NVIDIA driver does not answer: Driver Not Loaded");
}

// Prints what a program sees that waits in vain for events, and then asks.
static int open_alone(void)
{
    struct err err = ERR_INIT;
    struct nvml *n = nvml_open(&err);
    size_t count;
    if (!n)
        return puts(err.msg) < 0;
    int64_t begun = clock_mono_ms(&clock_system);
    bool trouble = nvml_wait(n, OLD_WAIT_MS);
    bool waited = clock_mono_ms(&clock_system) - begun >= OLD_WAIT_MS;
    const struct gpu *g = nvml_read(n, &count);
    printf("%s %s, %zu: %d C, %d errors, power %s\n", waited ? "waited" : "did not wait",
           trouble ? "for trouble" : "in vain", count, (int)g->values[GPU_TEMPERATURE],
           (int)g->values[GPU_ECC_UNCORRECTED], g->values[GPU_POWER] == GPU_UNKNOWN ? "unknown" : "known");
    nvml_close(n);
    return 0;
}

static void says_with(const char *libraries, const char *what)
{
    char out[1024];
    again("--open", libraries, out, sizeof out);
    if (strcmp(out, what) != 0)
        fail_msg("it says: %s", out);
}

static void a_driver_without_events_is_asked_again_and_again(void **state)
{
    (void)state;
    driver_says("gpu GPU-a H200 0 40 5 48 ok 0 312500\n");
    says_with(getenv("NVML_OLD_STAND_IN"), "waited in vain, 1: 40 C, 5 errors, power unknown\n");
}

static void a_driver_without_a_function_that_is_needed_is_too_old(void **state)
{
    char folder[64];
    (void)state;
    folder_new(folder);
    again_make_empty_library(folder, "libnvidia-ml.so.1");
    says_with(folder, "NVIDIA's libnvidia-ml.so.1 has no nvmlInit_v2: its driver is too old: update the node's\n");
    folder_free(folder);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return strcmp(argv[1], "--open") == 0 ? open_alone() : 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gpus_are_told_with_what_they_say),
        cmocka_unit_test(an_xid_ends_the_wait_and_stays),
        cmocka_unit_test(a_gpu_that_the_driver_lost_stays_lost_and_keeps_its_name),
        cmocka_unit_test(xid_79_is_a_loss_before_the_driver_says_more),
        cmocka_unit_test(a_gpu_without_a_handle_hides_no_other_one),
        cmocka_unit_test(a_driver_that_refuses_says_why),
        cmocka_unit_test(a_driver_without_events_is_asked_again_and_again),
        cmocka_unit_test(a_driver_without_a_function_that_is_needed_is_too_old),
    };
    snprintf(control, sizeof control, "/tmp/cadre-nvml-%d", getpid());
    setenv("NVML_STAND_IN", control, 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(control);
    return r;
}
