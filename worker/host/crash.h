// SPDX-License-Identifier: Apache-2.0
// A process that dies of a fault prints where as its last line, so that the group's lastFailure can show it. Then the
// signal ends it as usual.
#pragma once

#include <stdint.h>

void crash_install(int rank); // SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT
// Gives the calling thread a stack for these words, once: its own may be what has run out.
void crash_prepare_thread(void);
// What this thread is about to run: class and method, static strings, and the traceparent of its call, which lives
// until the next; NULL = nothing. A method's name may be NULL, its trace be "".
void crash_doing(const char *class, const char *method, const char *trace);

// A method that is past its deadline: where the process has a signal that shows the stacks of its threads, a line and
// these go to its output, not more often than every ten seconds. On one thread.
void crash_show_by(int signo); // 0 = none
void crash_late(const char *class, const char *method, int64_t now_ms);
