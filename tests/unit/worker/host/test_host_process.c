// SPDX-License-Identifier: Apache-2.0
// The program cadre-worker: its exit codes, its last lines, and what it does for a proxy.
#include "common/base/mem.h"
#include "tests/fakeapi/certs.h"
#include "tests/unit/worker/host/host_proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct loop *loop;
    struct host_proxy proxy;
    pid_t pid; // 0 = no worker runs
    int status;
    int fd;                  // its stdout and stderr
    struct buf out;          // what was read from them
    char *operator_url, *ca; // for the environment; NULL = not set
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->out = BUF_INIT((size_t)1 << 20);
    f->fd = -1;
    host_proxy_init(&f->proxy, f->loop);
    host_proxy_start(&f->proxy);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->pid) {
        kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
    }
    if (f->fd >= 0)
        close(f->fd);
    host_proxy_done(&f->proxy);
    loop_free(f->loop);
    buf_done(&f->out);
    free(f->operator_url);
    free(f->ca);
    free(f);
    return 0;
}

// Starts cadre-worker as rank 2 of 4, with up to six further arguments.
static void start(struct fixture *f, ...)
{
    const char *argv[16] = {WORKER};
    const char *env[] = {"RANK=2",
                         "WORLD_SIZE=4",
                         "CADRE_TICKET=secret",
                         "ASAN_OPTIONS=handle_segv=0:handle_abort=0",
                         f->operator_url,
                         f->operator_url ? f->ca : NULL,
                         NULL};
    int fds[2], n = 1;
    va_list ap;
    va_start(ap, f);
    for (char *arg; n < 15 && (arg = va_arg(ap, char *)) != NULL;)
        argv[n++] = arg;
    va_end(ap);
    if (f->fd >= 0)
        close(f->fd);
    buf_reset(&f->out);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
    assert_int_equal(posix_spawn(&f->pid, WORKER, &actions, NULL, (char **)argv, (char **)env), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    f->fd = fds[0];
    assert_int_equal(fcntl(f->fd, F_SETFL, O_NONBLOCK), 0);
}

static bool said(struct fixture *f, const char *text)
{
    char data[4096];
    for (ssize_t n; (n = read(f->fd, data, sizeof data)) > 0;)
        buf_append(&f->out, data, (size_t)n);
    return strstr(buf_str(&f->out), text) != NULL;
}

static bool ended(struct fixture *f)
{
    if (f->pid && waitpid(f->pid, &f->status, WNOHANG) == f->pid)
        f->pid = 0;
    return f->pid == 0;
}

static void wait_end(struct fixture *f)
{
    HOST_UNTIL(&f->proxy, ended(f));
    said(f, "");
}

static const char *last_line(struct fixture *f)
{
    char *end = f->out.data + f->out.len;
    assert_true(f->out.len > 1 && end[-1] == '\n');
    end[-1] = '\0';
    char *line = strrchr(f->out.data, '\n');
    return line ? line + 1 : f->out.data;
}

static void assert_exit(struct fixture *f, int code, const char *text)
{
    wait_end(f);
    if (!WIFEXITED(f->status) || WEXITSTATUS(f->status) != code)
        fail_msg("ended with status 0x%x, expected exit code %d: %s", f->status, code, buf_str(&f->out));
    if (!strstr(last_line(f), text))
        fail_msg("last line is \"%s\", expected \"%s\"", last_line(f), text);
}

static void wrong_usage_is_64(void **state)
{
    struct fixture *f = *state;
    start(f, NULL);
    assert_exit(f, 64, "--module is missing");
    start(f, "--module", ECHO_SO, NULL);
    assert_exit(f, 64, "--connect is missing");
    start(f, "--module", ECHO_SO, "--connect", "http://x:1", NULL);
    assert_exit(f, 64, "--connect http://x:1: must be unix:/path, ws://host:port[/path] or wss://host:port[/path]");
    start(f, "--nonsense", NULL);
    assert_exit(f, 64, "--help");
    start(f, "extra", NULL);
    assert_exit(f, 64, "unexpected argument extra");
    start(f, "--module", ECHO_SO, "--connect", "ws://no-port/", NULL);
    assert_exit(f, 64, "no-port");
}

static void a_module_that_cannot_be_used_is_65(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", "/nowhere.so", "--connect", f->proxy.address, NULL);
    assert_exit(f, 65, "cadre-worker: rank 2: module /nowhere.so: No such file or directory");
    start(f, "--module", OTHER_ABI_SO, "--connect", f->proxy.address, NULL);
    assert_exit(f, 65, "was built for ABI 4, this cadre-worker speaks 3: rebuild it");
    start(f, "--module", ECHO_SO, "--class", "Trainer", "--connect", f->proxy.address, NULL);
    assert_exit(f, 65, "has no class Trainer; it has Echo");
}

static void a_constructor_that_fails_is_66_and_has_the_last_word(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", MISBEHAVING_SO, "--class", "Failing", "--connect", f->proxy.address, NULL);
    assert_exit(f, 66, "cadre-worker: rank 2: Failing: no weights at /weights/model.bin");
    start(f, "--module", MISBEHAVING_SO, "--class", "Silent", "--connect", f->proxy.address, NULL);
    assert_exit(f, 66, "Silent: the constructor failed (cadre_result 5) and did not say why");
    start(f, "--module", ACCUMULATOR_SO, "--init", "{\"start\":\"x\"}", "--connect", f->proxy.address, NULL);
    assert_exit(f, 66, "Accumulator: init: \"start\" must be a number that fits a double, it is a string");
    start(f, "--module", ACCUMULATOR_SO, "--init", "{", "--connect", f->proxy.address, NULL);
    assert_exit(f, 66, "the constructor's argument (init): not valid JSON");
    assert_int_equal(f->proxy.n_hello, 0); // the proxy hears nothing about a worker that failed
}

static void a_class_can_be_described_without_a_proxy(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", COUNTER_SO, "--describe", NULL);
    assert_exit(f, 0,
                "{\"module\":\"counter\",\"class\":\"Counter\",\"methods\":[{\"name\":\"increment\",\"dispatch\":"
                "\"ONE_TO_ALL\",\"execute\":\"ALL\",\"doc\":\"adds one and returns the count\"},{\"name\":");
}

static void a_worker_serves_until_it_is_told_to_stop(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", ACCUMULATOR_SO, "--class", "Accumulator", "--init", "{\"start\":10}", "--connect",
          f->proxy.address, NULL);
    HOST_UNTIL(&f->proxy, said(f, "rank 2: ready for calls"));
    assert_true(host_proxy_came(&f->proxy, "\"rank\":2,\"attempt\":0,\"ticket\":\"secret\""));
    host_proxy_call(&f->proxy, 1, "{\"method\":\"add\"}", "{\"x\":1}");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"get_value\"}", "");
    HOST_UNTIL(&f->proxy, host_proxy_came(&f->proxy, "RESULT 1 13\nRESULT 2 13\n"));
    kill(f->pid, SIGTERM);
    assert_exit(f, 0, "ready for calls");
    HOST_UNTIL(&f->proxy, host_proxy_came(&f->proxy, "GOODBYE 0 {\"reason\":\"the worker was told to stop\"}\nclosed"));
}

