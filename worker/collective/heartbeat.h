// SPDX-License-Identifier: Apache-2.0
// Decides when a member of a star asks the members that it is connected to whether they run, and when it counts one of
// them as silent. Pure. It counts questions, not time, so a process that itself did not run for a while does not report
// others as lost. A process may stand still from one question to the next, so there are many questions.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { HEARTBEAT_QUESTIONS = 7 };

struct heartbeat {
    int64_t every_ms; // 0 = it asks nobody
    int64_t due_ms;   // on any clock
};

// A member that does not run counts as silent after seven eighths of the limit at the earliest, and at the limit at the
// latest. Each time that this process stands still itself, an eighth of the limit at most counts as silence of others.
struct heartbeat heartbeat_new(int64_t limit_ms);
// Returns the time until the next question in ms, at most `most`. -1 = for ever.
int heartbeat_wait(const struct heartbeat *p, int64_t now_ms, int most);
bool heartbeat_due(struct heartbeat *p, int64_t now_ms); // returns true once when it is time to ask
// Counts one more question to a member. *asked: how many questions it has not answered; the caller sets it to 0 after
// an answer. False: the member has not answered enough of them, and is silent.
bool heartbeat_ask(int *asked);
