// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/team.h"

#include "common/base/mem.h"
#include "tests/unit/support/folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const team_names[TEAM_MAX] = {"rank 10", "rank 11", "rank 12", "rank 13",
                                                 "rank 14", "rank 15", "rank 16", "rank 17"};

const char *team_backend = "gloo";

void team_begin(char folder[64])
{
    const char *backend = getenv("CADRE_TEST_BACKEND");
    if (backend)
        team_backend = backend;
    folder_new(folder);
    setenv("GPU_STAND_IN", folder, 1);
}

static void be_member(const struct team *t, int index, int pairs[TEAM_MAX][2], int out, int64_t limit_ms,
                      int (*run)(const struct team_member *m, void *ctx), void *ctx)
{
    int links[TEAM_MAX] = {-1};
    struct team_member m = {
        .index = index, .n = t->n, .limit_ms = limit_ms, .links = links, .names = team_names, .out = out};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 1; i < t->n; i++) {
        bool mine = index == 0 || i == index;
        close(pairs[i][index == 0 ? 1 : 0]);
        if (mine)
            links[index == 0 ? i : 0] = pairs[i][index == 0 ? 0 : 1];
        else
            close(pairs[i][1]);
    }
    exit(run(&m, ctx));
}

void team_start(struct team *t, int n, int64_t limit_ms, int (*run)(const struct team_member *m, void *ctx), void *ctx)
{
    int pairs[TEAM_MAX][2];
    *t = (struct team){.n = n};
    for (int i = 1; i < n; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]) != 0)
            abort();
    for (int i = 0; i < n; i++) {
        int out[2];
        if (pipe2(out, O_CLOEXEC) != 0)
            abort();
        fflush(NULL);
        t->pids[i] = fork();
        if (t->pids[i] < 0)
            abort();
        if (t->pids[i] == 0) {
            for (int k = 0; k < i; k++)
                close(t->says[k]);
            close(out[0]);
            be_member(t, i, pairs, out[1], limit_ms, run, ctx);
        }
        close(out[1]);
        t->says[i] = out[0];
    }
    for (int i = 1; i < n; i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
}

cadre_comm *team_join(const struct team_member *m, struct err *err)
{
    cadre_comm *comm = NULL;
    const struct comm_config config = {.backend = team_backend,
                                       .address = "127.0.0.1",
                                       .names = m->names,
                                       .index = m->index,
                                       .n = m->n,
                                       .links = m->links,
                                       .limit_ms = m->limit_ms,
                                       .stream = m->stream,
                                       .debug = m->debug};
    return comm_new(&config, &comm, err) == 0 ? comm : NULL;
}

const char *team_kind_name(enum team_kind kind)
{
    static const char *const names[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                        "all_to_all", "send",      "recv",       "barrier"};
    return names[kind];
}

cadre_result team_call(cadre_comm *c, enum team_kind kind, const float *in, float *out, size_t n, int other)
{
    switch (kind) {
    case TEAM_ALL_REDUCE:
        return cadre_all_reduce(c, "F32", in, out, n, CADRE_SUM);
    case TEAM_BROADCAST:
        return cadre_broadcast(c, "F32", out, n, other);
    case TEAM_ALL_GATHER:
        return cadre_all_gather(c, "F32", in, out, n);
    case TEAM_REDUCE_SCATTER:
        return cadre_reduce_scatter(c, "F32", in, out, n, CADRE_SUM);
    case TEAM_ALL_TO_ALL:
        return cadre_all_to_all(c, "F32", in, out, n);
    case TEAM_SEND:
        return cadre_send(c, "F32", in, n, other);
    case TEAM_RECV:
        return cadre_recv(c, "F32", out, n, other);
    default:
        return cadre_barrier(c);
    }
}

void team_say(const struct team_member *m, const char *line)
{
    if (dprintf(m->out, "%s\n", line) < 0)
        abort();
}

void team_hear(struct team *t, int index, char *out, size_t size)
{
    size_t n = 0;
    while (n + 1 < size && read(t->says[index], out + n, 1) == 1 && out[n] != '\n')
        n++;
    out[n] = '\0';
}

int team_wait(struct team *t, int index)
{
    int state;
    if (waitpid(t->pids[index], &state, 0) != t->pids[index])
        abort();
    close(t->says[index]);
    return WIFSIGNALED(state) ? -WTERMSIG(state) : WEXITSTATUS(state);
}

void team_kill(struct team *t)
{
    for (int i = 0; i < t->n; i++) {
        kill(t->pids[i], SIGKILL);
        (void)team_wait(t, i);
    }
}

bool team_all_say(struct team *t, int silent, const char *what, char said[TEAM_LINE])
{
    for (int i = 0; i < t->n; i++) {
        if (i == silent)
            continue;
        team_hear(t, i, said, TEAM_LINE);
        if (!strstr(said, what))
            return false;
    }
    return true;
}
