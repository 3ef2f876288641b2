// SPDX-License-Identifier: Apache-2.0
#include "cli/proxy.h"

#include "cli/address.h"
#include "cli/kubectl.h"
#include "cli/local.h"
#include "cli/plain.h"
#include "cli/report.h"
#include "common/base/clock.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STEP_MS = 100,
    LINGER_STEP_US = 20 * 1000,
    REACH_MS = 30 * 1000, // the first connection must be welcomed within this time
    BESIDE_MS = 6 * 1000, // the same if another connection is welcomed already
    DIAL_MS = 2 * 1000,   // for one dial during a survey: one that hangs must not take all of this time
    CANCEL_MS = 500,      // for the answer of a canceled call, which comes at once
    LAST_LINES_MS = 600,  // lines that ranks print at the end of a call come a moment later
    TOKEN_MAX = 64 << 10,
    RESULT_MAX = 64 << 20,
};

#define CLI_ACCOUNT "cadre-cli"
#define AUDIENCE "cadre"

static int request_token(struct proxy *c, const struct cli_options *o, struct err *err)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(TOKEN_MAX);
    const char *account = o->service_account ? o->service_account : CLI_ACCOUNT;
    const char *ns = o->service_account ? c->ns : o->operator_ns;
    const struct kubectl_args args =
        kubectl_args(o, "create", "token", account, "--namespace", ns, "--audience", AUDIENCE, NULL);
    if (kubectl_run(&args, &out, err) == 0) {
        c->token = buf_take(&out);
        c->token[strcspn(c->token, "\r\n")] = '\0';
    } else {
        err_wrap(err, "a token of ServiceAccount %s/%s is needed to call (others: --service-account, --token)", ns,
                 account);
    }
    return err->code;
}

static void on_connection(void *ctx, int connected, const cadre_client_error *why)
{
    struct proxy *c = ctx;
    c->connected = connected;
    c->connections += connected != 0;
    if (why)
        c->lost = *why;
}

// "0-3,7"
static bool has_rank(const char *ranks, int64_t rank)
{
    for (char *p = (char *)ranks; *p >= '0' && *p <= '9';) {
        int64_t from = strtoll(p, &p, 10), to = *p == '-' ? strtoll(p + 1, &p, 10) : from;
        if (rank >= from && rank <= to)
            return true;
        p += *p == ',';
    }
    return false;
}

static void on_output(void *ctx, const cadre_client_output *line)
{
    struct proxy *c = ctx;
    if (line->dropped)
        fprintf(stderr, "[%" PRIu64 " lines are missing: they were printed too fast]\n", line->dropped);
    if (!line->text || (c->only_rank >= 0 && !has_rank(line->ranks, c->only_rank)))
        return;
    if (c->only_rank >= 0)
        fprintf(c->lines, "[rank %" PRId64 "] ", c->only_rank);
    else
        fprintf(c->lines, "[rank %s] ", line->ranks);
    plain_print(c->lines, line->text, strlen(line->text));
    fputc('\n', c->lines);
    fflush(c->lines);
}

void proxy_linger(struct proxy *const *list, size_t n, int64_t ms)
{
    int64_t end = clock_mono_ms(&clock_system) + ms;
    while (clock_mono_ms(&clock_system) < end && !process_interrupted()) {
        for (size_t i = 0; i < n; i++)
            cadre_client_process(list[i]->client);
        usleep(LINGER_STEP_US);
    }
}

static int open_client(struct proxy *c, const struct cli_options *o, struct err *err)
{
    cadre_client_options options;
    cadre_client_error error;
    cadre_client_options_init(&options);
    options.address = c->server ? c->server : c->tunnel.address;
    options.path_prefix = c->server ? NULL : c->tunnel.prefix;
    options.ns = c->ns;
    options.group = o->group;
    options.token = c->token ? c->token : o->token;
    options.token_file = o->token_file;
    options.server_name = c->server_name;
    options.token_in_hello = !c->server; // the API server would use the header itself
    options.ca_file = o->ca_file;
    options.max_body = RESULT_MAX;
    options.connect_timeout_ms = o->verb == VERB_TOP ? DIAL_MS : 0;
    options.on_connection = on_connection;
    options.on_output = o->logs ? on_output : NULL;
    options.ctx = c;
    if (cadre_client_open(&options, &c->client, &error) == CADRE_CLIENT_OK)
        return 0;
    return err_set(err, ERR_INVALID, "%s", error.message);
}

int proxy_open(struct proxy *c, const struct cli_options *o, struct err *err)
{
    *c = (struct proxy){.tunnel = TUNNEL_NONE, .result = BUF_INIT(RESULT_MAX), .reach_ms = REACH_MS};
    c->lines = o->verb == VERB_LOGS ? stdout : stderr; // otherwise they appear beside the result
    c->only_rank = o->verb == VERB_LOGS ? o->request.rank : -1;
    local_find(o, &c->server, &c->ns, err);
    if (!err->code && !c->ns)
        c->ns = c->server ? xstrdup(o->ns ? o->ns : "default") : kubectl_namespace(o, err);
    if (!err->code && !c->server && !o->token && !o->token_file)
        request_token(c, o, err);
    if (!err->code && !c->server)
        tunnel_open(&c->tunnel, o, err);
    if (!err->code)
        open_client(c, o, err);
    if (err->code)
        proxy_close(c);
    return err->code;
}

