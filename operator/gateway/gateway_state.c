// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/gateway_state.h"

#include "common/base/json_writer.h"
#include "common/base/log.h"
#include "common/base/mem.h"

enum { LOG_REFUSALS_A_SECOND = 10, RETRY_AFTER_MS = 1000 };

static const struct answer {
    int code, status;
    unsigned close;
} answers[] = {{ERR_UNAUTHORIZED, 401, FRAME_CLOSE_POLICY}, {ERR_FORBIDDEN, 403, FRAME_CLOSE_POLICY},
               {ERR_CONFLICT, 403, FRAME_CLOSE_POLICY},     {ERR_NOT_FOUND, 404, FRAME_CLOSE_POLICY},
               {ERR_THROTTLED, 429, FRAME_CLOSE_TRY_LATER}, {ERR_UNAVAILABLE, 503, FRAME_CLOSE_TRY_LATER},
               {ERR_TIMEOUT, 503, FRAME_CLOSE_TRY_LATER},   {ERR_INTERNAL, 500, FRAME_CLOSE_INTERNAL},
               {ERR_PROTO, 400, FRAME_CLOSE_PROTOCOL},      {ERR_LIMIT, 400, FRAME_CLOSE_TOO_BIG},
               {ERR_INVALID, 400, FRAME_CLOSE_POLICY}};

// Other codes get the last answer.
static const struct answer *answer_to(int code)
{
    size_t i = 0;
    while (i < ARRAY_LEN(answers) - 1 && answers[i].code != code)
        i++;
    return &answers[i];
}

unsigned gateway_close_code(int code)
{
    return answer_to(code)->close;
}

void gateway_error_body(const struct err *err, struct buf *out)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "code", err_name(err->code));
    writer_str(&w, "message", err->msg);
    if (err->code == ERR_THROTTLED)
        writer_i64(&w, "retryAfterMs", err->retry_after_ms ? err->retry_after_ms : RETRY_AFTER_MS);
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
}

int gateway_refused(struct gateway *g, struct ws_request *r, const struct err *err)
{
    g->counters.refused++;
    gateway_log_refusal(g, ws_request_path(r), ws_request_peer(r), err);
    return err->http_status ? err->http_status : answer_to(err->code)->status;
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
