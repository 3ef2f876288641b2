// SPDX-License-Identifier: Apache-2.0
#include "cli/per_rank.h"

#include "cli/child_process.h"
#include "cli/document.h"
#include "cli/print_result.h"
#include "cli/report.h"
#include "common/base/mem.h"
#include "common/wire/mode.h"

enum verdict { UNKNOWN, ONE_EACH, OTHERWISE };

static bool has_one_each(unsigned dispatch, unsigned execute)
{
    return execute == RECORD_RANK_ZERO || execute == RECORD_ANY || mode_lists_ranks(mode_of(dispatch));
}

// The call itself says enough. The parser of the options has already checked its dispatch mode.
static bool needs_no_asking(const cadre_client_request *r)
{
    return r->rank >= 0 || r->dispatch || r->execute == RECORD_RANK_ZERO || r->execute == RECORD_ANY;
}

static const cJSON *methods_of(const cJSON *info, const char *role)
{
    const cJSON *v;
    if (!role)
        return document_get(info, "methods");
    cJSON_ArrayForEach(v, document_get(info, "roles"))
        if (document_str_is(v, "name", role))
            return document_get(v, "methods");
    return NULL;
}

// Looks at the modes that the ranks reported for the method when they connected.
static enum verdict judge(const cJSON *info, const cadre_client_request *r)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, methods_of(info, r->role)) {
        if (!document_str_is(m, "name", r->method))
            continue;
        unsigned dispatch = mode_dispatch(document_str(m, "dispatch"));
        unsigned execute = r->execute ? (unsigned)r->execute : mode_execute(document_str(m, "execute"));
        return !mode_of(dispatch) || !execute ? UNKNOWN : has_one_each(dispatch, execute) ? ONE_EACH : OTHERWISE;
    }
    return UNKNOWN;
}

static cadre_client_code ask(struct proxy *c, const cadre_client_request *r, enum verdict *ret)
{
    struct err err = ERR_INIT;
    cadre_client_request question;
    cadre_client_request_init(&question, "group.info");
    question.timeout_ms = r->timeout_ms;
    *ret = UNKNOWN;
    cadre_client_code code = proxy_call(c, &question);
    _cleanup_(document_free) cJSON *info = code == CADRE_CLIENT_OK ? document_read(&c->result, &err) : NULL;
    if (info)
        *ret = judge(info, r);
    return code;
}

// The answer stays in the proxy's result.
static enum verdict ask_again(struct proxy *c, const cadre_client_request *r)
{
    struct buf result = c->result;
    int64_t rank = c->rank;
    enum verdict v;
    c->result = BUF_INIT(result.cap);
    ask(c, r, &v);
    buf_done(&c->result);
    c->result = result;
    c->rank = rank;
    return v;
}

static int refuse(const cadre_client_request *r)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_INVALID,
            "%s() was not called: it has a mode that does not return one result per rank; call it without -o ranks",
            r->method);
    return report_err(&err);
}

static int show_otherwise(const struct cli_options *o, const struct proxy *c)
{
    struct err err = ERR_INIT;
    struct cli_options json = *o;
    json.output = OUTPUT_JSON;
    int status = result_print(&json, c);
    if (status)
        return status;
    err_set(&err, ERR_INVALID,
            "%s() ran, but kubectl-cadre cannot tell whether there is one result per rank: the result is printed as "
            "JSON, not as -o ranks",
            o->request.method);
    return report_err(&err);
}

// Other JSON, such as the answer of group.info, is not a list.
static bool is_list(const struct proxy *c)
{
    cadre_client_json result = {buf_str(&c->result), c->result.len};
    return cadre_client_content_of(result) != CADRE_CLIENT_CONTENT_JSON || *result.text == '[';
}

int ranks_call(const struct cli_options *o, struct proxy *c, cadre_client_request *request)
{
    enum verdict v = ONE_EACH;
    if (!needs_no_asking(request) && ask(c, request, &v) != CADRE_CLIENT_OK)
        return report_failure(&c->error);
    if (v == OTHERWISE)
        return refuse(request);
    if (process_interrupted()) {
        proxy_fail(c, CADRE_CLIENT_CANCELED, "interrupted", "; the call has not run");
        return report_failure(&c->error);
    }
    if (proxy_call(c, request) != CADRE_CLIENT_OK)
        return report_failure(&c->error);
    if (c->rank < 0 && v == UNKNOWN)
        v = ask_again(c, request);
    return c->rank >= 0 || (v == ONE_EACH && is_list(c)) ? result_print(o, c) : show_otherwise(o, c);
}
