// SPDX-License-Identifier: Apache-2.0
// Sends a message to the peer of a session.
#pragma once

#include "common/ws/ws_session.h"

static inline int session_say(struct ws_session *s, bool text, const void *data, size_t len, struct err *err)
{
    struct parts parts = {0};
    parts_add_copy(&parts, data, len, NULL);
    return ws_session_parts(s, text, &parts, err);
}
