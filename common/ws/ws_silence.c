// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_silence.h"

#include "common/base/mem.h"

static int64_t limit(const struct ws_silence *s)
{
    int64_t ms = s->pinged ? s->pong_ms : s->ping_ms;
    return s->awaited ? MIN(ms, (int64_t)(s->pinged ? WS_SILENCE_PONG_MS : WS_SILENCE_PING_MS)) : ms;
}

void ws_silence_heard(struct ws_silence *s, int64_t now_ms)
{
    s->heard_ms = now_ms;
    s->pinged = false;
}

enum ws_silence_verdict ws_silence_ask(struct ws_silence *s, int64_t now_ms, bool waits, int64_t *ret_ms)
{
    s->awaited = waits;
    int64_t left = limit(s) - (now_ms - (s->pinged ? s->pinged_ms : s->heard_ms));
    *ret_ms = left;
    if (left > 0)
        return WS_SILENCE_FINE;
    enum ws_silence_verdict v = s->pinged ? WS_SILENCE_DEAD : WS_SILENCE_PING;
    if (!s->pinged)
        s->pinged_ms = now_ms;
    s->pinged = true;
    *ret_ms = limit(s);
    return v;
}

bool ws_silence_sent(struct ws_silence *s)
{
    bool news = !s->awaited;
    s->awaited = true;
    return news;
}
