// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/rank_output.h"

#include "common/base/mem.h"
#include "worker/agent/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct loop *loop;
    struct rank_output *output;
    struct output_process *process;
    int log[2];   // the pod's log
    int child[2]; // the process's standard output and error
    struct buf got;
};

static void start(struct fixture *f)
{
    struct err err = ERR_INIT;
    f->output = rank_output_new(f->loop, f->log[1], f->log[1]);
    f->process = rank_output_open(f->output, "[rank 2] ", f->child, &err);
    assert_non_null(f->process);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->got = BUF_INIT(64 * 1024 * 1024);
    f->child[0] = f->child[1] = -1;
    *state = f;
    return pipe2(f->log, O_CLOEXEC);
}

static void close_child(struct fixture *f)
{
    for (int i = 0; i < 2; i++) {
        if (f->child[i] >= 0)
            close(f->child[i]);
        f->child[i] = -1;
    }
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close_child(f);
    rank_output_close(f->process);
    rank_output_free(f->output);
    loop_free(f->loop);
    close(f->log[0]);
    close(f->log[1]);
    buf_done(&f->got);
    free(f);
    return 0;
}

static void print(const struct fixture *f, int stream, const char *text)
{
    assert_int_equal(write(f->child[stream], text, strlen(text)), strlen(text));
}

// Returns what has arrived in the log so far.
static const char *log_text(struct fixture *f)
{
    char bytes[8192];
    fcntl(f->log[0], F_SETFL, O_NONBLOCK);
    for (ssize_t n; (n = read(f->log[0], bytes, sizeof bytes)) > 0;)
        buf_append(&f->got, bytes, (size_t)n);
    return buf_str(&f->got);
}

static void until_log_is(struct fixture *f, const char *want)
{
    while (strlen(log_text(f)) < strlen(want))
        loop_run_once(f->loop, 1000);
    assert_string_equal(log_text(f), want);
}

static void lines_of_both_streams_come_with_the_rank_in_front(void **state)
{
    struct fixture *f = *state;
    start(f);
    print(f, 0, "hello\n");
    until_log_is(f, "[rank 2] hello\n");
    print(f, 1, "oops\n");
    until_log_is(f, "[rank 2] hello\n[rank 2] oops\n");
}

static void the_last_line_is_there_when_it_is_drained(void **state)
{
    struct fixture *f = *state;
    struct buf tail = BUF_INIT(8192);
    start(f);
    print(f, 0, "step 1\nstep");
    print(f, 1, "Segmentation fault");
    close_child(f);
    rank_output_drain(f->process);
    assert_string_equal(log_text(f), "[rank 2] step 1\n[rank 2] step\n[rank 2] Segmentation fault\n");
    rank_output_tail(f->process, &tail);
    assert_string_equal(buf_str(&tail), "step 1\nstepSegmentation fault");
    buf_done(&tail);
}

static void a_prompt_is_shown_although_its_line_does_not_end(void **state)
{
    struct fixture *f = *state;
    start(f);
    print(f, 0, "Password: ");
    until_log_is(f, "[rank 2] Password: \n");
}

static void what_outlives_its_process_is_still_forwarded(void **state)
{
    struct fixture *f = *state;
    start(f);
    rank_output_close(TAKE_PTR(f->process));
    print(f, 1, "late\n");
    until_log_is(f, "[rank 2] late\n");
    close_child(f);
    loop_run_once(f->loop, 1000); // both pipes end; the leak checker sees that nothing is left
    loop_run_once(f->loop, 1000);
}

static void the_agent_has_lines_of_its_own(void **state)
{
    struct fixture *f = *state;
    start(f);
    rank_output_say(f->output, "attempt %d begins", 3);
    assert_string_equal(log_text(f), "[agent] attempt 3 begins\n");
    assert_false(rank_output_pending(f->output));
}

// Fills the child's pipe and turns the loop until nothing moves any more. Returns how many bytes the child could write.
static size_t print_until_blocked(struct fixture *f)
{
    static char line[1024];
    size_t total = 0;
    memset(line, 'y', sizeof line);
    line[sizeof line - 1] = '\n';
    fcntl(f->child[0], F_SETFL, O_NONBLOCK);
    for (int idle = 0; idle < 3;) {
        ssize_t n = write(f->child[0], line, sizeof line);
        idle = n > 0 ? 0 : idle + 1;
        total += n > 0 ? (size_t)n : 0;
        while (n < 0 && loop_run_once(f->loop, 0) && (n = write(f->child[0], line, 1)) == 1)
            total++;
    }
    return total;
}

static void a_log_that_nobody_reads_blocks_the_process_and_not_us(void **state)
{
    struct fixture *f = *state;
    start(f);
    size_t printed = print_until_blocked(f);
    assert_true(printed > SINK_HIGH / 2); // some output was taken
    assert_true(printed < 2 * SINK_HIGH); // but not without a limit
    assert_true(rank_output_pending(f->output));
    close_child(f);
    while (rank_output_pending(f->output)) { // a reader reads again
        log_text(f);
        loop_run_once(f->loop, 1000);
    }
    rank_output_drain(f->process);
    log_text(f);
    size_t payload = 0;
    for (const char *p = buf_str(&f->got); (p = strchr(p, '\n')) != NULL; p++)
        payload++; // one prefix for each line
    assert_true(f->got.len >= printed + payload * strlen("[rank 2] "));
}

static void a_log_whose_reader_is_gone_stops_nobody(void **state)
{
    struct fixture *f = *state;
    signal(SIGPIPE, SIG_IGN);
    start(f);
    close(f->log[0]);
    f->log[0] = -1;
    char chunk[4096];
    memset(chunk, '\n', sizeof chunk);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(write(f->child[0], chunk, sizeof chunk), sizeof chunk);
        loop_run_once(f->loop, 1000);
    }
    assert_false(rank_output_pending(f->output));
    signal(SIGPIPE, SIG_DFL);
}

static void flags_of_the_log_that_others_share_stay_as_they_are(void **state)
{
    struct fixture *f = *state;
    start(f);
    print_until_blocked(f);
    assert_int_equal(fcntl(f->log[1], F_GETFL) & O_NONBLOCK, 0);
}

static void a_socket_as_log_works_too(void **state)
{
    struct fixture *f = *state;
    close(f->log[0]);
    close(f->log[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->log), 0);
    start(f);
    print_until_blocked(f);
    while (rank_output_pending(f->output)) {
        log_text(f);
        loop_run_once(f->loop, 1000);
    }
    assert_memory_equal(log_text(f), "[rank 2] yyy", 12);
    rank_output_close(TAKE_PTR(f->process));
    rank_output_free(TAKE_PTR(f->output));
    assert_int_equal(fcntl(f->log[1], F_GETFL) & O_NONBLOCK, 0); // as before
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(lines_of_both_streams_come_with_the_rank_in_front),
        T(the_last_line_is_there_when_it_is_drained),
        T(a_prompt_is_shown_although_its_line_does_not_end),
        T(what_outlives_its_process_is_still_forwarded),
        T(the_agent_has_lines_of_its_own),
        T(a_log_that_nobody_reads_blocks_the_process_and_not_us),
        T(a_log_whose_reader_is_gone_stops_nobody),
        T(flags_of_the_log_that_others_share_stay_as_they_are),
        T(a_socket_as_log_works_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
