// SPDX-License-Identifier: Apache-2.0
// The GPUs of a pod as the agent knows them. The program that watches them is the real one. The driver is a stand-in
// (tests/unit/worker/device/nvml_stand_in.c).
#include "worker/agent/probe.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TWO_WELL "gpu GPU-aa H200 0 40 0 0 ok\ngpu GPU-bb H200 0 40 0 0 ok\n"
#define WORLD                                                                                                \
    "{\"group\":\"u-1\",\"attempt\":1,\"name\":\"wg\",\"namespace\":\"ns\",\"nodes\":3,\"nodeRank\":2,"      \
    "\"masterAddr\":\"m\",\"masterPort\":29500,\"worldSize\":6,\"localWorldSize\":2,\"command\":[\"sleep\"," \
    "\"1000\"],\"processes\":[{\"rank\":4,\"localRank\":0},{\"rank\":5,\"localRank\":1}]"

struct fixture {
    struct loop *loop;
    struct agent *agent;
    struct probe *probe;
    struct buf said; // what probe_write() has written last
    char control[64], library[256], file[96];
    const char *env[5];
    int log_fd, urgent;
};

static void on_report(void *ctx, const struct agent_report *r)
{
    (void)ctx, (void)r;
}

static void on_done(void *ctx)
{
    (void)ctx;
}

static void on_changed(void *ctx, bool urgent)
{
    struct fixture *f = ctx;
    f->urgent += urgent;
}

static void driver_says(struct fixture *f, const char *lines)
{
    char part[80];
    snprintf(part, sizeof part, "%s.part", f->control);
    FILE *file = fopen(part, "we");
    assert_true(fputs(lines, file) >= 0);
    fclose(file);
    assert_int_equal(rename(part, f->control), 0);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    const char *driver = getenv("CADRE_TEST_DRIVER");
    *state = f;
    f->said = BUF_INIT(1 << 20);
    f->loop = loop_new();
    f->log_fd = memfd_create("log", MFD_CLOEXEC);
    snprintf(f->control, sizeof f->control, "/tmp/cadre-probe-%d", getpid());
    snprintf(f->library, sizeof f->library, "LD_LIBRARY_PATH=%s", driver ? driver : "");
    snprintf(f->file, sizeof f->file, "NVML_STAND_IN=%s", f->control);
    f->env[0] = "PATH=/usr/bin:/bin";
    f->env[1] = f->library;
    f->env[2] = f->file;
    const struct agent_config config = {.loop = f->loop,
                                        .out = f->log_fd,
                                        .err = f->log_fd,
                                        .env = f->env,
                                        .gpus = 2,
                                        .report = on_report,
                                        .done = on_done,
                                        .ctx = f};
    f->agent = agent_new(&config);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    probe_free(f->probe);
    agent_free(f->agent);
    loop_free(f->loop);
    close(f->log_fd);
    unlink(f->control);
    buf_done(&f->said);
    free(f);
    return 0;
}

static void watch_by(struct fixture *f, const char *const *argv)
{
    const struct probe_config config = {.loop = f->loop,
                                        .agent = f->agent,
                                        .argv = argv,
                                        .env = f->env,
                                        .pod_gpus = 2,
                                        .err = f->log_fd,
                                        .changed = on_changed,
                                        .ctx = f};
    f->probe = probe_new(&config);
}

static void watch(struct fixture *f)
{
    const char *const argv[] = {getenv("CADRE_TEST_GPUS"), "--interval-ms", "10", NULL};
    assert_non_null(argv[0]);
    watch_by(f, argv);
}

static bool says(struct fixture *f, const char *text)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    probe_write(f->probe, &w);
    writer_object_end(&w);
    buf_reset(&f->said);
    buf_puts(&f->said, buf_str(&w.buf));
    writer_done(&w);
    return strstr(buf_str(&f->said), text) != NULL;
}

