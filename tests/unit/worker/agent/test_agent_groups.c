// SPDX-License-Identifier: Apache-2.0
// Several groups in one pod, with real processes. Each group has a life of its own.
#include "worker/agent/agent.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct loop *loop;
    struct agent *agent;
    int log[2];
    struct buf said;    // the pod's log
    struct buf reports; // "a prepared 1, "
    int taken_port;
};

static void on_report(void *ctx, const struct agent_report *r)
{
    static const char *const words[] = {"prepared", "unprepared", "started", "exited", "stopped"};
    struct fixture *f = ctx;
    buf_printf(&f->reports, "%s %s %d", r->group, words[r->type], r->attempt);
    if (r->type == SUPERVISOR_REPORT_EXITED)
        buf_printf(&f->reports, "/%d: %d", r->rank, r->code);
    buf_puts(&f->reports, ", ");
    if (r->port)
        f->taken_port = r->port;
}

static void on_done(void *ctx)
{
    (void)ctx;
}

static int setup(void **state)
{
    static const char *env[] = {"PATH=/usr/bin:/bin", "CADRE_GROUP_UID=pool", NULL};
    struct fixture *f = *state = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->said = BUF_INIT(1 << 20);
    f->reports = BUF_INIT(1 << 16);
    if (pipe2(f->log, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    f->agent = agent_new(&(struct agent_config){.loop = f->loop,
                                                .out = f->log[1],
                                                .err = f->log[1],
                                                .env = env,
                                                .gpus = 4,
                                                .report = on_report,
                                                .done = on_done,
                                                .ctx = f});
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    agent_free(f->agent);
    loop_free(f->loop);
    close(f->log[0]);
    close(f->log[1]);
    buf_done(&f->said);
    buf_done(&f->reports);
    free(f);
    return 0;
}

static bool has(const struct buf *in, const char *what)
{
    return strstr(buf_str(in), what) != NULL;
}

static void until(struct fixture *f, const struct buf *in, const char *what)
{
    int64_t end = clock_mono_ms(&clock_system) + PATIENCE_MS;
    char text[4096];
    while (!has(in, what)) {
        if (clock_mono_ms(&clock_system) > end)
            fail_msg("no \"%s\" in \"%s\"", what, buf_str(in));
        loop_run_once(f->loop, 20);
        for (ssize_t n; (n = read(f->log[0], text, sizeof text)) > 0;)
            buf_append(&f->said, text, (size_t)n);
    }
}

static void give(struct fixture *f, enum record_type type, const char *json)
{
    struct err err = ERR_INIT;
    struct command *c = NULL;
    if (command_parse(type, json, strlen(json), &c, &err) < 0 || agent_command(f->agent, c, &err) < 0)
        fail_msg("%s", err.msg);
    command_unref(c);
}

static void start(struct fixture *f, const char *group, int attempt, const char *processes, const char *script)
{
    struct arena a = ARENA_INIT;
    give(f, RECORD_PREPARE, arena_printf(&a, "{\"group\":\"%s\",\"attempt\":%d}", group, attempt));
    give(
        f, RECORD_START,
        arena_printf(&a,
                     "{\"group\":\"%s\",\"attempt\":%d,\"name\":\"group-%s\",\"namespace\":\"ml\",\"masterAddr\":\"m\","
                     "\"masterPort\":29500,\"worldSize\":4,\"nodes\":2,\"nodeRank\":0,\"localWorldSize\":2,"
                     "\"gpus\":{\"indices\":[0,1,2,3]},\"processes\":%s,\"command\":[\"sh\",\"-c\",\"%s\"]}",
                     group, attempt, group, processes, script));
    arena_done(&a);
}

static void groups_start_and_stop_beside_each_other(void **state)
{
    struct fixture *f = *state;
    start(f, "a", 1, "[{\"rank\":0,\"localRank\":0},{\"rank\":1,\"localRank\":1}]",
          "echo I am $RANK of $GROUP_NAME; exec sleep 1000");
    start(f, "b", 5, "[{\"rank\":0,\"localRank\":0}]", "echo I am $RANK of $GROUP_NAME; exec sleep 1000");
    until(f, &f->reports, "a started 1");
    until(f, &f->reports, "b started 5");
    until(f, &f->said, "[group-a rank 1] I am 1 of group-a\n");
    until(f, &f->said, "[group-b rank 0] I am 0 of group-b\n");
    give(f, RECORD_STOP, "{\"group\":\"a\",\"attempt\":1,\"graceMs\":0}");
    until(f, &f->reports, "a stopped 1");
    assert_false(has(&f->reports, "b exited"));
    start(f, "a", 2, "[{\"rank\":0,\"localRank\":0}]", "exit 3");
    until(f, &f->reports, "a exited 2/0: 3");
    until(f, &f->said, "[agent] group-a rank 0: exit code 3\n");
    assert_false(has(&f->reports, "b exited"));
}

static void each_process_sees_the_gpus_that_it_was_given(void **state)
{
    struct fixture *f = *state;
    start(f, "a", 1, "[{\"rank\":0,\"localRank\":0,\"gpus\":[2]},{\"rank\":1,\"localRank\":1,\"gpus\":[3]}]",
          "echo $RANK sees $CUDA_VISIBLE_DEVICES, device $CADRE_DEVICE");
    start(f, "b", 1, "[{\"rank\":2,\"localRank\":0,\"gpus\":[2,3]}]",
          "echo $RANK sees $CUDA_VISIBLE_DEVICES, device $CADRE_DEVICE");
    until(f, &f->said, "[group-a rank 0] 0 sees 2, device 0\n");
    until(f, &f->said, "[group-a rank 1] 1 sees 3, device 0\n");
    until(f, &f->said, "[group-b rank 2] 2 sees 2,3, device 0\n");
}

// Both groups have a process that has left its session. The one of the group that ends must end too, because it would
// keep the GPU. The other one stays.
static void what_a_group_leaves_behind_ends_while_another_runs_on(void **state)
{
    struct fixture *f = *state;
    const char *script = "echo $(setsid sh -c 'read pid rest </proc/self/stat; echo left $GROUP_NAME $pid end; exec "
                         "sleep 1000 >/dev/null' &)"; // this shell ends when the other process sleeps
    start(f, "b", 1, "[{\"rank\":0,\"localRank\":0},{\"rank\":1,\"localRank\":1}]",
          "[ $RANK = 0 ] && exec sleep 1000; setsid sh -c 'read pid rest </proc/self/stat; echo left $GROUP_NAME $pid "
          "end; exec sleep 1000' & wait");
    until(f, &f->said, "left group-b");
    start(f, "a", 1, "[{\"rank\":0,\"localRank\":0}]", script);
    until(f, &f->said, "left group-a");
    until(f, &f->said, " end\n");
    until(f, &f->reports, "a exited 1/0: 0");
    give(f, RECORD_STOP, "{\"group\":\"a\",\"attempt\":1,\"graceMs\":1000}");
    until(f, &f->reports, "a stopped 1");
    const char *a = strstr(buf_str(&f->said), "left group-a "), *b = strstr(buf_str(&f->said), "left group-b ");
    pid_t of_a = (pid_t)strtol(a + strlen("left group-a "), NULL, 10);
    pid_t of_b = (pid_t)strtol(b + strlen("left group-b "), NULL, 10);
    assert_true(of_a > 0 && of_b > 0);
    while (kill(of_a, 0) == 0)
        loop_run_once(f->loop, 10);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(kill(of_b, 0), 0);
    give(f, RECORD_STOP, "{\"group\":\"b\",\"attempt\":1,\"graceMs\":0}");
    until(f, &f->reports, "b stopped 1");
}

static void a_port_that_somebody_has_is_reported(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    struct arena a = ARENA_INIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    int port = ntohs(address.sin_port);
    const char *prepare = arena_printf(&a, "{\"group\":\"a\",\"attempt\":1,\"masterPort\":%d}", port);
    give(f, RECORD_PREPARE, prepare);
    assert_string_equal(buf_str(&f->reports), "a unprepared 1, ");
    assert_int_equal(f->taken_port, port);
    until(f, &f->said, arena_printf(&a, "rank 0 cannot listen on port %d", port));
    close(fd);
    give(f, RECORD_PREPARE, prepare);
    until(f, &f->reports, "a prepared 1, ");
    arena_done(&a);
}

// Returns the pid that a script has printed after "pid ".
static pid_t pid_said(struct fixture *f)
{
    until(f, &f->said, "pid ");
    const char *at = strstr(buf_str(&f->said), "pid ") + strlen("pid ");
    until(f, &f->said, ".\n"); // the whole line
    pid_t pid = (pid_t)strtol(at, NULL, 10);
    assert_true(pid > 1);
    return pid;
}

static void start_hanging(struct fixture *f)
{
    start(f, "a", 1, "[{\"rank\":0,\"localRank\":0}]", "echo pid $$$$.; exec sleep 1000");
    until(f, &f->reports, "a started 1, ");
    pid_t pid = pid_said(f);
    siginfo_t stopped;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &stopped, WSTOPPED | WNOWAIT), 0); // it may still run
}

