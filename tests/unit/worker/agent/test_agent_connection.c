// SPDX-License-Identifier: Apache-2.0
// An agent with real processes. The operator is a server in the same loop.
#include "worker/agent/operators.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record_reader.h"
#include "common/ws/ws_server.h"
#include "tests/unit/support/patience.h"
#include "tests/unit/support/session_say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROUP "\"group\":\"u-1\",\"attempt\":1"
#define WORLD                                                                                      \
    GROUP ",\"name\":\"wg\",\"namespace\":\"ns\",\"nodes\":1,\"nodeRank\":0,\"masterAddr\":\"m\"," \
          "\"masterPort\":29500,\"worldSize\":2,\"localWorldSize\":2"
#define BOTH "\"processes\":[{\"rank\":0,\"localRank\":0,\"ticket\":\"t0\"},{\"rank\":1,\"localRank\":1}]"

struct fixture {
    struct loop *loop;
    struct ws_server *server;
    struct ws_session *session; // NULL = the agent is not connected
    struct record_reader reader;
    struct agent *agent;
    struct operators *operators;
    struct probe *probe; // NULL = the GPUs are not watched
    struct buf got;      // "TYPE BODY\n" of each record
    char token_path[64];
    char authorization[64]; // of the last upgrade
    int refuse;             // the status with which upgrades are refused
    int log_fd, upgrades;
    bool silent; // sends no WELCOME
    bool done;
};

static const char *const subprotocols[] = {RECORD_SUBPROTOCOL, NULL};

static int on_upgrade(void *ctx, struct ws_session *s, struct ws_request *r, struct err *err)
{
    struct fixture *f = ctx;
    const char *authorization = ws_request_header(r, "authorization");
    (void)s;
    f->upgrades++;
    snprintf(f->authorization, sizeof f->authorization, "%s", authorization ? authorization : "");
    err->http_status = f->refuse;
    return f->refuse ? err_set(err, ERR_UNAUTHORIZED, "who are you?") : 0;
}

static void give(struct fixture *f, enum record_type type, const char *body)
{
    struct err err = ERR_INIT;
    const struct record_header h = {.type = (uint8_t)type, .rank = RECORD_GROUP};
    ws_session_record_copy(f->session, &h, body, strlen(body), &err);
}

static void on_open(void *ctx, struct ws_session *s)
{
    struct fixture *f = ctx;
    const struct record_reader_config config = {.whole = true};
    f->session = s;
    record_reader_init(&f->reader, &config);
}

static void on_data(void *ctx, struct ws_session *s, const char *data, size_t len, bool end)
{
    struct fixture *f = ctx;
    struct record record;
    struct err err = ERR_INIT;
    (void)s, (void)end;
    while (record_reader_next(&f->reader, &data, &len, &record, &err) > 0) {
        buf_printf(&f->got, "%s %.*s\n", record_type_name(record.h.type), (int)record.len, record.body);
        if (record.h.type == RECORD_HELLO && !f->silent)
            give(f, RECORD_WELCOME, "{\"version\":1,\"heartbeatMs\":100}");
    }
}

static void on_close(void *ctx, struct ws_session *s, unsigned code, const char *reason)
{
    struct fixture *f = ctx;
    (void)code, (void)reason;
    if (f->session != s)
        return;
    f->session = NULL;
    record_reader_done(&f->reader);
}

static void on_report(void *ctx, const struct agent_report *r)
{
    struct fixture *f = ctx;
    operators_report(f->operators, r);
}

static void on_printed(void *ctx, const char *group, int rank, const char *text, size_t len)
{
    struct fixture *f = ctx;
    operators_printed(f->operators, group, rank, text, len);
}

static void on_done(void *ctx)
{
    struct fixture *f = ctx;
    f->done = true;
}

static void start_server(struct fixture *f, const char *address, char *ret_url, size_t size)
{
    const struct ws_server_config config = {.subprotocols = subprotocols,
                                            .max_connections = 16,
                                            .on_upgrade = on_upgrade,
                                            .on_open = on_open,
                                            .on_data = on_data,
                                            .on_close = on_close,
                                            .ctx = f};
    struct err err = ERR_INIT;
    f->server = ws_server_new(f->loop, &config, &err);
    assert_non_null(f->server);
    int port = ws_server_listen(f->server, address, false, &err);
    assert_true(port > 0);
    snprintf(ret_url, size, "ws://127.0.0.1:%d", port);
}