static bool logged(const struct fixture *f, const char *text)
{
    char log[64 * 1024];
    ssize_t n = pread(f->log_fd, log, sizeof log - 1, 0);
    log[MAX(n, 0)] = '\0';
    return strstr(log, text) != NULL;
}

#define UNTIL(f, condition) TURN_UNTIL(loop_run_once((f)->loop, 100), condition, buf_str(&(f)->said))

static void command(struct fixture *f, enum record_type type, const char *body)
{
    struct err err = ERR_INIT;
    struct command *c = NULL;
    if (command_parse(type, body, strlen(body), &c, &err) < 0 || agent_command(f->agent, c, &err) < 0)
        fail_msg("%s", err.msg);
    command_unref(c);
}

static void each_rank_has_its_share(void **state)
{
    struct fixture *f = *state;
    driver_says(f, TWO_WELL);
    watch(f);
    assert_int_equal(probe_version(f->probe), 0);
    UNTIL(f, says(f, "{\"index\":0,\"uuid\":\"GPU-aa\",\"name\":\"H200\",\"state\":\"Ok\",\"memoryBytes\":1000,"));
    assert_true(probe_version(f->probe) > 0);
    assert_false(says(f, "ranks")); // no process runs
    command(f, RECORD_PREPARE, "{\"group\":\"u-1\",\"attempt\":1}");
    command(f, RECORD_START, WORLD "}");
    assert_true(says(f, "\"eccUncorrected\":0,\"ranks\":[{\"group\":\"u-1\",\"rank\":4}]},{\"index\":1,"));
    assert_true(says(f, "\"ranks\":[{\"group\":\"u-1\",\"rank\":5}]}]"));
}

static void names_instead_of_numbers_are_found(void **state)
{
    struct fixture *f = *state;
    f->env[3] = "CUDA_VISIBLE_DEVICES=GPU-bb,GPU-aa"; // the reverse order
    driver_says(f, TWO_WELL);
    watch(f);
    UNTIL(f, says(f, "GPU-bb"));
    command(f, RECORD_PREPARE, "{\"group\":\"u-1\",\"attempt\":1}");
    command(f, RECORD_START, WORLD ",\"gpus\":{\"visibility\":\"All\"}}");
    assert_true(says(f, "\"eccUncorrected\":0,\"ranks\":[{\"group\":\"u-1\",\"rank\":5}]},{\"index\":1,"));
}

static void a_loss_and_an_error_are_urgent_and_said(void **state)
{
    struct fixture *f = *state;
    driver_says(f, TWO_WELL);
    watch(f);
    UNTIL(f, probe_version(f->probe) > 2); // the same values again are not news
    assert_int_equal(f->urgent, 0);
    driver_says(f, "gpu GPU-aa H200 0 40 2 48 ok\ngpu GPU-bb H200 0 40 0 0 ok\n");
    UNTIL(f, f->urgent >= 1 && says(f, "\"xid\":48") && says(f, "\"eccUncorrected\":2"));
    UNTIL(f, logged(f, "GPU 0 (H200, GPU-aa): Xid 48, 2 uncorrected ECC errors"));
    driver_says(f, "gpu GPU-aa H200 0 40 2 48 ok\ngpu GPU-bb H200 0 40 0 0 lost\n");
    UNTIL(f, says(f, "\"uuid\":\"GPU-bb\",\"name\":\"H200\",\"state\":\"Lost\""));
    UNTIL(f, logged(f, "GPU 1 (H200, GPU-bb) fell off the bus"));
}

static void a_driver_that_hangs_holds_nobody_up(void **state)
{
    struct fixture *f = *state;
    driver_says(f, "hang\n");
    watch(f);
    command(f, RECORD_PREPARE, "{\"group\":\"u-1\",\"attempt\":1}");
    command(f, RECORD_START, WORLD "}");
    UNTIL(f, supervisor_process_at(agent_group_at(f->agent, 0), 1)->state == SUPERVISOR_PROCESS_RUNNING);
    assert_int_equal(probe_version(f->probe), 0);
    driver_says(f, TWO_WELL);
    UNTIL(f, says(f, "GPU-bb"));
}

