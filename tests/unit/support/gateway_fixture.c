// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/gateway_fixture.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/proxy/kill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The authority

static uint64_t authority_client(void *ctx, const char *token, const char *ns, authority_done_fn done, void *done_ctx)
{
    struct gateway_fixture *f = ctx;
    struct err err = ERR_INIT;
    int64_t expires_ms = str_eq(token, "short") ? clock_wall_ms(&clock_system) + 50 : 0;
    f->n_asked++;
    if (str_eq(token, "late")) {
        f->late = done;
        f->late_ctx = done_ctx;
        return 7;
    }
    if (str_eq(token, "bob"))
        err_set(&err, ERR_FORBIDDEN, "bob may not create workergroups/call in namespace %s", ns);
    else if (!str_starts(token, "alice") && !str_eq(token, "short"))
        err_set(&err, ERR_UNAUTHORIZED, "the token is nobody's");
    else if (f->client_code)
        err_set(&err, f->client_code, "alice is asked about again");
    done(done_ctx, &(struct client_user){token, "\"user\":\"alice\"", str_starts(token, "alice, who codes")},
         expires_ms, &err);
    return 0;
}

static void authority_cancel(void *ctx, uint64_t id)
{
    struct gateway_fixture *f = ctx;
    assert_int_equal(id, 7);
    f->n_canceled++;
    f->late = NULL;
}

static int authority_pod(void *ctx, const char *token, struct arena *a, struct pod_claims *ret, struct err *err)
{
    struct gateway_fixture *f = ctx;
    f->n_pod_tokens++;
    char *copy = arena_strdup(a, token), *pod = strchr(copy, ' '), *uid = pod ? strchr(pod + 1, ' ') : NULL;
    if (!uid || !str_starts(copy, "pod "))
        return err_set(err, ERR_UNAUTHORIZED, "this is not a pod's token");
    *pod = *uid = '\0';
    *ret = (struct pod_claims){"ml", pod + 1, uid + 1, f->pod_expires_ms};
    return 0;
}

void gateway_fixture_ticket(char out[256], const char *uid, uint32_t attempt, uint32_t rank, uint64_t serial)
{
    int n = snprintf(out, 200, "%s/%u/%u/%" PRIu64, uid, attempt, rank, serial);
    snprintf(out + n, 56, "/%016" PRIx64, str_hash(out, (size_t)n));
}

static int authority_ticket(void *ctx, const char *text, struct ticket *ret, struct err *err)
{
    char copy[256], right[256], *field[4];
    int64_t number[4];
    (void)ctx;
    *ret = (struct ticket){.serial = 0};
    snprintf(copy, sizeof copy, "%s", text);
    for (int i = 0; i < 4; i++) {
        field[i] = strrchr(copy, '/');
        if (!field[i])
            return err_set(err, ERR_UNAUTHORIZED, "this is not our ticket");
        *field[i]++ = '\0';
        if (i > 0 && !str_to_i64(field[i], &number[i]))
            return err_set(err, ERR_UNAUTHORIZED, "this is not our ticket");
    }
    snprintf(ret->group_uid, sizeof ret->group_uid, "%.63s", copy);
    ret->serial = (uint64_t)number[1];
    ret->rank = (uint32_t)number[2];
    ret->attempt = (uint32_t)number[3];
    gateway_fixture_ticket(right, ret->group_uid, ret->attempt, ret->rank, ret->serial);
    return str_eq(right, text) ? 0 : err_set(err, ERR_UNAUTHORIZED, "this is not our ticket");
}

static const char *authority_ticket_text(void *ctx, const struct ticket *t, struct arena *a)
{
    char text[256];
    (void)ctx;
    gateway_fixture_ticket(text, t->group_uid, t->attempt, t->rank, t->serial);
    return arena_strdup(a, text);
}

static const char *authority_secret(void *ctx, const struct ticket *t, struct arena *a)
{
    (void)ctx;
    return arena_printf(a, "secret-%s-%u", t->group_uid, t->attempt);
}

static const char *authority_proof(void *ctx, const char *name, const char *instance, struct arena *a)
{
    (void)ctx;
    return arena_printf(a, "proof of %s %s", name, instance);
}

// The cluster