// As in a pod: no address on the command line, but the operator's name and its CA in the environment.
static void without_an_address_it_dials_the_operator(void **state)
{
    struct fixture *f = *state;
    struct certs certs;
    certs_make(&certs);
    host_proxy_stop(&f->proxy);
    unlink(f->proxy.address + strlen("unix:"));
    snprintf(f->proxy.address, sizeof f->proxy.address, "127.0.0.1:0");
    f->proxy.cert_pem = certs.server_cert;
    f->proxy.key_pem = certs.server_key;
    f->proxy.welcome = "{\"ticket\":\"second\"}";
    host_proxy_start(&f->proxy);
    f->operator_url = xasprintf("CADRE_OPERATOR=wss://127.0.0.1:%d", f->proxy.port);
    f->ca = xasprintf("CADRE_CA=%s", certs.ca);
    start(f, "--module", ECHO_SO, NULL);
    HOST_UNTIL(&f->proxy, said(f, "rank 2: ready for calls"));
    assert_string_equal(f->proxy.path, "/v1/connect");
    assert_true(host_proxy_came(&f->proxy, "\"ticket\":\"secret\""));
    ws_session_close(f->proxy.peer, FRAME_CLOSE_GOING_AWAY, "it restarts");
    HOST_UNTIL(&f->proxy, host_proxy_came(&f->proxy, "\"ticket\":\"second\""));
    host_proxy_call(&f->proxy, 1, "{\"method\":\"echo\"}", "[1]");
    HOST_UNTIL(&f->proxy, host_proxy_came(&f->proxy, "RESULT 1 [1]\n"));
    kill(f->pid, SIGTERM);
    wait_end(f);
    assert_true(WIFEXITED(f->status) && WEXITSTATUS(f->status) == 0);
    host_proxy_stop(&f->proxy);
    certs_done(&certs);
}

