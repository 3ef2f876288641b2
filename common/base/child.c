// SPDX-License-Identifier: Apache-2.0
#include "common/base/child.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static void reset_signals(void)
{
    // The kernel's own struct, all zero: SIG_DFL, no flags, no mask. libc's sigaction() refuses to change the two
    // signals that libc uses itself, but a process may have inherited them as ignored.
    static const unsigned long action[8] = {0};
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        syscall(SYS_rt_sigaction, i, action, NULL, NSIG / 8);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

pid_t child_fork(void)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        reset_signals();
    else
        sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}