static int find_pod(void *ctx, const struct pod_claims *claims, struct arena *a, struct agent_identity *ret,
                    int64_t *ret_heartbeat_ms, struct err *err)
{
    const struct gateway_fixture *f = ctx;
    (void)a;
    if (f->pod_code)
        return err_set(err, f->pod_code, "pod %s/%s cannot have an agent here now", claims->ns, claims->pod);
    *ret = (struct agent_identity){
        .ns = "ml", .group = "llama", .pod = claims->pod, .pod_uid = claims->pod_uid, .node = "n1"};
    *ret_heartbeat_ms = f->heartbeat_ms;
    return 0;
}

static void find_place(void *ctx, const char *uid, uint32_t rank, struct arena *a, const char **ret_pod,
                       const char **ret_node)
{
    (void)ctx, (void)uid;
    *ret_pod = arena_printf(a, "llama-%u-0", rank);
    *ret_node = "n1";
}

static void on_changed(void *ctx, const char *ns, const char *group)
{
    struct gateway_fixture *f = ctx;
    buf_printf(&f->changes, "changed %s/%s\n", ns, group);
}

static void on_exited(void *ctx, const char *uid, uint32_t attempt, uint32_t rank, int exit_code,
                      const char *last_lines)
{
    struct gateway_fixture *f = ctx;
    buf_printf(&f->changes, "exited %s %u %u %d\n", uid, attempt, rank, exit_code);
    router_worker_exited(gateway_router(f->gateway), uid, attempt, rank, exit_code, last_lines);
}

static void on_kill_refused(void *ctx, const char *uid, uint32_t rank, const char *why)
{
    const struct gateway_fixture *f = ctx;
    router_kill_refused(gateway_router(f->gateway), uid, rank, why);
}

static int kill_rank(void *ctx, const char *uid, uint32_t attempt, uint32_t rank, struct err *err)
{
    const struct gateway_fixture *f = ctx;
    char pod_uid[32];
    snprintf(pod_uid, sizeof pod_uid, "uid-%u", rank);
    return agents_kill(f->agents, pod_uid, uid, attempt, rank, err);
}

void gateway_fixture_start(struct gateway_fixture *f, const struct gateway_config *limits, const char *address)
{
    struct gateway_config config = limits ? *limits : (struct gateway_config){.hello_ms = 0};
    struct err err = ERR_INIT;
    *f = (struct gateway_fixture){.loop = loop_new(), .heartbeat_ms = 3000, .changes = BUF_INIT(1 << 20)};
    f->authority = (struct authority){.ctx = f,
                                      .client = authority_client,
                                      .cancel = authority_cancel,
                                      .pod = authority_pod,
                                      .ticket = authority_ticket,
                                      .ticket_text = authority_ticket_text,
                                      .peer_secret = authority_secret,
                                      .replica_proof = authority_proof};
    f->agents = agents_new(&(struct agents_config){.clock = loop_clock(f->loop),
                                                   .changed = on_changed,
                                                   .exited = on_exited,
                                                   .kill_refused = on_kill_refused,
                                                   .ctx = f});
    config.authority = &f->authority;
    config.agents = f->agents;
    config.pod = find_pod;
    config.place = find_place;
    config.kill = kill_rank;
    config.ctx = f;
    f->gateway = gateway_new(f->loop, &config, &err);
    if (!f->gateway)
        fail_msg("%s", err.msg);
    f->port = gateway_listen(f->gateway, address ? address : "127.0.0.1:0", false, &err);
    if (f->port < 0)
        fail_msg("%s", err.msg);
    if (f->port)
        snprintf(f->address, sizeof f->address, "127.0.0.1:%d", f->port);
    else
        snprintf(f->address, sizeof f->address, "%s", address);
}

void gateway_fixture_stop(struct gateway_fixture *f)
{
    gateway_free(f->gateway);
    agents_free(f->agents);
    loop_free(f->loop);
    buf_done(&f->changes);
}

void gateway_fixture_restart(struct gateway_fixture *f, const struct gateway_config *limits)
{
    gateway_fixture_stop(f);
    gateway_fixture_start(f, limits, NULL);
}

void gateway_fixture_group(struct gateway_fixture *f, uint32_t world, uint32_t attempt, const char *refusal)
{
    const struct group_facts facts = {.uid = GATEWAY_UID,
                                      .ns = "ml",
                                      .name = "llama",
                                      .world = world,
                                      .attempt = attempt,
                                      .oldest = attempt,
                                      .refusal = refusal};
    router_group_set(gateway_router(f->gateway), &facts);
}

struct gateway_counters gateway_fixture_counters(const struct gateway_fixture *f)
{
    struct gateway_counters c;
    gateway_counters(f->gateway, &c);
    return c;
}

// Peers

