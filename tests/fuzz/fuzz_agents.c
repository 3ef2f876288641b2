// SPDX-License-Identifier: Apache-2.0
// Events of two agents of one pod, one in each line. The first byte says which event:
//
//   h  an agent joins with this HELLO       l  the present connection is lost      g  the pod is gone
//   p s e t r b  PREPARED STARTED EXITED STOPPED REFUSED HEARTBEAT with this body  P S R T  a command is sent
#include "operator/agents/agents.h"
#include "operator/agents/reported_group.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/clock_fake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct agents *agents;
static struct connected_agent *agent; // connected now
static size_t n_open;                 // connections that have not ended

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void on_exited(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, int exit_code,
                      const char *last_lines)
{
    (void)ctx, (void)attempt, (void)rank, (void)exit_code, (void)last_lines;
    must(strlen(group_uid) > 0);
}

static int on_command(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    (void)owner, (void)type, (void)err;
    must(strlen(body) == len);
    return 0;
}

static void leave(void)
{
    if (!agent)
        return;
    agents_leave(agents, TAKE_PTR(agent));
    n_open--;
}

static void join(const char *text, size_t len)
{
    static const struct agent_identity id = {.ns = "ns", .group = "g", .pod = "g-0-0", .pod_uid = "pod", .node = "n"};
    struct connected_agent *joined = NULL;
    struct err err = ERR_INIT;
    must(agents_join(agents, &id, text, len, on_command, &agent, &joined, &err) == err.code);
    must((err.code == 0) == (joined != NULL));
    if (!joined)
        return;
    must((agents_replaced(agents) != NULL) == (agent != NULL));
    leave();
    agent = joined;
    n_open++;
}

static void say(uint8_t type, const char *text, size_t len)
{
    struct record r = {.h = {.type = type, .rank = RECORD_GROUP}, .body = text, .len = len};
    struct err err = ERR_INIT;
    must(agents_record(agents, agent, &r, &err) == err.code);
    if (err.code)
        leave(); // as its owner does
}

static void order(uint8_t type, const char *text, size_t len)
{
    struct err err = ERR_INIT;
    int r = agents_command(agents, "pod", "group", (int32_t)len, type, "{}", &err);
    (void)text;
    must(r == err.code && (r == 0 || !agent || r == ERR_LIMIT));
}

static void event(char what, const char *text, size_t len)
{
    static const struct {
        char what;
        uint8_t type;
        void (*fn)(uint8_t type, const char *text, size_t len);
    } events[] = {{'p', RECORD_PREPARED, say},  {'s', RECORD_STARTED, say}, {'e', RECORD_EXITED, say},
                  {'t', RECORD_STOPPED, say},   {'r', RECORD_REFUSED, say}, {'b', RECORD_HEARTBEAT, say},
                  {'P', RECORD_PREPARE, order}, {'S', RECORD_START, order}, {'R', RECORD_RESTART, order},
                  {'T', RECORD_STOP, order}};
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i].what == what && (agent || events[i].fn == order))
            events[i].fn(events[i].type, text, len);
    if (what == 'h')
        join(text, len);
    else if (what == 'l')
        leave();
    else if (what == 'g')
        agents_pod_gone(agents, "pod");
    if (agents_replaced(agents))
        leave();
}

static void look(void)
{
    struct arena a = ARENA_INIT;
    struct agent_facts f;
    agents_facts(agents, "pod", "group", &a, &f);
    must(f.connected == (agent != NULL) && agents_count(agents) == n_open);
    must(f.attempt >= 0 && (!f.sent || f.connected));
    for (size_t i = 0; i < f.n_processes; i++) {
        const struct agent_process *p = &f.processes[i];
        must(i == 0 || p->rank > p[-1].rank);
        must(strlen(p->message) <= REPORTED_MESSAGE_MAX && strlen(p->last_lines) <= REPORTED_LAST_LINES_MAX);
        must(str_utf8_valid(p->message, strlen(p->message)) && str_utf8_valid(p->last_lines, strlen(p->last_lines)));
        must((p->state == AGENT_PROCESS_EXITED) == (p->ended_ms != 0));
    }
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;
    struct clock_fake clock;
    clock_fake_init(&clock, 1, 1);
    agents = agents_new(&(struct agents_config){.clock = &clock.clock, .exited = on_exited});
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        if (text < stop)
            event(*text, text + 1, (size_t)(stop - text) - 1);
        look();
        text = stop + 1;
    }
    leave();
    look();
    agents_free(agents);
    return 0;
}
