// SPDX-License-Identifier: Apache-2.0
// Commands to an agent, one a line; the first byte of each says its kind. A supervisor gets each command that can be
// read, and its processes get an environment.
#include "common/base/mem.h"
#include "worker/agent/supervisor.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void build(const struct command *c)
{
    static const char *const pod[] = {"PATH=/bin", "NVIDIA_VISIBLE_DEVICES=a,b,c", NULL};
    for (size_t i = 0; i < MIN(c->n_processes, (size_t)4); i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        const char *const *env;
        if (environment_build(pod, &c->env, &c->processes[i], &a, &env, &err) == 0)
            must(environment_get(env, "RANK") != NULL);
        arena_done(&a);
    }
}

// Everything that is asked for happens at once.
static void follow(struct supervisor *s)
{
    struct supervisor_action a;
    while (supervisor_next(s, &a)) {
        if (a.type == SUPERVISOR_RESOLVE) {
            supervisor_resolved(s, 0, true, "");
        } else if (a.type == SUPERVISOR_LAUNCH) {
            supervisor_started(s, a.rank);
        } else if (a.type == SUPERVISOR_TERMINATE) {
            supervisor_exited(s, a.rank, 0, 0);
            supervisor_gone(s, 0, a.rank);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum record_type types[] = {RECORD_PREPARE, RECORD_START, RECORD_RESTART, RECORD_STOP};
    struct supervisor *s = supervisor_new("g");
    const char *text = (const char *)data, *end = text + size;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        struct command *c = NULL;
        struct err err = ERR_INIT;
        int r =
            text < stop ? command_parse(types[*text & 3], text + 1, (size_t)(stop - text) - 1, &c, &err) : ERR_INVALID;
        must((r == 0) == (c != NULL));
        if (c) {
            build(c);
            struct err refused = ERR_INIT;
            must(supervisor_command(s, 0, c, &refused) == refused.code);
            follow(s);
        }
        command_unref(c);
        text = stop + 1;
    }
    supervisor_shutdown(s, 0, 0);
    follow(s);
    must(supervisor_state(s) == SUPERVISOR_IDLE);
    supervisor_free(s);
    return 0;
}