#define BOTH "[{\"name\":\"actor\",\"class\":\"Actor\"},{\"name\":\"critic\",\"class\":\"Critic\",\"init\":{\"b\":10}}]"

static void roles_are_objects_of_their_own_in_one_process(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", TENSOR_SO, "--roles", BOTH, "--connect", f->proxy.address, NULL);
    HOST_UNTIL(&f->proxy, f->proxy.n_hello);
    assert_true(host_proxy_came(&f->proxy, "\"module\":\"tensor\",\"roles\":[{\"name\":\"actor\",\"class\":\"Actor\","
                                           "\"methods\":[{\"name\":\"add\","));
    assert_true(
        host_proxy_came(&f->proxy, "{\"name\":\"critic\",\"class\":\"Critic\",\"methods\":[{\"name\":\"sub\","));
    host_proxy_call(&f->proxy, 1, "{\"method\":\"add\",\"role\":\"actor\"}", "{\"a\":[0]}");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"sub\",\"role\":\"critic\"}", "{\"a\":[0]}");
    HOST_UNTIL(&f->proxy, host_proxy_came(&f->proxy, "RESULT 1 {\"a\":[2]}\nRESULT 2 {\"a\":[-10]}\n"));
    host_proxy_call(&f->proxy, 3, "{\"method\":\"add\"}", "");
    HOST_UNTIL(&f->proxy,
               host_proxy_came(&f->proxy, "ERROR 3 {\"code\":\"INVALID\",\"message\":\"the group has roles, and "
                                          "the call names none; there are: actor, critic\",\"ran\":false}"));
    host_proxy_call(&f->proxy, 4, "{\"method\":\"add\",\"role\":\"judge\"}", "");
    HOST_UNTIL(&f->proxy,
               host_proxy_came(&f->proxy, "ERROR 4 {\"code\":\"NOT_FOUND\",\"message\":\"there is no role 'judge' "
                                          "here; there are: actor, critic\",\"ran\":false}"));
    kill(f->pid, SIGTERM);
    assert_exit(f, 0, "ready for calls");
}

static void the_first_role_that_cannot_be_made_ends_the_process(void **state)
{
    struct fixture *f = *state;
    start(
        f, "--module", TENSOR_SO, "--roles",
        "[{\"name\":\"actor\",\"class\":\"Actor\"},{\"name\":\"critic\",\"class\":\"Critic\",\"init\":{\"b\":\"x\"}}]",
        "--connect", f->proxy.address, NULL);
    assert_exit(f, 66, "rank 2: role critic: Critic: init: \"b\" must be a number that fits a double, it is a string");
    start(f, "--module", TENSOR_SO, "--roles", "[{\"name\":\"actor\",\"class\":\"Player\"}]", "--describe", NULL);
    assert_exit(f, 65, "role actor: module " TENSOR_SO " has no class Player; it has Actor, Critic");
    start(f, "--module", TENSOR_SO, "--roles",
          "[{\"name\":\"a\",\"class\":\"Actor\"},{\"name\":\"a\",\"class\":\"Critic\"}]", "--describe", NULL);
    assert_exit(f, 65, "roles: a is there twice");
    start(f, "--module", TENSOR_SO, "--roles", "[]", "--describe", NULL);
    assert_exit(f, 65, "roles: must be a list of 1 to 16");
    start(f, "--module", TENSOR_SO, "--roles", BOTH, "--class", "Actor", "--describe", NULL);
    assert_exit(f, 64, "--roles with --class or --init: each role has a class and an init of its own");
    assert_int_equal(f->proxy.n_hello, 0);
}

static void an_operator_that_is_not_there_yet_is_waited_for(void **state)
{
    struct fixture *f = *state;
    f->operator_url = xstrdup("CADRE_OPERATOR=ws://no-such-name.invalid:9443");
    start(f, "--module", ECHO_SO, NULL);
    HOST_UNTIL(&f->proxy, said(f, "rank 2: no operator yet: "));
    kill(f->pid, SIGTERM);
    assert_exit(f, 0, "no operator yet");
}

