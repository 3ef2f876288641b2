// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/participant.h"

#include "common/base/clock.h"
#include "common/base/le.h"
#include "worker/collective/star_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOUR_MS = 3600 * 1000, FAILS = 1, DIES = 2, MEMBERS = 3 };

static void say_failed(int fd, const char *why)
{
    char body[64];
    size_t len = strlen(why);
    le_put_u32(body, (uint32_t)-ERR_GONE);
    memcpy(body + 4, why, len);
    assert_int_equal(star_frame_send(fd, DIALOG_FAILED, body, 4 + len, clock_mono_ms(&clock_system) + HOUR_MS), 0);
}

// On a busy machine, the center may see the end of one member and the failure of another at the same time.
static void the_center_names_who_was_lost_not_who_failed_by_it(void **state)
{
    (void)state;
    static const char *const names[MEMBERS] = {"rank 0 of rollout", "rank 1 of rollout", "rank 0 of actor"};
    const atomic_bool canceled = false;
    const struct participant_config config = {.n_receivers = 2,
                                              .n_senders = 1,
                                              .names = names,
                                              .limit_ms = HOUR_MS,
                                              .late_ms = PARTICIPANT_LATE_MS,
                                              .patience_ms = PARTICIPANT_PATIENCE_MS,
                                              .canceled = &canceled};
    struct participant center;
    struct err err = ERR_INIT;
    int pairs[MEMBERS][2];
    participant_init(&center, &config);
    for (int i = 1; i < MEMBERS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
        center.dialog.links[i] = pairs[i][0];
    }
    say_failed(pairs[FAILS][1], "rank 0 of rollout: Broken pipe");
    close(pairs[DIES][1]);
    participant_attend(&center, NULL, 0, 0);
    assert_int_equal(center.decided, COMMIT_KEEP);
    assert_int_equal(participant_outcome(&center, &err), ERR_UNAVAILABLE);
    assert_ptr_equal(strstr(err.msg, "rank 0 of actor was lost: "), err.msg);
    participant_done(&center);
    close(pairs[FAILS][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_center_names_who_was_lost_not_who_failed_by_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
