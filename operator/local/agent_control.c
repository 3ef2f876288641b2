// SPDX-License-Identifier: Apache-2.0
#include "operator/local/agent_control.h"

#include "common/base/file.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/wire/record.h"
#include "operator/agents/agent_report.h"
#include "operator/agents/agents.h"
#include "worker/agent/control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { GRACE_MS = 10 * 1000 }; // the same grace as for an agent that is told to end

struct agent_control {
    struct loop *loop;
    struct agent_control_events events;
    int fd; // -1 = no agent
    struct loop_poll *poll;
    char packet[CONTROL_PACKET_MAX];
};

struct agent_control *agent_control_new(struct loop *loop, const struct agent_control_events *events)
{
    struct agent_control *r = xcalloc(1, sizeof *r);
    *r = (struct agent_control){.loop = loop, .events = *events, .fd = -1};
    return r;
}

static void let_go(struct agent_control *r)
{
    loop_poll_free(TAKE_PTR(r->poll));
    file_close(&r->fd);
}

void agent_control_free(struct agent_control *r)
{
    if (!r)
        return;
    let_go(r);
    free(r);
}

static void on_packet(const struct agent_control *r, size_t len)
{
    struct arena a = ARENA_INIT;
    struct record_header h;
    struct decoded_report said;
    struct err ignored = ERR_INIT; // the agent is our own program of the same version
    if (len < RECORD_HEADER_SIZE || record_header_decode(r->packet, &h, &ignored) < 0 || !report_type(h.type) ||
        report_decode(h.type, r->packet + RECORD_HEADER_SIZE, len - RECORD_HEADER_SIZE, &a, &said, &ignored) < 0)
        len = 0;
    if (len && h.type == RECORD_EXITED)
        r->events.exited(r->events.ctx, (uint32_t)said.processes->attempt, (uint32_t)said.processes->rank,
                         said.processes->exit_code, said.processes->last_lines);
    else if (len && h.type == RECORD_STOPPED)
        r->events.stopped(r->events.ctx, (uint32_t)said.attempt);
    else if (len && h.type == RECORD_REFUSED && said.command == RECORD_KILL)
        r->events.kill_refused(r->events.ctx, said.rank, said.error);
    arena_done(&a);
}

static bool take(struct agent_control *r)
{
    ssize_t n = r->fd >= 0 ? recv(r->fd, r->packet, sizeof r->packet, MSG_DONTWAIT) : -1;
    if (n > 0)
        on_packet(r, (size_t)n);
    else if (r->fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
        let_go(r);
    return n > 0;
}

static void on_readable(void *ctx, int events)
{
    (void)events;
    (void)take(ctx);
}

int agent_control_open(struct agent_control *r, int *ret_fd, struct err *err)
{
    int ends[2];
    let_go(r);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot open a socket for the agent: %s", strerror(errno));
    r->fd = ends[0];
    *ret_fd = ends[1];
    r->poll = loop_poll_read(r->loop, r->fd, on_readable, r, err);
    return r->poll ? 0 : err->code;
}

void agent_control_drain(struct agent_control *r)
{
    while (take(r))
        ;
    let_go(r);
}

static int tell(struct agent_control *r, enum record_type type, const char *body, struct err *err)
{
    char packet[512];
    const struct record_header h = {.len = (uint32_t)strlen(body), .type = (uint8_t)type, .rank = RECORD_GROUP};
    size_t len = RECORD_HEADER_SIZE + MIN(h.len, sizeof packet - RECORD_HEADER_SIZE);
    record_header_encode(packet, &h);
    memcpy(packet + RECORD_HEADER_SIZE, body, len - RECORD_HEADER_SIZE);
    if (r->fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "no processes run now");
    if (send(r->fd, packet, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
        return err_set(err, ERR_UNAVAILABLE, "its agent cannot be reached: %s", strerror(errno));
    return 0;
}

static int tell_attempt(struct agent_control *r, enum record_type type, const char *group_uid, uint32_t attempt,
                        struct err *err)
{
    struct arena a = ARENA_INIT;
    const char *body = json_print(&a, "{'group':%s,'attempt':%" PRId64 ",'graceMs':%" PRId64 "%-s}", group_uid,
                                  (int64_t)attempt, (int64_t)GRACE_MS, type == RECORD_STOP ? ",\"end\":true" : "");
    int code = tell(r, type, body, err);
    arena_done(&a);
    return code;
}

int agent_control_prepare(struct agent_control *r, const char *group_uid, uint32_t attempt, struct err *err)
{
    return tell_attempt(r, RECORD_PREPARE, group_uid, attempt, err);
}

int agent_control_end(struct agent_control *r, const char *group_uid, uint32_t attempt, struct err *err)
{
    return tell_attempt(r, RECORD_STOP, group_uid, attempt, err);
}

int agent_control_kill(struct agent_control *r, const char *group_uid, uint32_t attempt, uint32_t rank, struct err *err)
{
    struct arena a = ARENA_INIT;
    int code = tell(r, RECORD_KILL, agents_kill_body(group_uid, attempt, rank, &a), err);
    arena_done(&a);
    return code;
}
