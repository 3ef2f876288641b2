// SPDX-License-Identifier: Apache-2.0
// The driver is a stand-in, in the library path (cuda_stand_in.c).
#include "worker/device/device.h"

#include "common/base/mem.h"
#include "tests/unit/support/again.h"
#include "tests/unit/support/folder.h"
#include "tests/unit/worker/device/cuda_stand_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 600 * 1000, SIZE = 64 << 10 };

static char folder[64];

static struct device *open_one(void)
{
    struct err err = ERR_INIT;
    struct device *d;
    if (device_open(&d, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(device_enter(d, &err), 0);
    return d;
}

static void close_one(struct device *d)
{
    device_leave(d);
    device_close(d);
}

static void ok(int r, const struct err *err)
{
    if (r < 0)
        fail_msg("%s", err->msg);
}

static int setup(void **state)
{
    (void)state;
    folder_clear(folder);
    unsetenv("CADRE_DEVICE");
    return 0;
}

static void bytes_go_to_the_device_and_back(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    folder_write(folder, "control", "lag 300\n");
    struct device *d = open_one();
    void *stream, *memory, *other;
    char *in, *out;
    ok(device_stream_new(d, &stream, &err), &err);
    ok(device_alloc(d, SIZE, &memory, &err), &err);
    ok(device_alloc(d, SIZE, &other, &err), &err);
    ok(device_pin(d, SIZE, (void **)&in, &err), &err);
    ok(device_pin(d, SIZE, (void **)&out, &err), &err);
    for (int i = 0; i < SIZE; i++)
        in[i] = (char)(i * 7 >> 2);
    ok(device_copy(d, memory, in, SIZE, stream, &err), &err);
    ok(device_copy(d, other, memory, SIZE, stream, &err), &err);
    ok(device_copy(d, out, (char *)other + 5, SIZE - 5, stream, &err), &err);
    ok(device_copy(d, out, in, 0, stream, &err), &err); // nothing is always possible
    ok(device_stream_wait(d, stream, WAIT_MS, NULL, &err), &err);
    assert_memory_equal(out, in + 5, SIZE - 5);
    device_unpin(d, in);
    device_unpin(d, out);
    device_free(d, memory);
    device_free(d, other);
    device_stream_free(d, stream);
    close_one(d);
}

static void a_stream_waits_for_the_event_of_another_one(void **state)
{
    struct err err = ERR_INIT;
    void *one, *two, *event, *memory;
    int *in, *out;
    (void)state;
    folder_write(folder, "control", "hang\n");
    struct device *d = open_one();
    ok(device_stream_new(d, &one, &err), &err);
    ok(device_stream_new(d, &two, &err), &err);
    ok(device_event_new(d, &event, &err), &err);
    assert_int_equal(device_event_poll(d, event, &err), 1); // nothing was recorded
    ok(device_alloc(d, sizeof *in, &memory, &err), &err);
    ok(device_pin(d, sizeof *in, (void **)&in, &err), &err);
    ok(device_pin(d, sizeof *out, (void **)&out, &err), &err);
    *in = 42;
    *out = 0;
    ok(device_copy(d, memory, in, sizeof *in, one, &err), &err);
    ok(device_event_record(d, event, one, &err), &err);
    ok(device_event_await(d, event, two, &err), &err);
    ok(device_copy(d, out, memory, sizeof *out, two, &err), &err);
    assert_int_equal(device_event_poll(d, event, &err), 0);
    assert_int_equal(device_stream_poll(d, two, &err), 0);
    assert_int_equal(*out, 0);
    folder_write(folder, "control", "");
    ok(device_stream_wait(d, two, WAIT_MS, NULL, &err), &err);
    assert_int_equal(device_event_poll(d, event, &err), 1);
    assert_int_equal(*out, 42);
    device_unpin(d, in);
    device_unpin(d, out);
    device_free(d, memory);
    device_event_free(d, event);
    device_stream_free(d, one);
    device_stream_free(d, two);
    close_one(d);
}

static void a_wait_ends_at_its_limit_or_when_it_is_canceled(void **state)
{
    struct err err = ERR_INIT;
    atomic_bool canceled = true;
    void *stream, *memory;
    int *in;
    (void)state;
    folder_write(folder, "control", "hang\n");
    struct device *d = open_one();
    ok(device_stream_new(d, &stream, &err), &err);
    ok(device_alloc(d, sizeof *in, &memory, &err), &err);
    ok(device_pin(d, sizeof *in, (void **)&in, &err), &err);
    ok(device_copy(d, memory, in, sizeof *in, stream, &err), &err);
    assert_int_equal(device_stream_wait(d, stream, 20, NULL, &err), ERR_TIMEOUT);
    assert_string_equal(err.msg,
                        "the GPU was not done within 20 ms: a kernel on it may never end, or it hangs: 'kubectl "
                        "cadre stack' shows what the rank runs, nvidia-smi what the GPU does");
    assert_int_equal(device_stream_wait(d, stream, WAIT_MS, &canceled, &err), ERR_CANCELED);
    folder_write(folder, "control", "");
    ok(device_stream_wait(d, stream, WAIT_MS, NULL, &err), &err);
    device_unpin(d, in);
    device_free(d, memory);
    device_stream_free(d, stream);
    close_one(d);
}

static void memory_that_is_short_is_said_with_its_numbers(void **state)
{
    struct err err = ERR_INIT;
    void *first, *second;
    (void)state;
    folder_write(folder, "control", "memory 100000\n");
    struct device *d = open_one();
    ok(device_alloc(d, 60000, &first, &err), &err);
    assert_int_equal(device_alloc(d, 60000, &second, &err), ERR_NOMEM);
    assert_string_equal(err.msg, "the GPU has no room for 60000 bytes: 40000 of its 100000 bytes are free: "
                                 "CUDA_ERROR_OUT_OF_MEMORY (2)");
    device_free(d, first);
    ok(device_alloc(d, 60000, &second, &err), &err);
    device_free(d, second);
    close_one(d);
}

static void after_an_illegal_address_every_call_says_so(void **state)
{
    struct err err = ERR_INIT;
    void *stream, *memory, *in;
    (void)state;
    pid_t child = fork(); // its context cannot be repaired
    if (child == 0) {
        struct device *d = open_one();
        ok(device_check_thread(&err), &err);
        ok(device_stream_new(d, &stream, &err), &err);
        ok(device_alloc(d, 8, &memory, &err), &err);
        ok(device_pin(d, 8, &in, &err), &err);
        folder_write(folder, "control", "copy 700\n");
        ok(device_copy(d, memory, in, 8, stream, &err), &err);
        bool said = device_stream_wait(d, stream, WAIT_MS, NULL, &err) == ERR_GONE &&
                    strcmp(err.msg, "the GPU: its stream: CUDA_ERROR_ILLEGAL_ADDRESS (700)") == 0;
        folder_write(folder, "control", "");
        said = said && device_alloc(d, 8, &memory, &err) == ERR_GONE;
        said = said && device_check_thread(&err) == ERR_GONE &&
               strcmp(err.msg, "the GPU: it is lost to this process: CUDA_ERROR_ILLEGAL_ADDRESS (700)") == 0;
        _exit(said ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void refuses(const char *lines, const char *what)
{
    struct err err = ERR_INIT;
    struct device *d;
    folder_write(folder, "control", lines);
    assert_int_equal(device_open(&d, &err), ERR_INVALID);
    assert_null(d);
    assert_string_equal(err.msg, what);
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    refuses("gpus -1\n", "NVIDIA's driver sees no GPU here: was this worker given one?");
    setenv("CADRE_DEVICE", "3", 1);
    refuses("gpus 2\n", "this rank has no GPU: CADRE_DEVICE is 3, and it sees 2");
    setenv("CADRE_DEVICE", "gfx942", 1);
    refuses("", "CADRE_DEVICE is gfx942, which is not the number of a GPU");
    unsetenv("CADRE_DEVICE");
    refuses(
        "init 803\n",
        "NVIDIA's libcuda.so.1 and the driver in the kernel have different versions: the node needs a restart after "
        "a driver update, or the image brings a library of its own");
}

// Prints why the GPU cannot be opened.
static int open_alone(void)
{
    struct err err = ERR_INIT;
    struct device *d;
    if (device_open(&d, &err) == 0)
        device_close(d);
    puts(err.msg);
    return 0;
}

static void says_without_stand_in(const char *what)
{
    char out[1024];
    again("--open", folder, out, sizeof out);
    if (strcmp(out, what) != 0)
        fail_msg("it says: %s", out);
}

static void a_node_without_a_driver_or_with_an_old_one_is_told_what_it_needs(void **state)
{
    (void)state;
    again_make_empty_library(folder, "libcuda.so.1");
    says_without_stand_in("NVIDIA's libcuda.so.1 has no cuInit: its driver is too old: update the node's\n");
    folder_clear(folder);
    char out[1024];
    again("--find", folder, out, sizeof out);
    if (strcmp(out, "found\n") == 0) // of the system
        skip();
    says_without_stand_in(
        "there is no NVIDIA driver here: libcuda.so.1: cannot open shared object file: No such file or "
        "directory: was this worker given a GPU, and has its node the driver?\n");
}

static void the_gpu_of_the_thread_goes_before_the_one_of_the_environment(void **state)
{
    struct err err = ERR_INIT;
    int (*choose)(void *context) = NULL;
    struct device *d = open_one(); // so that the driver is loaded
    void *symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSetCurrent");
    (void)state;
    close_one(d);
    assert_non_null(symbol);
    memcpy(&choose, &symbol, sizeof symbol);
    setenv("CADRE_DEVICE", "7", 1); // which there is not
    assert_int_equal(device_open(&d, &err), ERR_INVALID);
    choose(&err);
    ok(device_open(&d, &err), &err);
    device_close(d);
    choose(NULL);
}

static void another_process_opens_memory_by_its_handle(void **state)
{
    struct err err = ERR_INIT;
    struct device_handle handle;
    struct device_mapping map;
    int ends[2];
    int *in;
    void *stream, *memory;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct device *d = open_one();
        ok(device_stream_new(d, &stream, &err), &err);
        ok(device_pin(d, sizeof *in, (void **)&in, &err), &err);
        if (read(ends[0], &handle, sizeof handle) != sizeof handle)
            _exit(2);
        ok(device_import(d, &handle, &map, &err), &err);
        ok(device_copy(d, in, map.memory, sizeof *in, stream, &err), &err);
        ok(device_stream_wait(d, stream, WAIT_MS, NULL, &err), &err);
        device_unimport(d, &map);
        device_unimport(d, &map); // once is enough
        _exit(*in == 4711 ? 0 : 1);
    }
    struct device *d = open_one();
    ok(device_stream_new(d, &stream, &err), &err);
    ok(device_pin(d, sizeof *in, (void **)&in, &err), &err);
    ok(device_alloc(d, SIZE, &memory, &err), &err);
    *in = 4711;
    ok(device_copy(d, (char *)memory + 512, in, sizeof *in, stream, &err), &err);
    ok(device_stream_wait(d, stream, WAIT_MS, NULL, &err), &err);
    ok(device_export(d, (char *)memory + 512, &handle, &err), &err);
    assert_int_equal(write(ends[1], &handle, sizeof handle), sizeof handle);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(device_import(d, &handle, &map, &err), ERR_INVALID); // its own
    assert_null(map.memory);
    assert_int_equal(device_export(d, in, &handle, &err), ERR_INVALID); // memory of the host
    folder_write(folder, "control", "export 1\n");
    assert_int_equal(device_export(d, memory, &handle, &err), ERR_INVALID);
    device_free(d, memory);
    device_unpin(d, in);
    device_stream_free(d, stream);
    close_one(d);
    close(ends[0]);
    close(ends[1]);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--find") == 0)
        return puts(dlopen("libcuda.so.1", RTLD_NOW) ? "found" : "not found") < 0;
    if (argc > 1)
        return open_alone();
    const struct CMUnitTest tests[] = {
        // First, because they fork, before the driver has a thread here.
        TEST(after_an_illegal_address_every_call_says_so),
        TEST(another_process_opens_memory_by_its_handle),
        TEST(bytes_go_to_the_device_and_back),
        TEST(a_stream_waits_for_the_event_of_another_one),
        TEST(a_wait_ends_at_its_limit_or_when_it_is_canceled),
        TEST(memory_that_is_short_is_said_with_its_numbers),
        TEST(what_is_not_there_is_named),
        TEST(a_node_without_a_driver_or_with_an_old_one_is_told_what_it_needs),
        TEST(the_gpu_of_the_thread_goes_before_the_one_of_the_environment),
    };
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