static void write_token(struct fixture *f, const char *token)
{
    int fd = open(f->token_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, token, strlen(token)), strlen(token));
    close(fd);
}

static void on_gpus(void *ctx, bool urgent)
{
    struct fixture *f = ctx;
    if (urgent)
        operators_gpus(f->operators);
}

static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};

static int set_up(void **state, const char *const *gpus)
{
    static const char *const argv[] = {"sh", "-c", "exit 9", NULL};
    struct fixture *f = xcalloc(1, sizeof *f);
    struct err err = ERR_INIT;
    char url[64];
    *state = f;
    f->got = BUF_INIT(1024 * 1024);
    snprintf(f->token_path, sizeof f->token_path, "/tmp/cadre-token-%d", getpid());
    write_token(f, "first\n");
    f->log_fd = memfd_create("log", MFD_CLOEXEC);
    f->loop = loop_new();
    start_server(f, "127.0.0.1:0", url, sizeof url);
    const struct agent_config config = {.loop = f->loop,
                                        .out = f->log_fd,
                                        .err = f->log_fd,
                                        .env = env,
                                        .argv = argv,
                                        .gpus = GPUS_UNKNOWN,
                                        .report = on_report,
                                        .printed = on_printed,
                                        .done = on_done,
                                        .ctx = f};
    f->agent = agent_new(&config);
    const struct probe_config watch = {.loop = f->loop,
                                       .agent = f->agent,
                                       .argv = gpus,
                                       .env = env,
                                       .pod_gpus = 1,
                                       .err = f->log_fd,
                                       .changed = on_gpus,
                                       .ctx = f};
    f->probe = gpus ? probe_new(&watch) : NULL;
    f->operators = operators_new(f->loop, f->agent, f->probe, url, NULL, f->token_path, &err);
    return f->operators ? 0 : -1;
}

static int setup(void **state)
{
    return set_up(state, NULL);
}

// Sets up a fake cadre-gpus. It reports a GPU that is well, then that the GPU is lost, and then nothing more.
static int setup_gpus(void **state)
{
#define SAYS(state) "\"gpus\":[{\"index\":0,\"uuid\":\"GPU-a\",\"name\":\"H200\",\"state\":\"" state "\""
    static const char *const gpus[] = {
        "sh", "-c", "echo '{" SAYS("Ok") "}]}'; sleep 0.5; echo '{" SAYS("Lost") "}]}'; exec sleep 1000", NULL};
    return set_up(state, gpus);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    operators_free(f->operators);
    probe_free(f->probe);
    agent_free(f->agent);
    if (f->session)
        record_reader_done(&f->reader);
    ws_server_free(f->server);
    loop_free(f->loop);
    unlink(f->token_path);
    close(f->log_fd);
    buf_done(&f->got);
    free(f);
    return 0;
}

#define UNTIL(f, condition) TURN_UNTIL(loop_run_once((f)->loop, 100), condition, buf_str(&(f)->got))

// Waits for a record with this text, and forgets everything up to it.
static void expect(struct fixture *f, const char *text)
{
    UNTIL(f, strstr(buf_str(&f->got), text));
    const char *end = strchr(strstr(buf_str(&f->got), text), '\n') + 1;
    buf_consume(&f->got, (size_t)(end - f->got.data));
}

static void it_says_hello_with_its_token_and_sends_heartbeats(void **state)
{
    struct fixture *f = *state;
    expect(f, "HELLO {\"role\":\"agent\",\"version\":1,\"program\":\"cadre-agent ");
    assert_string_equal(f->authorization, "Bearer first");
    expect(f, "HEARTBEAT {}");
    expect(f, "HEARTBEAT {}");
}

