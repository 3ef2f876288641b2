// SPDX-License-Identifier: Apache-2.0
// A member that watches another one, which is this test: it answers as it likes. test_comm and test_host_rank_watch
// have members that all run.
#include "worker/collective/star.h"

#include "common/base/clock.h"
#include "worker/collective/heartbeat.h"
#include "worker/collective/star_core.h"
#include "worker/collective/star_debug.h"
#include "worker/collective/star_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LIMIT_MS = 600 * 1000 };

static const char *const names[] = {"rank 0", "rank 1"};

struct fixture {
    struct star *star;
    int links[2], peer; // peer: the test's end
    sem_t broken;
};

static void on_broken(void *ctx)
{
    struct fixture *f = ctx;
    sem_post(&f->broken);
}

static void begin(struct fixture *f, int index, int64_t silence_ms)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    sem_init(&f->broken, 0, 0);
    f->links[!index] = pair[0];
    f->peer = pair[1];
    f->star = star_new(&(struct star_config){
        .index = index, .n = 2, .names = names, .links = f->links, .limit_ms = LIMIT_MS, .silence_ms = silence_ms});
    star_watch(f->star, on_broken, f);
}

static void end(struct fixture *f)
{
    star_free(f->star);
    close(f->peer);
    sem_destroy(&f->broken);
}

// The next one that comes, and its text.
static enum star_frame_kind next(struct fixture *f, char text[STAR_REASON_SIZE])
{
    struct star_frame frame;
    char *body;
    assert_int_equal(star_frame_take(f->peer, &frame, &body, clock_mono_ms(&clock_system) + LIMIT_MS), 0);
    assert_true(frame.len < STAR_REASON_SIZE);
    memcpy(text, body, frame.len + 1);
    free(body);
    return frame.kind;
}

static void send_to(struct fixture *f, enum star_frame_kind kind)
{
    assert_int_equal(star_frame_send(f->peer, kind, "", 0, clock_mono_ms(&clock_system) + LIMIT_MS), 0);
}

static void a_member_answers_while_it_watches(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++) {
        struct fixture f = {0};
        char text[STAR_REASON_SIZE];
        begin(&f, index, 0);
        send_to(&f, FRAME_PING);
        assert_int_equal(next(&f, text), FRAME_PONG);
        assert_false(star_broken(f.star, text));
        end(&f);
    }
}

static void who_does_not_answer_is_lost_and_hears_of_it(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++) {
        struct fixture f = {0};
        char text[STAR_REASON_SIZE], reason[STAR_REASON_SIZE], want[STAR_REASON_SIZE];
        snprintf(want, sizeof want, "%s was lost: it does not answer: its process is stopped, or it cannot be reached",
                 names[!index]);
        begin(&f, index, 40);
        sem_wait(&f.broken);
        assert_true(star_broken(f.star, reason));
        assert_string_equal(reason, want);
        for (int i = 0; i < HEARTBEAT_QUESTIONS; i++)
            assert_int_equal(next(&f, text), FRAME_PING);
        assert_int_equal(next(&f, text), FRAME_BROKEN);
        assert_string_equal(text, want);
        end(&f);
    }
}

static void who_has_said_goodbye_is_not_lost(void **state)
{
    (void)state;
    struct fixture f = {0};
    char text[STAR_REASON_SIZE];
    struct star_frame frame;
    char *body;
    begin(&f, 0, 40);
    send_to(&f, FRAME_BYE);
    while (star_frame_take(f.peer, &frame, &body, clock_mono_ms(&clock_system) + LIMIT_MS) == 0)
        free(body); // until it is let go
    assert_false(star_broken(f.star, text));
    end(&f);
}

static void send_pair(struct fixture *f, const char *what)
{
    char body[sizeof(uint32_t) + STAR_WHAT_SIZE] = {0}; // to or from member 0
    memcpy(body + sizeof(uint32_t), what, strlen(what));
    assert_int_equal(star_frame_send(f->peer, FRAME_PAIR, body, sizeof(uint32_t) + strlen(what),
                                     clock_mono_ms(&clock_system) + LIMIT_MS),
                     0);
}

static void what_one_end_of_a_pair_says_the_other_hears_in_order(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++) {
        struct fixture f = {0};
        char text[STAR_REASON_SIZE], what[STAR_WHAT_SIZE];
        begin(&f, index, 0);
        star_tell(f.star, !index, "4 F32");
        assert_int_equal(next(&f, text), FRAME_PAIR);
        assert_string_equal(text + sizeof(uint32_t), "4 F32");
        send_pair(&f, "1 I64");
        send_pair(&f, "2 I64");
        for (int i = 1; i <= 2; i++) {
            assert_int_equal(star_hear(f.star, !index, what, LIMIT_MS), 0);
            assert_int_equal(what[0], '0' + i);
        }
        assert_int_equal(star_hear(f.star, !index, what, 1), ERR_TIMEOUT);
        end(&f);
    }
}

static bool is_deaf(struct star *s)
{
    pthread_mutex_lock(&s->mutex);
    bool deaf = s->deaf;
    pthread_mutex_unlock(&s->mutex);
    return deaf;
}

// A program that sends and never receives does not fill the memory: from then on, pairs are not compared.
static void what_nobody_asks_for_is_kept_up_to_a_limit(void **state)
{
    (void)state;
    struct fixture f = {0};
    char what[STAR_WHAT_SIZE];
    begin(&f, 1, 0);
    for (int i = 0; i <= STAR_SENDS_MAX; i++)
        send_pair(&f, i < STAR_SENDS_MAX ? "4 F32" : "5 F32");
    while (!is_deaf(f.star))
        usleep(1000);
    for (int i = 0; i < STAR_SENDS_MAX; i++) {
        assert_int_equal(star_hear(f.star, 0, what, LIMIT_MS), 0);
        assert_string_equal(what, "4 F32");
    }
    assert_int_equal(star_hear(f.star, 0, what, LIMIT_MS), 0);
    assert_string_equal(what, "");
    end(&f);
}

// It would pass on the messages of others. Messages that it passed on before still count.
static void when_the_first_member_has_gone_nobody_waits_to_hear(void **state)
{
    (void)state;
    struct fixture f = {0};
    char what[STAR_WHAT_SIZE];
    begin(&f, 1, 0);
    send_pair(&f, "4 F32");
    send_to(&f, FRAME_BYE);
    shutdown(f.peer, SHUT_RDWR);
    assert_int_equal(star_hear(f.star, 0, what, LIMIT_MS), 0);
    assert_string_equal(what, "4 F32");
    assert_int_equal(star_hear(f.star, 0, what, LIMIT_MS), 0);
    assert_string_equal(what, "");
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_answers_while_it_watches),
        cmocka_unit_test(who_does_not_answer_is_lost_and_hears_of_it),
        cmocka_unit_test(who_has_said_goodbye_is_not_lost),
        cmocka_unit_test(what_one_end_of_a_pair_says_the_other_hears_in_order),
        cmocka_unit_test(what_nobody_asks_for_is_kept_up_to_a_limit),
        cmocka_unit_test(when_the_first_member_has_gone_nobody_waits_to_hear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
