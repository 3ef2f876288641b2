// SPDX-License-Identifier: Apache-2.0
// How long a peer may be silent: after a while it is pinged; after another while without an answer it counts as dead.
// While somebody waits for the peer, both times are shorter. It only decides.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Limits while somebody waits. A peer that is only slow, because others keep its machine busy, answers pings within
// WS_SILENCE_PONG_MS: if it counted as dead, calls would fail that go on. If its node has died, it can report nothing,
// and the sum of both times, 10 s, passes until this is known.
enum { WS_SILENCE_PING_MS = 1000, WS_SILENCE_PONG_MS = 9000 };

#define WS_SILENCE_NEVER_MS (INT64_MAX / 2) // as ping_ms: a ping only while somebody waits

struct ws_silence {
    int64_t ping_ms, pong_ms; // while nobody waits, and upper limits
    int64_t heard_ms, pinged_ms;
    bool pinged;  // since it was heard
    bool awaited; // somebody waits for the peer
};

enum ws_silence_verdict { WS_SILENCE_FINE, WS_SILENCE_PING, WS_SILENCE_DEAD };

void ws_silence_heard(struct ws_silence *s, int64_t now_ms);
// *ret_ms: ask again after this time.
enum ws_silence_verdict ws_silence_ask(struct ws_silence *s, int64_t now_ms, bool waits, int64_t *ret_ms);
// Data goes out, and somebody may wait for the answer. True: ask again.
bool ws_silence_sent(struct ws_silence *s);
