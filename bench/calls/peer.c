// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/peer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void read_line(struct peer *p, char *line, size_t size)
{
    if (!fgets(line, (int)size, p->from)) {
        fprintf(stderr, "bench: %s has ended\n", p->script);
        exit(1);
    }
    line[strcspn(line, "\n")] = '\0';
}

void peer_start(struct peer *p, const char *python, const char *script, const char *argument)
{
    int to[2], from[2];
    *p = (struct peer){.script = script};
    if (!python)
        return;
    if (pipe2(to, 0) < 0 || pipe2(from, 0) < 0)
        exit(1);
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        closefrom(STDERR_FILENO + 1);
        execlp(python, python, script, argument, (char *)NULL);
        perror(python);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    p->to = fdopen(to[1], "w");
    p->from = fdopen(from[0], "r");
    read_line(p, p->version, sizeof p->version);
    if (strncmp(p->version, "no ", 3) == 0) {
        peer_stop(p);
        p->pid = 0;
    }
}

void peer_stop(struct peer *p)
{
    if (!p->pid)
        return;
    fclose(p->to); // it ends with its input, and Ray with it
    fclose(p->from);
    waitpid(p->pid, NULL, 0);
}

double peer_rate(struct peer *p, unsigned ranks, size_t bytes, unsigned in_flight, double seconds)
{
    char line[64];
    if (!p->pid)
        return 0;
    fprintf(p->to, "%u %zu %u %g\n", ranks, bytes, in_flight, seconds);
    fflush(p->to);
    read_line(p, line, sizeof line);
    return strtod(line, NULL);
}
