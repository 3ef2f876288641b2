// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/control.h"

#include "common/base/mem.h"
#include "common/wire/record.h"
#include "worker/agent/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    GRACE_MS = 10 * 1000,
    PATIENCE_MS = 1000, // how long the agent waits for a peer that does not read
};

struct control {
    struct agent *agent;
    int fd;
    struct loop_poll *poll; // NULL = the other end is closed, or does not read
    char packet[CONTROL_PACKET_MAX];
};

// Nobody is left to say what to do next.
static void leave(struct control *c)
{
    loop_poll_free(TAKE_PTR(c->poll));
    agent_shutdown(c->agent, GRACE_MS);
}

static bool has_room(int fd)
{
    struct pollfd watched = {.fd = fd, .events = POLLOUT};
    return poll(&watched, 1, PATIENCE_MS) > 0;
}

// The loop has made the descriptor one that does not wait.
static bool send_patiently(int fd, const struct msghdr *message)
{
    ssize_t sent = 0;
    do
        sent = sendmsg(fd, message, MSG_NOSIGNAL);
    while (sent < 0 && (errno == EINTR || (errno == EAGAIN && has_room(fd))));
    return sent >= 0;
}

// A peer that does not read for PATIENCE_MS gets nothing more. It still notices when the agent ends.
static void send_record(struct control *c, enum record_type type, struct json_writer *w)
{
    struct record_header h = {.len = (uint32_t)w->buf.len, .type = (uint8_t)type, .rank = RECORD_GROUP};
    char header[RECORD_HEADER_SIZE];
    record_header_encode(header, &h);
    struct iovec parts[] = {{header, sizeof header}, {w->buf.data, w->buf.len}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_LEN(parts)};
    if (c->poll && !send_patiently(c->fd, &message))
        loop_poll_free(TAKE_PTR(c->poll));
    writer_done(w);
}

static void on_packet(struct control *c, size_t len)
{
    struct record_header h;
    struct err err = ERR_INIT;
    struct command *command = NULL;
    if (len < RECORD_HEADER_SIZE || record_header_decode(c->packet, &h, &err) < 0 ||
        h.len != len - RECORD_HEADER_SIZE || !command_is(h.type) || h.type == RECORD_START ||
        h.type == RECORD_RESTART) // the options say what is started, not the peer
        return;
    if (command_parse(h.type, c->packet + RECORD_HEADER_SIZE, h.len, &command, &err) == 0)
        agent_command(c->agent, command, &err);
    if (err.code < 0) {
        struct json_writer w;
        message_refused(h.type, command, &err, &w);
        send_record(c, RECORD_REFUSED, &w);
    }
    command_unref(command);
}

static void on_readable(void *ctx, int events)
{
    struct control *c = ctx;
    (void)events;
    ssize_t n = recv(c->fd, c->packet, sizeof c->packet, MSG_DONTWAIT);
    if (n > 0)
        on_packet(c, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        leave(c);
}

struct control *control_new(struct loop *loop, struct agent *agent, int fd, struct err *err)
{
    struct control *c = xcalloc(1, sizeof *c);
    *c = (struct control){.agent = agent, .fd = fd};
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    c->poll = loop_poll_read(loop, fd, on_readable, c, err);
    if (c->poll)
        return c;
    if (err->code == 0)
        err_set(err, ERR_INVALID, "--control %d: not a socket", fd);
    control_free(c);
    return NULL;
}

void control_free(struct control *c)
{
    if (!c)
        return;
    loop_poll_free(c->poll);
    close(c->fd);
    free(c);
}

void control_report(struct control *c, const struct agent_report *r)
{
    struct json_writer w;
    if (r->type != SUPERVISOR_REPORT_EXITED && r->type != SUPERVISOR_REPORT_STOPPED)
        return;
    enum record_type type = message_report(r, &w);
    send_record(c, type, &w);
}

bool control_listens(const struct control *c)
{
    return c && c->poll;
}
