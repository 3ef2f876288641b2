// SPDX-License-Identifier: Apache-2.0
#include "worker/host/crash.h"

#include "common/base/mem.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local _Atomic(const char *) doing_class, doing_method,
    doing_trace; // thread-local, because a fault is handled on the thread that caused it
static char rank_text[16];

// From here on, only functions that may be called in a signal handler.
static void add(char *line, size_t size, const char *text)
{
    size_t len = strlen(line), more = strlen(text);
    more = MIN(more, size - 2 - len); // minus room for the newline
    memcpy(line + len, text, more);
    line[len + more] = '\0';
}

static const char *signal_text(int signo)
{
    switch (signo) {
    case SIGSEGV:
        return "SIGSEGV (invalid memory access)";
    case SIGBUS:
        return "SIGBUS (bad memory access)";
    case SIGFPE:
        return "SIGFPE (arithmetic error)";
    case SIGILL:
        return "SIGILL (illegal instruction)";
    default:
        return "SIGABRT (it aborted)";
    }
}

static void on_fault(int signo)
{
    char line[320] = "\ncadre-worker: rank ";
    const char *class = atomic_load(&doing_class), *method = atomic_load(&doing_method),
               *trace = atomic_load(&doing_trace);
    add(line, sizeof line, rank_text);
    add(line, sizeof line, " died of ");
    add(line, sizeof line, signal_text(signo));
    add(line, sizeof line, class ? " while it ran " : "");
    add(line, sizeof line, class ? class : "");
    add(line, sizeof line, method ? "." : "");
    add(line, sizeof line, method ? method : "");
    add(line, sizeof line, class && trace && trace[0] ? ", traceparent " : "");
    add(line, sizeof line, class && trace ? trace : "");
    line[strlen(line)] = '\n';
    ssize_t written = write(STDERR_FILENO, line, strnlen(line, sizeof line));
    (void)written;
    raise(signo); // SA_RESETHAND has restored the default action
}

void crash_install(int rank)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    snprintf(rank_text, sizeof rank_text, "%d", rank);
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK};
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        sigaction(faults[i], &action, NULL);
}

void crash_prepare_thread(void)
{
    static _Thread_local char memory[64 * 1024];
    static _Thread_local bool prepared;
    stack_t now, stack = {.ss_sp = memory, .ss_size = sizeof memory};
    if (prepared)
        return;
    prepared = true;
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) // a sanitizer sets its own stack
        sigaltstack(&stack, NULL);
}

void crash_doing(const char *class, const char *method, const char *trace)
{
    // The order is for a fault in between. Other threads need not see the values at once.
    atomic_store_explicit(&doing_class, NULL, memory_order_release);
    atomic_store_explicit(&doing_method, method, memory_order_release);
    atomic_store_explicit(&doing_trace, trace, memory_order_release);
    atomic_store_explicit(&doing_class, class, memory_order_release);
}

static int show_signal;
static int64_t shown_ms;

void crash_show_by(int signo)
{
    show_signal = signo;
}

void crash_late(const char *class, const char *method, int64_t now_ms)
{
    enum { PAUSE_MS = 10 * 1000 };
    if (!show_signal || (shown_ms && now_ms - shown_ms < PAUSE_MS))
        return;
    shown_ms = now_ms;
    fprintf(stderr, "cadre-worker: rank %s: %s.%s() is past its deadline; the stacks of all threads:\n", rank_text,
            class, method);
    kill(getpid(), show_signal);
}
