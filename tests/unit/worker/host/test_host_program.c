// SPDX-License-Identifier: Apache-2.0
// The end of the host of a program, while other threads of the program use the GPU: over the stand-in for the driver.
#include "sdk/c/include/cadre/host.h"

#include "common/base/mem.h"
#include "tests/unit/support/folder.h"
#include "worker/device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, LEN = 64, CHILD_S = 600 };

static void *memory; // of the GPU
static atomic_int n_copied;

// Returns why it could not go on.
static void *copy_again_and_again(void *ctx)
{
    char to[LEN];
    const char *why;
    (void)ctx;
    while (!(why = cadre_host_download(NULL, to, memory, sizeof to, NULL)))
        atomic_fetch_add(&n_copied, 1);
    return (void *)(uintptr_t)(strcmp(why, "this process is not a worker, or has ended") == 0);
}

// Its exit code is 0 if it cannot.
static void a_child_of_fork_does_not_use_the_gpu(void)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char to[LEN];
        alarm(CHILD_S);
        _exit(cadre_host_download(NULL, to, memory, sizeof to, NULL) == NULL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void the_gpu_stays_until_all_threads_have_left_it(void **state)
{
    const cadre_host_class class = {.name = "Nothing"};
    const cadre_host_options options = {.size = sizeof options,
                                        .module = "test",
                                        .classes = &class,
                                        .n_classes = 1,
                                        .connect = "unix:/nonexistent/proxy",
                                        .debug_fd = -1,
                                        .wake_fd = -1};
    pthread_t threads[THREADS];
    struct err err = ERR_INIT;
    struct device *device;
    cadre_host_call none;
    (void)state;
    assert_int_equal(device_open(&device, &err), 0);
    assert_int_equal(device_enter(device, &err), 0);
    assert_int_equal(device_alloc(device, LEN, &memory, &err), 0);
    assert_int_equal(cadre_host_start(&options), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_again_and_again, NULL), 0);
    while (atomic_load(&n_copied) < THREADS)
        usleep(1000);
    a_child_of_fork_does_not_use_the_gpu();
    kill(getpid(), SIGTERM);
    while (cadre_host_next(0, 1, &none) != CADRE_HOST_STOP)
        ;
    assert_int_equal(cadre_host_end(), 0);
    for (int i = 0; i < THREADS; i++) {
        void *told = NULL;
        assert_int_equal(pthread_join(threads[i], &told), 0);
        assert_non_null(told);
    }
    cadre_host_let_go(memory); // is not touched any more
    device_free(device, memory);
    device_leave(device);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_gpu_stays_until_all_threads_have_left_it)};
    char folder[64];
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
    setenv("CADRE_DEVICE", "0", 1);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
