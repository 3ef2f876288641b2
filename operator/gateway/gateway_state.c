// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/gateway_state.h"

#include "common/base/json_writer.h"
#include "common/base/log.h"

enum { LOG_REFUSALS_A_SECOND = 10, RETRY_AFTER_MS = 1000 };

int gateway_http_status(int code)
{
    switch (code) {
    case ERR_UNAUTHORIZED:
        return 401;
    case ERR_FORBIDDEN:
    case ERR_CONFLICT:
        return 403;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_THROTTLED:
        return 429;
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
        return 503;
    case ERR_INTERNAL:
        return 500;
    default:
        return 400;
    }
}

unsigned gateway_close_code(int code)
{
    switch (code) {
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
    case ERR_THROTTLED:
        return FRAME_CLOSE_TRY_LATER;
    case ERR_PROTO:
        return FRAME_CLOSE_PROTOCOL;
    case ERR_LIMIT:
        return FRAME_CLOSE_TOO_BIG;
    case ERR_INTERNAL:
        return FRAME_CLOSE_INTERNAL;
    default:
        return FRAME_CLOSE_POLICY;
    }
}

void gateway_error_body(const struct err *err, struct buf *out)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_str(&w, "code", err_name(err->code));
    writer_str(&w, "message", err->msg);
    if (err->code == ERR_THROTTLED)
        writer_i64(&w, "retryAfterMs", err->retry_after_ms ? err->retry_after_ms : RETRY_AFTER_MS);
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
    writer_done(&w);
}

void gateway_log_refusal(struct gateway *g, const char *who, const char *peer, const struct err *err)
{
    int64_t second = clock_mono_ms(loop_clock(g->loop)) / 1000;
    if (second != g->log_second) {
        if (g->log_count > LOG_REFUSALS_A_SECOND)
            log_info("more peers were refused", "count", log_i64(g->log_count - LOG_REFUSALS_A_SECOND), NULL);
        g->log_second = second;
        g->log_count = 0;
    }
    if (g->log_count++ < LOG_REFUSALS_A_SECOND)
        log_info("a peer was refused", "who", who, "peer", peer, "code", err_name(err->code), "error", err->msg, NULL);
}
