// SPDX-License-Identifier: Apache-2.0
//
// The process that keeps a pod's namespaces open. It sleeps, reaps orphans if the pod shares one process namespace, and
// ends at SIGTERM or SIGINT.

#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    // Pid 1 gets no default action for a signal without a handler. So the signals are blocked, and sigwait() returns
    // them.
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (;;) {
        int sig;
        if (sigwait(&set, &sig) != 0)
            return 1;
        if (sig != SIGCHLD)
            return 0;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}
