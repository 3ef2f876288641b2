// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/standalone.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUP "standalone"

// The port is free now. The process that wants it binds it within milliseconds.
static int free_port(int *ret, struct err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r = 0;
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        r = err_set(err, ERR_UNAVAILABLE, "cannot find a free port on 127.0.0.1: %s", strerror(errno));
    file_close(&fd);
    *ret = ntohs(a.sin_port);
    return r;
}

// The program that starts the agent may have set the name of the group.
static const char *said(const char *variable)
{
    const char *value = getenv(variable);
    return str_empty(value) ? GROUP : value;
}

// Reads the GPUs of one process: "1,2", "-". Moves *text behind them. ERR_INVALID: this is not a list.
static int read_gpus(const char **text, struct environment_process *p, struct arena *a, struct err *err)
{
    int *gpus = arena_array(a, GPUS_MAX, sizeof *gpus);
    const char *at = *text;
    p->gpus = gpus;
    for (char *end; *at >= '0' && *at <= '9' && p->n_gpus < GPUS_MAX; at = end + (*end == ',')) {
        gpus[p->n_gpus++] = (int)MIN(strtol(at, &end, 10), (long)GPUS_MAX); // GPUS_MAX: no pod has this GPU
    }
    at += !p->n_gpus && *at == '-';
    if (at == *text || (*at && *at != ';'))
        return err_set(err, ERR_INVALID, "--process-gpus: rank %d: %.40s is not a list of GPUs such as 0,1, nor -",
                       p->rank, *text);
    *text = at + (*at == ';');
    return 0;
}

static int share_gpus(const char *text, struct command *c, struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < c->n_processes && text && r == 0; i++)
        r = read_gpus(&text, &c->processes[i], &c->arena, err);
    if (r == 0 && text && *text)
        r = err_set(err, ERR_INVALID, "--process-gpus has more than %zu processes: %.40s", c->n_processes, text);
    return r;
}

static struct command *start_command(const struct agent_options *o, int attempt, int port)
{
    struct command *c = command_new(RECORD_START, said("CADRE_GROUP_UID"), attempt);
    c->env = (struct environment_group){
        .name = said("GROUP_NAME"),
        .master_addr = "127.0.0.1",
        .master_port = port,
        .world_size = o->processes,
        .nnodes = 1,
        .local_world_size = o->processes,
        .gpus = {.visibility = o->gpu_visibility, .per_worker = o->gpus, .count = GPUS_UNKNOWN},
    };
    c->n_processes = (size_t)o->processes;
    c->processes = arena_array(&c->arena, c->n_processes, sizeof *c->processes);
    for (int i = 0; i < o->processes; i++)
        c->processes[i] = (struct environment_process){.rank = i, .local_rank = i, .attempt = attempt};
    return c;
}

// Starts the attempt that was prepared.
static void begin(struct standalone *s, int attempt)
{
    struct err *err = &s->err;
    int port = s->options->master_port;
    int r = port ? 0 : free_port(&port, err);
    struct command *start = start_command(s->options, attempt, port);
    s->exited = s->exit_code = 0;
    if (r == 0)
        r = share_gpus(s->options->process_gpus, start, err);
    if (r == 0)
        r = agent_command(s->agent, start, err);
    command_unref(start);
    if (r == 0)
        return;
    s->exit_code = 1;
    rank_output_say(agent_output(s->agent), "%s", err->msg);
    agent_shutdown(s->agent, 0);
}

static int command(struct standalone *s, enum record_type type, int attempt, struct err *err)
{
    struct command *c = command_new(type, said("CADRE_GROUP_UID"), attempt);
    c->grace_ms = s->options->grace_ms;
    int r = agent_command(s->agent, c, err);
    command_unref(c);
    return r;
}

int standalone_start(struct standalone *s, struct err *err)
{
    int r = command(s, RECORD_PREPARE, s->options->attempt, err); // the report calls begin()
    if (r == 0 && s->err.code)
        r = err_set(err, s->err.code, "%s", s->err.msg);
    return r;
}

static void on_exited(struct standalone *s, const struct agent_report *r)
{
    struct err ignored = ERR_INIT; // it is being stopped for a newer attempt already
    s->exited++;
    if (s->exit_code == 0)
        s->exit_code = r->code;
    if (r->code == 0 && s->exited < s->options->processes)
        return;
    if (control_listens(s->control))
        command(s, RECORD_STOP, r->attempt, &ignored);
    else
        agent_shutdown(s->agent, s->options->grace_ms);
}

void standalone_report(void *ctx, const struct agent_report *r)
{
    struct standalone *s = ctx;
    if (r->type == SUPERVISOR_REPORT_PREPARED)
        begin(s, r->attempt);
    else if (r->type == SUPERVISOR_REPORT_EXITED)
        on_exited(s, r);
    else if (r->type == SUPERVISOR_REPORT_STOPPED && !control_listens(s->control))
        agent_shutdown(s->agent, s->options->grace_ms);
}