static void without_a_driver_there_are_no_gpus_which_is_said_once(void **state)
{
    struct fixture *f = *state;
    f->env[1] = "LANG=C";
    watch(f);
    UNTIL(f, logged(f, "GPUs: not watched: there is no NVIDIA driver here: libnvidia-ml.so.1: cannot open"));
    for (int i = 0; i < 10; i++)
        loop_run_once(f->loop, 10);
    assert_false(logged(f, "has ended"));
    assert_int_equal(probe_version(f->probe), 0);
}

static int n_pipes_fail, n_forks_fail; // the next ones

int __real_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags)
{
    if (!n_pipes_fail)
        return __real_pipe2(ends, flags);
    n_pipes_fail--;
    errno = EMFILE;
    return -1;
}

pid_t __real_child_fork(void);
pid_t __wrap_child_fork(void);
pid_t __wrap_child_fork(void)
{
    if (!n_forks_fail)
        return __real_child_fork();
    n_forks_fail--;
    errno = EAGAIN;
    return -1;
}

static bool minutes_are_short;

void __real_loop_timer_arm(struct loop_timer *t, int64_t ms);
void __wrap_loop_timer_arm(struct loop_timer *t, int64_t ms);
void __wrap_loop_timer_arm(struct loop_timer *t, int64_t ms)
{
    __real_loop_timer_arm(t, minutes_are_short && ms == PROBE_AGAIN_MS ? 0 : ms);
}

static void a_program_that_cannot_be_started_for_a_while_is_started_later(void **state)
{
    struct fixture *f = *state;
    driver_says(f, TWO_WELL);
    n_pipes_fail = n_forks_fail = 2;
    minutes_are_short = true;
    watch(f);
    UNTIL(f, says(f, "GPU-bb"));
    minutes_are_short = false;
    assert_int_equal(n_pipes_fail + n_forks_fail, 0);
    assert_true(logged(f, "GPUs: not watched yet; the agent tries it again every minute: Too many open files"));
    assert_false(logged(f, "every minute: cannot start")); // said once
}

// For example, the image has another C library.
static void a_program_that_cannot_run_here_is_said_once_and_not_tried_again(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"/nonexistent/cadre-gpus", NULL};
    watch_by(f, argv);
    UNTIL(f, logged(f, "GPUs: not watched: cannot start /nonexistent/cadre-gpus: no such file or directory"));
    for (int i = 0; i < 10; i++)
        loop_run_once(f->loop, 10);
    assert_false(logged(f, "again"));
}

static void only_pods_that_may_have_gpus_are_watched(void **state)
{
    (void)state;
    const char *const nothing[] = {"PATH=/bin", NULL}, *const all[] = {"NVIDIA_VISIBLE_DEVICES=all", NULL};
    const char *const none[] = {"NVIDIA_VISIBLE_DEVICES=void", NULL};
    assert_false(probe_wanted(nothing, GPUS_UNKNOWN));
    assert_true(probe_wanted(nothing, 1));
    assert_true(probe_wanted(all, GPUS_UNKNOWN));
    assert_false(probe_wanted(none, GPUS_UNKNOWN));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_rank_has_its_share),
        T(names_instead_of_numbers_are_found),
        T(a_loss_and_an_error_are_urgent_and_said),
        T(a_driver_that_hangs_holds_nobody_up),
        T(without_a_driver_there_are_no_gpus_which_is_said_once),
        T(a_program_that_cannot_be_started_for_a_while_is_started_later),
        T(a_program_that_cannot_run_here_is_said_once_and_not_tried_again),
        cmocka_unit_test(only_pods_that_may_have_gpus_are_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