static void is_killed(struct fixture *f)
{
    give(f, RECORD_KILL, "{\"group\":\"a\",\"attempt\":1,\"rank\":0}");
    until(f, &f->reports, "a exited 1/0: 137, a stopped 1, ");
    until(f, &f->said, "was killed by a client (group.kill)");
}

// A process that is stopped (SIGSTOP) does not handle SIGTERM.
static void who_hangs_while_its_group_is_stopped_is_killed_on_demand(void **state)
{
    struct fixture *f = *state;
    start_hanging(f);
    give(f, RECORD_STOP, "{\"group\":\"a\",\"attempt\":1,\"graceMs\":600000}");
    is_killed(f);
}

static void is_refused(struct fixture *f, enum record_type type, const char *json)
{
    struct command *c = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(command_parse(type, json, strlen(json), &c, &err), 0);
    assert_int_equal(agent_command(f->agent, c, &err), ERR_CONFLICT);
    command_unref(c);
}

static void and_who_hangs_while_the_pod_ends(void **state)
{
    struct fixture *f = *state;
    start_hanging(f);
    agent_shutdown(f->agent, 600000);
    is_refused(f, RECORD_KILL, "{\"group\":\"b\",\"attempt\":0,\"rank\":0}"); // the group does not exist
    is_killed(f);
}

static void while_the_pod_ends_a_group_that_rests_does_not_start_again(void **state)
{
    struct fixture *f = *state;
    start(f, "b", 1, "[{\"rank\":0,\"localRank\":0}]", "exec sleep 1000");
    until(f, &f->reports, "b started 1");
    give(f, RECORD_STOP, "{\"group\":\"b\",\"attempt\":1,\"graceMs\":0}");
    until(f, &f->reports, "b stopped 1");
    start_hanging(f);
    agent_shutdown(f->agent, 600000);
    is_refused(f, RECORD_PREPARE, "{\"group\":\"b\",\"attempt\":2}");
    is_killed(f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(groups_start_and_stop_beside_each_other),
        T(each_process_sees_the_gpus_that_it_was_given),
        T(what_a_group_leaves_behind_ends_while_another_runs_on),
        T(a_port_that_somebody_has_is_reported),
        T(who_hangs_while_its_group_is_stopped_is_killed_on_demand),
        T(and_who_hangs_while_the_pod_ends),
        T(while_the_pod_ends_a_group_that_rests_does_not_start_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
