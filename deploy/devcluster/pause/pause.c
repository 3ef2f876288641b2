// SPDX-License-Identifier: Apache-2.0
//
// The process that keeps a pod's namespaces open: it sleeps, reaps the orphans that land at it when the pod
// shares one process namespace, and leaves at SIGTERM or SIGINT.

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
    // Blocked and waited for, not handled: pid 1 gets no default action for a signal without a handler.
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