int proxy_beside(struct proxy *c, const struct proxy *other, const struct cli_options *o, unsigned nth, struct err *err)
{
    *c = (struct proxy){.tunnel = tunnel_borrow(&other->tunnel), .result = BUF_INIT(RESULT_MAX), .reach_ms = BESIDE_MS};
    c->ns = xstrdup(other->ns);
    c->token = other->token ? xstrdup(other->token) : NULL;
    if (other->server)
        c->server = address_nth(other->server, nth, &c->server_name);
    if (other->server && !c->server)
        c->server = xstrdup(other->server);
    if (open_client(c, o, err) < 0)
        proxy_close(c);
    return err->code;
}

void proxy_close(struct proxy *c)
{
    cadre_client_close(TAKE_PTR(c->client));
    tunnel_close(&c->tunnel);
    buf_done(&c->result);
    free(TAKE_PTR(c->ns));
    free(TAKE_PTR(c->token));
    free(TAKE_PTR(c->server));
    free(TAKE_PTR(c->server_name));
}

static void on_done(void *ctx, const cadre_client_answer *a)
{
    struct proxy *c = ctx;
    c->over = true;
    c->rank = a->rank;
    if (a->error)
        c->error = *a->error;
    else
        buf_append(&c->result, a->result.text, a->result.len);
}

cadre_client_code proxy_fail(struct proxy *c, cadre_client_code code, const char *what, const char *why)
{
    memset(&c->error, 0, sizeof c->error);
    c->error.code = code;
    c->error.rank = c->error.exit_code = -1;
    snprintf(c->error.name, sizeof c->error.name, "%s", cadre_client_code_name(code));
    snprintf(c->error.message, sizeof c->error.message, "%s%.900s", what, why);
    return code;
}

// A user who gives up a call wants to know whether it has run. The answer may also have come first.
static cadre_client_code give_up(struct proxy *c, uint64_t id, bool reached)
{
    int64_t end = clock_mono_ms(&clock_system) + CANCEL_MS;
    cadre_client_cancel(c->client, id);
    while (reached && !c->over && clock_mono_ms(&clock_system) < end)
        cadre_client_wait(c->client, STEP_MS);
    if (c->over && c->error.code == CADRE_CLIENT_OK)
        return CADRE_CLIENT_OK;
    bool may_have_run = reached && !(c->over && !c->error.may_have_run);
    return proxy_fail(c, CADRE_CLIENT_CANCELED, "interrupted",
                      may_have_run ? "; the call may have run" : "; the call has not run");
}

cadre_client_code proxy_call(struct proxy *c, cadre_client_request *request)
{
    uint64_t id = 0;
    int64_t end = clock_mono_ms(&clock_system) + c->reach_ms;
    bool reached = false;
    c->over = false;
    c->error = (cadre_client_error){.code = CADRE_CLIENT_OK};
    buf_reset(&c->result);
    request->done = on_done;
    request->ctx = c;
    if (cadre_client_start(c->client, request, &id, &c->error) != CADRE_CLIENT_OK)
        return c->error.code;
    while (!c->over) {
        cadre_client_wait(c->client, STEP_MS);
        reached = reached || c->connected;
        if (process_interrupted())
            return give_up(c, id, reached);
        if (!c->over && !reached && clock_mono_ms(&clock_system) >= end)
            return proxy_fail(c, CADRE_CLIENT_UNAVAILABLE, "the operator cannot be reached: ",
                              c->lost.message[0] ? c->lost.message : "it does not answer");
    }
    return c->error.code;
}

int proxy_with(const struct cli_options *o, int (*use)(const struct cli_options *o, struct proxy *c, void *ctx),
               void *ctx)
{
    struct proxy c;
    struct err err = ERR_INIT;
    if (proxy_open(&c, o, &err) < 0)
        return report_err(&err);
    int status = use(o, &c, ctx);
    if (o->logs) {
        fflush(stdout);
        proxy_linger((struct proxy *[]){&c}, 1, LAST_LINES_MS);
    }
    proxy_close(&c);
    return status;
}

struct run {
    cadre_client_request request;
    int (*show)(const struct cli_options *o, const struct proxy *c);
};

static int run(const struct cli_options *o, struct proxy *c, void *ctx)
{
    struct run *run = ctx;
    return proxy_call(c, &run->request) == CADRE_CLIENT_OK ? run->show(o, c) : report_failure(&c->error);
}

int proxy_run(const struct cli_options *o, const cadre_client_request *request,
              int (*show)(const struct cli_options *o, const struct proxy *c))
{
    return proxy_with(o, run, &(struct run){*request, show});
}