static void gpus_are_told_with_heartbeats_and_only_when_there_is_news(void **state)
{
    struct fixture *f = *state;
    expect(f, SAYS("Lost") "}]}");
    expect(f, "HEARTBEAT {}");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START, "{" WORLD ",\"processes\":[{\"rank\":1,\"localRank\":1}],\"command\":[\"sleep\",\"1000\"]}");
    expect(f, "STARTED");
    expect(f, SAYS("Lost") ",\"ranks\":[{\"group\":\"u-1\",\"rank\":1}]}]}"); // the rank that has the GPU now
    ws_session_close(f->session, FRAME_CLOSE_GOING_AWAY, "again");
    UNTIL(f, strstr(buf_str(&f->got), "HELLO"));
    const char *hello = strstr(buf_str(&f->got), "HELLO");
    const char *gpus = strstr(hello, SAYS("Lost"));
    assert_true(gpus && gpus < strchr(hello, '\n'));
}

static void it_does_what_it_is_told_and_says_how_it_went(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    expect(f, "PREPARED {" GROUP "}");
    give(f, RECORD_START, "{" WORLD "," BOTH ",\"command\":[\"sleep\",\"1000\"]}");
    expect(f, "STARTED {" GROUP ",\"processes\":[{\"rank\":0,\"attempt\":1},{\"rank\":1,\"attempt\":1}]}");
    give(f, RECORD_STOP, "{" GROUP ",\"graceMs\":20000}");
    expect(f, "\"exitCode\":143,\"signal\":15}");
    expect(f, "\"exitCode\":143,\"signal\":15}");
    expect(f, "STOPPED {" GROUP "}");
}

static void an_exit_comes_with_the_last_lines(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START,
         "{" WORLD ",\"processes\":[{\"rank\":1,\"localRank\":1,\"ticket\":\"t1\"}],"
         "\"env\":[{\"name\":\"X\",\"value\":\"y\"}],\"command\":[\"sh\",\"-c\","
         "\"echo $X $RANK $CADRE_TICKET; printf '\\\\377\\\\000x'; exit 7\"]}");
    expect(f, "EXITED {" GROUP ",\"rank\":1,\"exitCode\":7,\"lastLines\":\"y 1 t1\\n\xef\xbf\xbd x\"}");
}

#define PRINTS(text) "{" WORLD ",\"processes\":[{\"rank\":1,\"localRank\":1}],\"command\":[\"printf\",\"" text "\"]}"

static void lines_are_sent_while_the_operator_listens(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_OUTPUT, "{\"group\":\"u-1\",\"listen\":true}");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START, PRINTS("hello\\\\nagain\\\\n"));
    expect(f, "OUTPUT {\"group\":\"u-1\",\"lines\":[[1,\"hello\"],[1,\"again\"]]}");
}

static void and_not_otherwise(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_OUTPUT, "{\"group\":\"u-1\",\"listen\":true}");
    give(f, RECORD_OUTPUT, "{\"group\":\"u-1\",\"listen\":false}");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START, PRINTS("hello\\\\n"));
    UNTIL(f, strstr(buf_str(&f->got), "EXITED"));
    UNTIL(f, strstr(strstr(buf_str(&f->got), "EXITED"), "HEARTBEAT"));
    assert_null(strstr(buf_str(&f->got), "OUTPUT"));
}

static void a_group_without_a_command_runs_that_of_the_pod(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START, "{" WORLD ",\"processes\":[{\"rank\":0,\"localRank\":0}]}");
    expect(f, "EXITED {" GROUP ",\"rank\":0,\"exitCode\":9}");
}

static void a_command_that_cannot_be_run_is_said_with_the_reason(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START, "{" WORLD ",\"processes\":[{\"rank\":0,\"localRank\":0}],\"command\":[\"/no/such\"]}");
    expect(f, "EXITED {" GROUP ",\"rank\":0,\"exitCode\":127,\"message\":\"cannot start /no/such: no such file or "
              "directory: is it in the image?\"}");
}

static void master_addr_must_be_the_pod_of_rank_0(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP ",\"masterAddr\":\"127.0.0.1\",\"masterIP\":\"127.0.0.1\"}");
    expect(f, "PREPARED {" GROUP "}");
    for (int attempt = 1, ms = 200; attempt < 10; attempt++, ms *= 2) { // a busy machine may not look it up in time
        char body[256], told[64];
        snprintf(body, sizeof body,
                 "{\"group\":\"u-2\",\"attempt\":%d,\"masterAddr\":\"127.0.0.1\",\"masterIP\":\"127.0.0.9\","
                 "\"timeoutMs\":%d}",
                 attempt, ms);
        give(f, RECORD_PREPARE, body);
        snprintf(told, sizeof told, "PREPARED {\"group\":\"u-2\",\"attempt\":%d,\"error\":", attempt);
        UNTIL(f, strstr(buf_str(&f->got), told));
        if (strstr(buf_str(&f->got), "it resolves to"))
            break;
    }
    assert_non_null(
        strstr(buf_str(&f->got), "\"error\":\"127.0.0.1 does not resolve to 127.0.0.9, the pod of rank 0, within "));
    expect(f, " s: it resolves to 127.0.0.1\"}");
}

