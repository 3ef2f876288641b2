// SPDX-License-Identifier: Apache-2.0
// An agent reports to the program that watches it. While the agent waits in poll() for room, the test decides whether
// that program reads.
#include "worker/agent/control.h"

#include "common/wire/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPORTS = 500, ROOM = 8192 };

static struct {
    struct loop *loop;
    struct control *control;
    int agent, program; // the ends of the socket
    bool reads;
    int packets, waits;
} fixture;

static void read_packets(void)
{
    char packet[CONTROL_PACKET_MAX];
    struct record_header h;
    struct err err = ERR_INIT;
    for (ssize_t n; (n = recv(fixture.program, packet, sizeof packet, MSG_DONTWAIT)) > 0; fixture.packets++) {
        assert_true(record_header_decode(packet, &h, &err) >= 0);
        assert_int_equal(h.type, RECORD_EXITED);
        assert_int_equal(h.len + RECORD_HEADER_SIZE, n);
    }
}

int __real_poll(struct pollfd *watched, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *watched, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *watched, nfds_t n, int timeout_ms)
{
    if (watched->fd != fixture.agent)
        return __real_poll(watched, n, timeout_ms);
    fixture.waits++;
    if (!fixture.reads)
        return 0;
    read_packets();
    return __real_poll(watched, n, timeout_ms);
}

static int setup(void **state)
{
    const int room = ROOM;
    int ends[2];
    struct err err = ERR_INIT;
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    fixture.agent = ends[0];
    fixture.program = ends[1];
    assert_int_equal(setsockopt(fixture.agent, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    fixture.loop = loop_new();
    fixture.control = control_new(fixture.loop, NULL, fixture.agent, &err); // it only reports
    return fixture.control ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    control_free(fixture.control);
    loop_free(fixture.loop);
    close(fixture.program);
    return 0;
}

static void report_exits(void)
{
    static const char last[] = "the last line that the process printed\n";
    for (int i = 0; i < REPORTS; i++) {
        const struct agent_report r = {.type = SUPERVISOR_REPORT_EXITED,
                                       .group = "u-1",
                                       .attempt = 1,
                                       .rank = i,
                                       .code = 1,
                                       .message = "",
                                       .last = last,
                                       .last_len = sizeof last - 1};
        control_report(fixture.control, &r);
    }
}

static void a_program_that_reads_late_gets_every_report(void **state)
{
    (void)state;
    fixture.reads = true;
    report_exits();
    read_packets();
    assert_true(fixture.waits > 0);
    assert_int_equal(fixture.packets, REPORTS);
    assert_true(control_listens(fixture.control));
}

static void a_program_that_does_not_read_is_waited_for_once(void **state)
{
    (void)state;
    report_exits();
    assert_int_equal(fixture.waits, 1);
    assert_false(control_listens(fixture.control));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_that_reads_late_gets_every_report, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_that_does_not_read_is_waited_for_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
