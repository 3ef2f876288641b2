// SPDX-License-Identifier: Apache-2.0
// When a member of a star asks those whom it is connected to whether they run, and whom it counts as silent. Pure. It
// counts questions, not time: a process that did not run itself for a while blames nobody for that. Such a while may be
// all that lies between two questions, so there are many.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { HEARTBEAT_QUESTIONS = 7 };

struct heartbeat {
    int64_t every_ms; // 0 = it asks nobody
    int64_t due_ms;   // on any clock
};

// Who does not run counts as silent after seven eighths of the limit at the earliest, and at the limit at the latest.
// Each time that this process stands still itself, an eighth of the limit at most counts as silence of the others.
struct heartbeat heartbeat_new(int64_t limit_ms);
// How long to sleep until it is time, in ms, or `most`, if that is sooner. -1 = for ever.
int heartbeat_wait(const struct heartbeat *p, int64_t now_ms, int most);
bool heartbeat_due(struct heartbeat *p, int64_t now_ms); // is it time to ask? True once
// One more question. *asked: how many have had no answer; 0 after one. False: enough of them.
bool heartbeat_ask(int *asked);