static void what_makes_no_sense_is_refused_and_nothing_else_happens(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_START, "{" WORLD "," BOTH "}");
    expect(f,
           "REFUSED {\"command\":\"START\"," GROUP ",\"code\":\"CONFLICT\",\"message\":\"attempt 1 of group u-1 cannot "
           "start: it is not prepared (Idle, attempt -1)\"}");
    give(f, RECORD_STOP, "{\"group\":7}");
    expect(f, "REFUSED {\"command\":\"STOP\",\"code\":\"INVALID\",\"message\":\"a command with contradictory values: ");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    expect(f, "PREPARED");
}

static void broken_records_end_the_connection_and_it_comes_back(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    expect(f, "HEARTBEAT");
    assert_int_equal(session_say(f->session, false, "0123456789abcdefg", 17, &err), 0);
    expect(f, "HELLO");
    assert_int_equal(f->upgrades, 2);
}

// The operator is away while a process ends. The other processes run on, and the next HELLO tells about the end.
static void what_happens_while_it_is_alone_is_in_the_next_hello(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START,
         "{" WORLD "," BOTH ",\"command\":[\"sh\",\"-c\",\"[ $RANK = 0 ] || { sleep 0.2; echo bye; exit 4; }; "
         "exec sleep 1000\"]}");
    expect(f, "STARTED");
    write_token(f, "second");
    f->silent = true;
    ws_session_close(f->session, FRAME_CLOSE_GOING_AWAY, "the operator restarts");
    UNTIL(f, agent_group_count(f->agent) == 1 &&
                 supervisor_process_at(agent_group_at(f->agent, 0), 1)->state == SUPERVISOR_PROCESS_GONE);
    f->silent = false;
    UNTIL(f, f->session);
    ws_session_close(f->session, FRAME_CLOSE_GOING_AWAY, "again"); // this connection may still report the process
    expect(f, "\"groups\":[{" GROUP ",\"state\":\"Running\",\"processes\":["
              "{\"rank\":0,\"attempt\":1,\"state\":\"Running\"},"
              "{\"rank\":1,\"attempt\":1,\"state\":\"Exited\",\"exitCode\":4,\"lastLines\":\"bye\\n\"}]}]}");
    assert_string_equal(f->authorization, "Bearer second");
}

// HELLO does not contain this event any more, and it must not get lost.
static void what_happens_between_hello_and_welcome_is_told_too(void **state)
{
    struct fixture *f = *state;
    char start[512], sign[64];
    snprintf(sign, sizeof sign, "/tmp/cadre-sign-%d", getpid());
    snprintf(start, sizeof start,
             "{" WORLD ",\"processes\":[{\"rank\":0,\"localRank\":0}],\"command\":[\"sh\",\"-c\",\"until [ -e %s ]; "
             "do sleep 0.02; done; exit 5\"]}",
             sign);
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START, start);
    expect(f, "STARTED");
    f->silent = true;
    ws_session_close(f->session, FRAME_CLOSE_GOING_AWAY, "the operator restarts");
    expect(f, "\"state\":\"Running\"}]}]}");
    close(open(sign, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    expect(f, "EXITED {" GROUP ",\"rank\":0,\"exitCode\":5}");
    unlink(sign);
}

static void who_is_refused_tries_again(void **state)
{
    struct fixture *f = *state;
    f->refuse = 401;
    UNTIL(f, f->upgrades >= 2);
    assert_string_equal(buf_str(&f->got), "");
    f->refuse = 0;
    expect(f, "HEARTBEAT");
}

// Returns whether the log contains this text.
static bool logged(const struct fixture *f, const char *text)
{
    char log[4096];
    ssize_t n = pread(f->log_fd, log, sizeof log - 1, 0);
    log[MAX(n, 0)] = '\0';
    return strstr(log, text);
}

static void a_reason_that_needs_somebody_is_said_also_after_others(void **state)
{
    struct fixture *f = *state;
    expect(f, "HELLO");
    UNTIL(f, logged(f, ": connected"));
    f->refuse = 503;
    ws_session_close(f->session, FRAME_CLOSE_GOING_AWAY, "");
    UNTIL(f, f->upgrades == 2);
    assert_true(logged(f, ": lost, trying again"));
    f->refuse = 403;
    UNTIL(f, f->upgrades == 4);
    assert_true(logged(f, ": not reached, trying again"));
    assert_true(logged(f, "who are you?"));
}

static void nothing_is_done_before_the_welcome(void **state)
{
    struct fixture *f = *state;
    f->silent = true;
    expect(f, "HELLO");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_WELCOME, "{\"heartbeatMs\":100}");
    expect(f, "HEARTBEAT");
    assert_null(strstr(buf_str(&f->got), "PREPARED"));
    assert_int_equal(agent_group_count(f->agent), 0);
}

