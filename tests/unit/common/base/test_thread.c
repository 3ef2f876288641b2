// SPDX-License-Identifier: Apache-2.0
#include "common/base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

static void *look(void *ctx)
{
    pthread_sigmask(SIG_SETMASK, NULL, ctx);
    return NULL;
}

static void a_thread_handles_no_signals_and_its_starter_still_does(void **state)
{
    (void)state;
    sigset_t of_thread, own;
    pthread_t thread;
    sigemptyset(&of_thread);
    assert_int_equal(thread_start(&thread, look, &of_thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &own);
    assert_true(sigismember(&of_thread, SIGTERM) && sigismember(&of_thread, SIGUSR1));
    assert_false(sigismember(&own, SIGTERM) || sigismember(&own, SIGUSR1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_handles_no_signals_and_its_starter_still_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
