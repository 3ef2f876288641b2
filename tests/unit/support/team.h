// SPDX-License-Identifier: Apache-2.0
// Processes of a test that make a communicator together: connected to the first as the worker host connects them.
#pragma once

#include "worker/collective/comm.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

// In what a member runs, which has `m`: it ends with 1 where the condition does not hold.
#define TEAM_CHECK(condition)                                                            \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "member %d, line %d: %s\n", m->index, __LINE__, #condition); \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

enum { TEAM_MAX = 8, TEAM_LIMIT_MS = 600 * 1000 };

enum team_kind {
    TEAM_ALL_REDUCE,
    TEAM_BROADCAST,
    TEAM_ALL_GATHER,
    TEAM_REDUCE_SCATTER,
    TEAM_ALL_TO_ALL,
    TEAM_SEND,
    TEAM_RECV,
    TEAM_BARRIER,
    TEAM_KINDS,
};

struct team_member {
    int index, n;
    int64_t limit_ms; // of its communicators
    bool debug;       // as in comm_config; false unless it changes that before it joins
    void *stream;     // likewise; NULL
    int *links;
    const char *const *names; // "rank 10", ...: not the places
    int out;                  // for team_say()
};

struct team {
    int n;
    pid_t pids[TEAM_MAX];
    int says[TEAM_MAX]; // pipes
};

extern const char *team_backend; // of their communicators: gloo, unless a test wants another one

// For a test that runs over both back ends: the environment names the one, and the stand-ins get that folder.
void team_begin(char folder[64]);
// Each runs `run` in a process of its own; what it returns is its exit code.
void team_start(struct team *t, int n, int64_t limit_ms, int (*run)(const struct team_member *m, void *ctx), void *ctx);
cadre_comm *team_join(const struct team_member *m, struct err *err); // NULL and an error
const char *team_kind_name(enum team_kind kind);                     // "all_reduce"
// One that does not end without `other`, which is the root, the receiver or the sender. n: F32, of each member where
// there are more.
cadre_result team_call(cadre_comm *c, enum team_kind kind, const float *in, float *out, size_t n, int other);
void team_say(const struct team_member *m, const char *line);
void team_hear(struct team *t, int index, char *out, size_t size); // the next line; "" = it has ended
int team_wait(struct team *t, int index);                          // the exit code, or minus the signal
void team_kill(struct team *t);                                    // and wait: nothing of it is left

// A short limit of the members may be too short for a busy machine: then more of them are late than a test wants, and
// they say that. Such a test kills them, and takes twice the limit, until that is TEAM_LIMIT_MS.
enum { TEAM_LINE = 1024 };
// Whether all but `silent` say next what has `what` in it; -1 = all. `said`: the last line that one of them has said.
bool team_all_say(struct team *t, int silent, const char *what, char said[TEAM_LINE]);