static void an_operator_that_cannot_be_one_is_64(void **state)
{
    struct fixture *f = *state;
    f->operator_url = xstrdup("CADRE_OPERATOR=https://operator:9443");
    start(f, "--module", ECHO_SO, NULL);
    assert_exit(f, 64, "is not the address of an operator: it must be wss://HOST:PORT");
}

static void two_increments_give_one_and_two(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", COUNTER_SO, "--connect", f->proxy.address, NULL);
    HOST_UNTIL(&f->proxy, f->proxy.n_hello);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"increment\"}", "");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"increment\"}", "");
    host_proxy_call(&f->proxy, 3, "{\"method\":\"get_value\"}", "");
    HOST_UNTIL(&f->proxy, host_proxy_came(&f->proxy, "RESULT 1 1\nRESULT 2 2\nRESULT 3 2\n"));
}

static void stopping_cancels_what_runs_and_destroys_the_object(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", MISBEHAVING_SO, "--class", "Misbehaving", "--connect", f->proxy.address, NULL);
    HOST_UNTIL(&f->proxy, f->proxy.n_hello);
    host_proxy_call(&f->proxy, 1, "{\"method\":\"fail_silently\"}", "");
    host_proxy_call(&f->proxy, 2, "{\"method\":\"hold\"}", "");
    HOST_UNTIL(&f->proxy, host_proxy_came(&f->proxy, "ERROR 1 {\"code\":\"NOMEM\""));
    kill(f->pid, SIGTERM);
    assert_exit(f, 0, "destroyed");
}

// The constructor may wait for something that never comes, and there is nothing to destroy.
static void a_constructor_that_hangs_does_not_hold_up_the_stop(void **state)
{
    struct fixture *f = *state;
    start(f, "--module", MISBEHAVING_SO, "--class", "Hanging", "--connect", f->proxy.address, NULL);
    HOST_UNTIL(&f->proxy, said(f, "constructing"));
    kill(f->pid, SIGTERM);
    assert_exit(f, 0, "rank 2: told to stop while the constructor runs");
}

static void assert_dies(struct fixture *f, const char *head, int signo, const char *words)
{
    f->proxy.n_hello = 0;
    start(f, "--module", MISBEHAVING_SO, "--class", "Misbehaving", "--connect", f->proxy.address, NULL);
    HOST_UNTIL(&f->proxy, f->proxy.n_hello);
    host_proxy_call(&f->proxy, 1, head, "");
    wait_end(f);
    assert_true(WIFSIGNALED(f->status));
    assert_int_equal(WTERMSIG(f->status), signo);
    assert_string_equal(last_line(f), words);
    HOST_UNTIL(&f->proxy, !f->proxy.peer); // the proxy notices by the socket
}

static void a_crash_says_where_and_dies_of_its_signal(void **state)
{
    struct fixture *f = *state;
    assert_dies(f, "{\"method\":\"crash\"}", SIGSEGV,
                "cadre-worker: rank 2 died of SIGSEGV (invalid memory access) while it ran Misbehaving.crash");
    assert_dies(f, "{\"method\":\"give_up\"}", SIGABRT,
                "cadre-worker: rank 2 died of SIGABRT (it aborted) while it ran Misbehaving.give_up");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PROCESS_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        PROCESS_TEST(wrong_usage_is_64),
        PROCESS_TEST(a_module_that_cannot_be_used_is_65),
        PROCESS_TEST(a_constructor_that_fails_is_66_and_has_the_last_word),
        PROCESS_TEST(a_class_can_be_described_without_a_proxy),
        PROCESS_TEST(a_worker_serves_until_it_is_told_to_stop),
        PROCESS_TEST(without_an_address_it_dials_the_operator),
        PROCESS_TEST(roles_are_objects_of_their_own_in_one_process),
        PROCESS_TEST(the_first_role_that_cannot_be_made_ends_the_process),
        PROCESS_TEST(an_operator_that_is_not_there_yet_is_waited_for),
        PROCESS_TEST(an_operator_that_cannot_be_one_is_64),
        PROCESS_TEST(two_increments_give_one_and_two),
        PROCESS_TEST(stopping_cancels_what_runs_and_destroys_the_object),
        PROCESS_TEST(a_constructor_that_hangs_does_not_hold_up_the_stop),
        PROCESS_TEST(a_crash_says_where_and_dies_of_its_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
