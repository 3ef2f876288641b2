// SPDX-License-Identifier: Apache-2.0
// A rank, its group, and how it waits: with one deadline for the roll-call, and until SIGTERM.
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LINE_SIZE = 1024,   // longest line between ranks
    NAME_SIZE = 256,    // a DNS name has at most 253 bytes
    WORLD_MAX = 4096,   // ranks
    HELLO_MS = 5000,    // time to connect, and for a new connection to say hello
    PROGRESS_MS = 5000, // between two lines that name the missing ranks
};

struct member {
    bool here;
    int local_rank;
    char host[NAME_SIZE];
    char node[NAME_SIZE];
};

struct job {
    const char *addr, *port; // of rank 0
    int world, rank;
    struct member self;
    int64_t deadline; // of the roll-call, milliseconds of now_ms()
    int timeout_s;
    int signals; // signalfd of SIGTERM and SIGINT
    bool exit_after;
    int fail_rank; // -1 = none
    int fail_code;
};

int64_t now_ms(void); // monotonic
int job_waited_s(const struct job *job);

// Prints a line about this rank.
void job_say(const struct job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// poll() until the time `until`, or the deadline if that is earlier. fds[0] is set here, for the signals: these end the
// process, because nothing is half done that somebody could miss. Returns false when the time is up.
bool job_poll(const struct job *job, struct pollfd *fds, nfds_t n, int64_t until);

// Both return false for anything that is not wholly a number in that range, or a name without blanks and control
// characters that fits into NAME_SIZE bytes. NULL is neither.
bool number_parse(const char *text, long min, long max, int *ret);
bool name_copy(char *to, const char *from);