static void worker_answer(struct gateway_peer *p, const struct record *r)
{
    struct record_call call;
    struct err err = ERR_INIT;
    char body[512];
    p->last_call = r->h.call;
    p->n_calls++;
    if (p->quiet)
        return;
    assert_int_equal(record_call_decode(r->body, r->len, &call, &err), 0);
    snprintf(body, sizeof body, "{\"rank\":%u,\"args\":%.*s}", p->rank, (int)MIN(call.args_len, (size_t)400),
             call.args_len ? call.args : "null");
    gateway_peer_send(p, RECORD_RESULT, r->h.call, p->rank, body);
}

static void take_ticket(struct gateway_peer *p, const struct record *r)
{
    static const char member[] = "\"ticket\":\"";
    _cleanup_(free_p) char *text = strndup(r->body, r->len);
    const char *at = strstr(text, member);
    if (at)
        snprintf(p->ticket, sizeof p->ticket, "%.*s", (int)strcspn(at + strlen(member), "\""), at + strlen(member));
}

static void peer_record(struct gateway_peer *p, const struct record *r)
{
    char rank[16] = "-";
    p->bytes += r->len;
    if (r->h.rank != RECORD_GROUP)
        snprintf(rank, sizeof rank, "%u", r->h.rank);
    buf_printf(&p->got, "%s %u %s ", record_type_name(r->h.type), r->h.call, rank);
    bool headed = r->h.type == RECORD_CALL || r->h.type == RECORD_ARCHIVE;
    size_t prefix = headed ? MIN(r->len, (size_t)4) : 0; // it has bytes that are zero
    buf_append(&p->got, r->body + prefix, MIN(r->len - prefix, (size_t)2000));
    buf_puts(&p->got, "\n");
    if (r->h.type == RECORD_WELCOME)
        take_ticket(p, r);
    if (p->worker && r->h.type == RECORD_CALL)
        worker_answer(p, r);
}

static void on_open(void *ctx, const char *subprotocol)
{
    struct gateway_peer *p = ctx;
    (void)subprotocol;
    p->opened = true;
}

static void on_data(void *ctx, const char *data, size_t len, bool end)
{
    struct gateway_peer *p = ctx;
    struct record r;
    struct err err = ERR_INIT;
    (void)end;
    while (record_reader_next(&p->reader, &data, &len, &r, &err) > 0)
        peer_record(p, &r);
    assert_int_equal(err.code, 0);
}

static void on_message(void *ctx, bool text, const char *data, size_t len)
{
    struct gateway_peer *p = ctx;
    assert_true(text);
    buf_append(&p->got, data, MIN(len, (size_t)2000));
    buf_puts(&p->got, "\n");
}

static void on_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    struct gateway_peer *p = ctx;
    p->closed = true;
    p->code = code;
    p->err = *err;
    snprintf(p->reason, sizeof p->reason, "%s", reason);
}

void gateway_peer_dial(struct gateway_peer *p, struct gateway_fixture *f, const char *path, const char *token,
                       const char *subprotocols)
{
    char bearer[1024];
    struct err err = ERR_INIT;
    const struct handshake_header header = {"Authorization", bearer};
    snprintf(bearer, sizeof bearer, "Bearer %s", token ? token : "");
    *p = (struct gateway_peer){.f = f, .got = BUF_INIT((size_t)64 << 20)};
    record_reader_init(&p->reader, &(struct record_reader_config){.whole = true});
    const struct ws_client_config config = {
        .address = f->address,
        .path = path,
        .subprotocols = subprotocols ? subprotocols : RECORD_SUBPROTOCOL,
        .headers = &header,
        .n_headers = token != NULL,
        .on_open = on_open,
        .on_data = on_data,
        .on_message = on_message,
        .on_close = on_close,
        .ctx = p,
    };
    p->client = ws_client_new(f->loop, &config, &err);
    if (!p->client)
        fail_msg("%s", err.msg);
}

void gateway_peer_hang_up(struct gateway_peer *p)
{
    ws_client_free(TAKE_PTR(p->client));
    record_reader_done(&p->reader);
    buf_done(&p->got);
}

void gateway_peer_send(struct gateway_peer *p, enum record_type type, uint32_t call, uint32_t rank, const char *body)
{
    struct err err = ERR_INIT;
    const struct record_header h = {.type = (uint8_t)type, .call = call, .rank = rank};
    if (ws_client_record_copy(p->client, &h, body, strlen(body), &err) < 0)
        fail_msg("%s", err.msg);
}

