// SPDX-License-Identifier: Apache-2.0
// Which connections of its parent a child of fork() keeps while both run.
#include "worker/host/rank_sockets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    int here, there;
};

static struct pair pair_new(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){fds[0], fds[1]};
}

// Forks a child that has begun, and runs until the test ends it.
static pid_t fork_child(const struct pair *used)
{
    char byte = 0;
    struct pair begun = pair_new();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // if the test fails
        bool good = !used || (close(used->there) == 0 && write(used->here, "x", 1) == 1);
        (void)!write(begun.here, good ? "1" : "0", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(begun.there, &byte, 1), 1);
    assert_int_equal(byte, '1');
    close(begun.here);
    close(begun.there);
    return child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void a_connection_ends_with_the_parent_whatever_children_it_has(void **state)
{
    (void)state;
    char byte;
    struct pair line = pair_new(), other = pair_new();
    rank_sockets_add(line.here);
    pid_t child = fork_child(NULL);
    close(line.here); // like the end of the parent
    close(other.here);
    assert_int_equal(recv(line.there, &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(recv(other.there, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    end_child(child);
    close(line.there);
    close(other.there);
}

static void the_parent_keeps_it(void **state)
{
    (void)state;
    char byte = 0;
    struct pair line = pair_new();
    rank_sockets_add(line.here);
    pid_t child = fork_child(NULL);
    assert_int_equal(write(line.here, "p", 1), 1);
    assert_int_equal(read(line.there, &byte, 1), 1);
    assert_int_equal(byte, 'p');
    end_child(child);
    close(line.here);
    close(line.there);
}

static void what_has_the_number_later_stays_and_the_child_can_close_what_it_gave_up(void **state)
{
    (void)state;
    char byte = 0;
    struct pair line = pair_new(), later = pair_new(), also = pair_new();
    rank_sockets_add(line.here);
    rank_sockets_add(also.here);
    assert_int_equal(dup2(later.here, line.here), line.here);
    pid_t child = fork_child(&(struct pair){.here = line.here, .there = also.here});
    assert_int_equal(read(later.there, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    end_child(child);
    for (int i = 0; i < 2; i++) {
        close(i ? line.here : line.there);
        close(i ? later.here : later.there);
        close(i ? also.here : also.there);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_ends_with_the_parent_whatever_children_it_has),
        cmocka_unit_test(the_parent_keeps_it),
        cmocka_unit_test(what_has_the_number_later_stays_and_the_child_can_close_what_it_gave_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
