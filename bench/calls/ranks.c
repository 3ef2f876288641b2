// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/ranks.h"

#include "bench/calls/server.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record_reader.h"
#include "common/ws/ws_client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_A_TIME = 64, COPY_MAX = 4096 }; // handshakes; bytes of a result that are worth no blob

#define RANK_BYTES ((size_t)1 << 30)

struct ranks {
    struct loop *loop;
    const char *group;
    char address[64];
    struct rank *of;
    uint32_t first, n, dialed, welcomed;
};

struct rank {
    struct ranks *all;
    uint32_t rank;
    struct ws_client *client;
    struct record_reader reader;
};

static void die(const struct rank *r, const char *why)
{
    fprintf(stderr, "bench: rank %u of %s: %s\n", r->rank, r->all->group, why);
    _exit(1);
}

static void hello(struct rank *r)
{
    char ticket[SERVER_TICKET_SIZE], body[512];
    struct err err = ERR_INIT;
    const struct record_header h = {.type = RECORD_HELLO, .rank = r->rank};
    server_ticket(ticket, r->all->group, r->rank);
    int len = snprintf(body, sizeof body,
                       "{\"role\":\"worker\",\"version\":1,\"ticket\":\"%s\",\"module\":\"bench\",\"class\":\"Bench\","
                       "\"methods\":[{\"name\":\"take\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},"
                       "{\"name\":\"echo\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"}]}",
                       ticket);
    if (ws_client_record_copy(r->client, &h, body, (size_t)len, &err) < 0)
        die(r, err.msg);
}

static void answer(struct rank *r, const struct record *rec)
{
    struct record_call call;
    struct err err = ERR_INIT;
    const struct record_header h = {.type = RECORD_RESULT, .call = rec->h.call, .rank = r->rank};
    int sent;
    if (record_call_decode(rec->body, rec->len, &call, &err) < 0)
        die(r, err.msg);
    bool echo = memmem(call.head, call.head_len, "\"echo\"", 6) != NULL;
    if (!echo || call.args_len <= COPY_MAX || !rec->blob)
        sent = ws_client_record_copy(r->client, &h, echo ? call.args : "0", echo ? call.args_len : 1, &err);
    else
        sent = ws_client_record(r->client, &h,
                                &(struct record_part){rec->blob, (size_t)(call.args - rec->blob->data), call.args_len},
                                1, &err);
    if (sent < 0)
        die(r, err.msg);
}

static void dial_next(struct ranks *all);

static void on_data(void *ctx, const char *data, size_t len, bool end)
{
    struct rank *r = ctx;
    struct record rec;
    struct err err = ERR_INIT;
    int got;
    (void)end;
    while ((got = record_reader_next(&r->reader, &data, &len, &rec, &err)) == 1) {
        if (rec.h.type == RECORD_CALL) {
            answer(r, &rec);
        } else if (rec.h.type == RECORD_WELCOME) {
            if (++r->all->welcomed == r->all->n)
                loop_stop(r->all->loop);
            dial_next(r->all);
        } else if (rec.h.type == RECORD_HOLD || rec.h.type == RECORD_GO) {
            (void)record_writer_hold(ws_client_records(r->client), rec.h.call, true, rec.h.type == RECORD_HOLD);
        } else if (rec.h.type != RECORD_CANCEL) {
            die(r, rec.h.type == RECORD_ERROR ? "refused" : "an unexpected record");
        }
    }
    if (got < 0)
        die(r, err.msg);
}

static char *on_buffer(void *ctx, size_t *ret_room)
{
    struct rank *r = ctx;
    return record_reader_buffer(&r->reader, ret_room);
}

static void on_open(void *ctx, const char *subprotocol)
{
    (void)subprotocol;
    hello(ctx);
}

static void on_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    (void)code;
    die(ctx, err->code ? err->msg : reason);
}

static void dial_next(struct ranks *all)
{
    struct err err = ERR_INIT;
    if (all->dialed == all->n)
        return;
    struct rank *r = &all->of[all->dialed];
    *r = (struct rank){.all = all, .rank = all->first + all->dialed++};
    // Its own quota, so that it keeps as much memory for the next body as a process would.
    struct quota *quota = quota_new(RANK_BYTES, NULL);
    quota_keep_body(quota, RANK_BYTES);
    record_reader_init(&r->reader,
                       &(struct record_reader_config){.whole = true, .max_body = RANK_BYTES, .quota = quota});
    r->client = ws_client_new(all->loop,
                              &(struct ws_client_config){.address = all->address,
                                                         .path = SERVER_PATH,
                                                         .subprotocols = RECORD_SUBPROTOCOL,
                                                         .open_ms = 60 * 1000,
                                                         .max_queue = RANK_BYTES,
                                                         .ping_ms = 600 * 1000, // idle means idle
                                                         .on_open = on_open,
                                                         .on_data = on_data,
                                                         .on_buffer = on_buffer,
                                                         .on_close = on_close,
                                                         .ctx = r},
                              &err);
    if (!r->client)
        die(r, err.msg);
}

static void serve(struct ranks *all, int report)
{
    all->loop = loop_new();
    all->of = xcalloc(all->n, sizeof *all->of);
    for (unsigned i = 0; i < AT_A_TIME; i++)
        dial_next(all);
    loop_run(all->loop);
    if (write(report, "", 1) != 1)
        _exit(1);
    loop_run(all->loop);
    _exit(1);
}

pid_t ranks_start(int port, const char *group, uint32_t first, uint32_t n)
{
    struct ranks all = {.group = group, .first = first, .n = n};
    int report[2];
    char byte;
    if (pipe(report) < 0)
        exit(1);
    snprintf(all.address, sizeof all.address, "127.0.0.1:%d", port);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(&all, report[1]);
    }
    close(report[1]);
    if (read(report[0], &byte, 1) != 1)
        exit(1); // it has said why
    close(report[0]);
    return pid;
}

void ranks_stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