static void the_end_of_the_pod_is_a_goodbye(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    give(f, RECORD_PREPARE, "{" GROUP "}");
    give(f, RECORD_START, "{" WORLD "," BOTH ",\"command\":[\"sleep\",\"1000\"]}");
    expect(f, "STARTED");
    operators_goodbye(f->operators);
    agent_shutdown(f->agent, 20000);
    expect(f, "GOODBYE {\"reason\":\"the pod ends\"}");
    UNTIL(f, f->done);
    operators_close(f->operators);
    expect(f, "STOPPED");
    assert_null(strstr(buf_str(&f->got), "GOODBYE")); // once is enough
    UNTIL(f, operators_closed(f->operators));
}

// Meanwhile, the connection to another replica may still be open.
static void news_of_gpus_after_the_end_is_passed_over(void **state)
{
    struct fixture *f = *state;
    expect(f, "HEARTBEAT");
    operators_close(f->operators);
    operators_gpus(f->operators);
    UNTIL(f, operators_closed(f->operators));
    operators_gpus(f->operators);
    UNTIL(f, !f->session);
    assert_non_null(strstr(buf_str(&f->got), "GOODBYE"));
    assert_null(strstr(strstr(buf_str(&f->got), "GOODBYE"), "HEARTBEAT"));
}

// The operator's view of the cluster may be late: it may not know a pod that exists already.
static void who_comes_too_early_comes_again(void **state)
{
    struct fixture *f = *state;
    f->silent = true;
    for (int i = 0; i < 3; i++) {
        expect(f, "HELLO");
        give(f, RECORD_ERROR, "{\"code\":\"UNAVAILABLE\",\"message\":\"pod ns/wg-0-0 is not known yet\"}");
        ws_session_close(f->session, FRAME_CLOSE_TRY_LATER, "try again");
        UNTIL(f, !f->session);
    }
    f->silent = false;
    expect(f, "HEARTBEAT");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(it_says_hello_with_its_token_and_sends_heartbeats),
        cmocka_unit_test_setup_teardown(gpus_are_told_with_heartbeats_and_only_when_there_is_news, setup_gpus,
                                        teardown),
        T(it_does_what_it_is_told_and_says_how_it_went),
        T(an_exit_comes_with_the_last_lines),
        T(lines_are_sent_while_the_operator_listens),
        T(and_not_otherwise),
        T(a_group_without_a_command_runs_that_of_the_pod),
        T(a_command_that_cannot_be_run_is_said_with_the_reason),
        T(master_addr_must_be_the_pod_of_rank_0),
        T(what_makes_no_sense_is_refused_and_nothing_else_happens),
        T(broken_records_end_the_connection_and_it_comes_back),
        T(what_happens_while_it_is_alone_is_in_the_next_hello),
        T(what_happens_between_hello_and_welcome_is_told_too),
        T(who_is_refused_tries_again),
        T(a_reason_that_needs_somebody_is_said_also_after_others),
        T(who_comes_too_early_comes_again),
        T(nothing_is_done_before_the_welcome),
        T(the_end_of_the_pod_is_a_goodbye),
        T(news_of_gpus_after_the_end_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