void gateway_peer_text(struct gateway_peer *p, const char *text)
{
    struct err err = ERR_INIT;
    if (ws_client_message(p->client, true, text, strlen(text), &err) < 0)
        fail_msg("%s", err.msg);
}

void gateway_peer_call(struct gateway_peer *p, uint32_t id, const char *head, const char *args)
{
    struct err err = ERR_INIT;
    struct buf body = BUF_INIT((size_t)128 << 20);
    char prefix[4];
    record_call_prefix(prefix, (uint32_t)strlen(head));
    buf_append(&body, prefix, sizeof prefix);
    buf_puts(&body, head);
    buf_puts(&body, args);
    const struct record_header h = {.type = RECORD_CALL, .call = id, .rank = RECORD_GROUP};
    if (ws_client_record_copy(p->client, &h, body.data, body.len, &err) < 0)
        fail_msg("%s", err.msg);
    buf_done(&body);
}

bool gateway_peer_got(const struct gateway_peer *p, const char *text)
{
    return strstr(buf_str(&p->got), text) != NULL;
}

void gateway_peer_is_closed(struct gateway_peer *p, unsigned code, const char *error)
{
    GATEWAY_UNTIL(p->f, p->closed);
    if (p->code != code || !gateway_peer_got(p, error))
        fail_msg("closed with %u (%s), not %u %s: %s", p->code, p->reason, code, error, buf_str(&p->got));
    gateway_peer_hang_up(p);
}

void gateway_client(struct gateway_peer *p, struct gateway_fixture *f)
{
    gateway_peer_dial(p, f, "/v1/namespaces/ml/workergroups/llama", "alice", NULL);
    gateway_peer_send(p, RECORD_HELLO, 0, RECORD_GROUP, "{\"role\":\"controller\",\"version\":1}");
    GATEWAY_UNTIL(f, gateway_peer_got(p, "WELCOME"));
}

void gateway_worker_hello(struct gateway_peer *p, uint32_t rank, const char *ticket)
{
    char hello[1024];
    p->worker = true;
    p->rank = rank;
    snprintf(hello, sizeof hello,
             "{\"role\":\"worker\",\"version\":1,\"rank\":%u,\"ticket\":\"%s\",\"methods\":["
             "{\"name\":\"echo\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},"
             "{\"name\":\"each\",\"dispatch\":\"ALL_TO_ALL\",\"execute\":\"ALL\"}]}",
             rank, ticket);
    gateway_peer_send(p, RECORD_HELLO, 0, RECORD_GROUP, hello);
}

void gateway_worker(struct gateway_peer *p, struct gateway_fixture *f, uint32_t rank, uint32_t attempt)
{
    char ticket[256];
    gateway_fixture_ticket(ticket, GATEWAY_UID, attempt, rank, 0);
    gateway_peer_dial(p, f, "/v1/connect", NULL, NULL);
    gateway_worker_hello(p, rank, ticket);
    GATEWAY_UNTIL(f, gateway_peer_got(p, "WELCOME"));
}

// Bare sockets

static int dial_raw(const struct gateway_fixture *f)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)f->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static bool read_all(int fd, struct buf *out)
{
    char data[4096];
    ssize_t n;
    while ((n = recv(fd, data, sizeof data, 0)) > 0)
        buf_append(out, data, (size_t)n);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

char *gateway_ask(struct gateway_fixture *f, const void *bytes, size_t len)
{
    struct buf out = BUF_INIT((size_t)16 << 20);
    const char *p = bytes;
    int fd = dial_raw(f);
    bool ended = false;
    for (int64_t end = clock_mono_ms(&clock_system) + PATIENCE_MS; !ended && clock_mono_ms(&clock_system) < end;) {
        ssize_t n = len ? send(fd, p, len, MSG_NOSIGNAL) : 0;
        p += MAX(n, (ssize_t)0);
        len -= (size_t)MAX(n, (ssize_t)0);
        loop_run_once(f->loop, 5);
        ended = read_all(fd, &out);
    }
    close(fd);
    if (!ended)
        fail_msg("the connection stays; so far: %s", buf_str(&out));
    return out.data ? buf_take(&out) : xstrdup("");
}

char *gateway_post(struct gateway_fixture *f, const char *path, const char *token, const char *body)
{
    _cleanup_(free_p) char *request = xasprintf(
        "POST %s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", path,
        token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "", strlen(body), body);
    return gateway_ask(f, request, strlen(request));
}
