// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/message.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/agent/pod_archives.h"
#include "worker/agent/probe.h"

#include <inttypes.h>
#include <string.h>

enum {
    PROTOCOL_VERSION = 1,
    LAST_LINES_MAX = 512 * 1024, // for all processes in a HELLO together
    HEARTBEAT_MS = 3000,
    HEARTBEAT_MIN_MS = 100,
    HEARTBEAT_MAX_MS = 600 * 1000,
};

static void put_last(struct json_writer *w, const char *last, size_t len)
{
    _cleanup_(free_p) char *text = xmalloc(len + 1);
    memcpy(text, last, len);
    text[len] = '\0';
    for (char *nul = text; (nul += strlen(nul)) < text + len;)
        *nul = ' '; // the JSON writer takes no U+0000
    writer_str_set(w, "lastLines", text);
}

static void put_exit(struct json_writer *w, int code, int signal, const struct agent_report *r)
{
    writer_i64(w, "exitCode", code);
    if (signal)
        writer_i64(w, "signal", signal);
    if (r->oom)
        writer_bool(w, "outOfMemory", true);
    writer_str_set(w, "message", r->message);
    put_last(w, r->last, r->last_len);
}

static void put_process(struct json_writer *w, const struct agent *a, size_t group, const struct supervisor_process *p)
{
    static const char *const names[] = {"Starting", "Running", "Exited", "Exited"};
    struct agent_report r = {.message = "", .last = ""};
    writer_object(w, NULL);
    writer_i64(w, "rank", p->spec->rank);
    writer_i64(w, "attempt", p->command->attempt);
    writer_str(w, "state", names[p->state]);
    if (p->state >= SUPERVISOR_PROCESS_EXITED) {
        agent_exit_report(a, group, p->spec->rank, &r);
        if (p->code == 0 || w->buf.len > LAST_LINES_MAX)
            r.last_len = 0;
        put_exit(w, p->code, p->signal, &r);
    }
    writer_object_end(w);
}

static void put_slow(struct json_writer *w, const char *why)
{
    if (!str_empty(why))
        writer_str(w, "withoutTemplate", why);
}

static void put_group(struct json_writer *w, const struct agent *a, size_t i)
{
    const struct supervisor *s = agent_group_at(a, i);
    writer_object(w, NULL);
    writer_str(w, "group", supervisor_group(s));
    writer_i64(w, "attempt", supervisor_attempt(s));
    writer_str(w, "state", supervisor_state_name(supervisor_state(s)));
    writer_list(w, "processes");
    for (size_t p = 0; p < supervisor_process_count(s); p++)
        put_process(w, a, i, supervisor_process_at(s, p));
    writer_list_end(w);
    put_slow(w, agent_slow(a, i));
    writer_object_end(w);
}

void message_hello(const struct agent *a, const struct probe *gpus, struct json_writer *w)
{
    *w = WRITER_INIT;
    writer_object(w, NULL);
    writer_str(w, "role", "agent");
    writer_i64(w, "version", PROTOCOL_VERSION);
    writer_str(w, "program", "cadre-agent " CADRE_VERSION);
    writer_list(w, "groups");
    for (size_t i = 0; i < agent_group_count(a); i++)
        put_group(w, a, i);
    writer_list_end(w);
    if (pod_archives_version(agent_pod_archives(a)) > POD_ARCHIVES_VERSION_NEW)
        pod_archives_write(agent_pod_archives(a), w);
    if (probe_version(gpus))
        probe_write(gpus, w);
    writer_object_end(w);
}

void message_heartbeat(const struct probe *gpus, const struct pod_archives *archives, struct json_writer *w)
{
    *w = WRITER_INIT;
    writer_object(w, NULL);
    if (gpus)
        probe_write(gpus, w);
    if (archives)
        pod_archives_write(archives, w);
    writer_object_end(w);
}

// A group whose ranks restart one by one has one attempt for each process. A replica that did not send the command
// learns the attempts here.
static void put_running(struct json_writer *w, const struct supervisor *s)
{
    writer_list(w, "processes");
    for (size_t i = 0; i < supervisor_process_count(s); i++) {
        const struct supervisor_process *p = supervisor_process_at(s, i);
        if (p->state != SUPERVISOR_PROCESS_RUNNING)
            continue;
        writer_print(w, NULL, "{'rank':%" PRId64 ",'attempt':%" PRId64 "}", (int64_t)p->spec->rank,
                     (int64_t)p->command->attempt);
    }
    writer_list_end(w);
}

enum record_type message_report(const struct agent_report *r, struct json_writer *w)
{
    static const enum record_type types[] = {[SUPERVISOR_REPORT_PREPARED] = RECORD_PREPARED,
                                             [SUPERVISOR_REPORT_UNPREPARED] = RECORD_PREPARED,
                                             [SUPERVISOR_REPORT_STARTED] = RECORD_STARTED,
                                             [SUPERVISOR_REPORT_EXITED] = RECORD_EXITED,
                                             [SUPERVISOR_REPORT_STOPPED] = RECORD_STOPPED};
    *w = WRITER_INIT;
    writer_object(w, NULL);
    writer_str(w, "group", r->group);
    writer_i64(w, "attempt", r->attempt);
    if (r->type == SUPERVISOR_REPORT_UNPREPARED)
        writer_str(w, "error", r->message);
    if (r->port)
        writer_i64(w, "takenPort", r->port);
    if (r->supervisor)
        put_running(w, r->supervisor);
    put_slow(w, r->slow);
    if (r->type == SUPERVISOR_REPORT_EXITED) {
        writer_i64(w, "rank", r->rank);
        put_exit(w, r->code, r->signal, r);
    }
    writer_object_end(w);
    return types[r->type];
}

void message_refused(enum record_type command, const struct command *c, const struct err *err, struct json_writer *w)
{
    *w = WRITER_INIT;
    writer_object(w, NULL);
    writer_str(w, "command", record_type_name(command));
    if (c) {
        writer_str(w, "group", c->group);
        writer_i64(w, "attempt", c->attempt);
        if (c->type == RECORD_KILL)
            writer_i64(w, "rank", c->rank);
    }
    writer_str(w, "code", err_name(err->code));
    writer_str(w, "message", err->msg);
    writer_object_end(w);
}

int64_t message_heartbeat_ms(const char *welcome, size_t len)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    int64_t ms = HEARTBEAT_MS;
    json_i64(json_get(json_read(welcome, len, &a), "heartbeatMs"), &ms);
    return MIN(MAX(ms, (int64_t)HEARTBEAT_MIN_MS), (int64_t)HEARTBEAT_MAX_MS);
}
