// SPDX-License-Identifier: Apache-2.0
// When a fault ends the process, its last line says where, so that the group's lastFailure can show it. Then the signal
// ends the process as usual.
#pragma once

#include <stdint.h>

void crash_install(int rank); // SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT
// Gives the calling thread a stack for the handler, once: a fault may mean that the thread's own stack is used up.
void crash_prepare_thread(void);
// Says what this thread is about to run: class and method, static strings, and the traceparent of the call, which lives
// until the next call of this function. NULL = nothing runs. The name of the method may be NULL, the trace may be "".
void crash_doing(const char *class, const char *method, const char *trace);

// Reports a method that is past its deadline. If the process has a signal that shows the stacks of its threads, a line
// and the stacks go to its output, at most every ten seconds. On one thread.
void crash_show_by(int signo); // 0 = none
void crash_late(const char *class, const char *method, int64_t now_ms);
