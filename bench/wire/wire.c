// SPDX-License-Identifier: Apache-2.0
// The cost of a websocket: our client against our server in another process on this host, beside a bare TCP socket that
// echoes the same number of bytes from one small buffer, in the same run. Options: --tls, --unix, --read-size BYTES,
// --seconds N for each measurement.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record_reader.h"
#include "common/ws/ws_client.h"
#include "common/ws/ws_server.h"
#include "tests/fakeapi/certs.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 3

static double seconds = 1; // of each measurement
static size_t read_size;
static bool with_tls, with_unix;

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "wire: %s: %s\n", what, why);
    exit(1);
}

// The server: sends each record back as a result.

static int on_upgrade(void *ctx, struct ws_session *s, struct ws_request *r, struct err *err)
{
    (void)ctx;
    (void)r;
    (void)err;
    struct record_reader *reader = xcalloc(1, sizeof *reader);
    record_reader_init(reader, &(struct record_reader_config){.quota = ws_session_quota(s)});
    ws_session_set_user(s, reader);
    return 0;
}

static void on_data(void *ctx, struct ws_session *s, const char *data, size_t len, bool end)
{
    struct record rec;
    struct err err = ERR_INIT;
    (void)ctx;
    (void)end;
    while (record_reader_next(ws_session_user(s), &data, &len, &rec, &err) == 1) {
        struct record_header h = rec.h;
        h.type = RECORD_RESULT;
        int r;
        if (rec.len < 4096) {
            r = ws_session_record_copy(s, &h, rec.body, rec.len, &err);
        } else {
            struct blob *b = rec.blob ? blob_ref(rec.blob) : blob_copy(rec.body, rec.len, NULL);
            r = record_writer_push(ws_session_records(s), &h, &(struct record_part){b, 0, rec.len}, 1, &err);
            ws_session_wake(s);
            blob_unref(b);
        }
        if (r < 0)
            die("answer", err.msg);
    }
}

static void on_close(void *ctx, struct ws_session *s, unsigned code, const char *reason)
{
    (void)ctx;
    (void)code;
    (void)reason;
    record_reader_done(ws_session_user(s));
    free(ws_session_user(s));
}

static void serve(const struct certs *certs, const char *unix_address, int report)
{
    static const char *const subprotocols[] = {RECORD_SUBPROTOCOL, NULL};
    struct err err = ERR_INIT;
    struct loop *loop = loop_new();
    struct ws_server *server = ws_server_new(loop,
                                             &(struct ws_server_config){.subprotocols = subprotocols,
                                                                        .cert_pem = certs->server_cert,
                                                                        .key_pem = certs->server_key,
                                                                        .read_size = read_size,
                                                                        .on_upgrade = on_upgrade,
                                                                        .on_data = on_data,
                                                                        .on_close = on_close},
                                             &err);
    if (!server)
        die("server", err.msg);
    int port = ws_server_listen(server, with_unix ? unix_address : "127.0.0.1:0", with_tls, &err);
    if (port < 0)
        die("listen", err.msg);
    if (write(report, &port, sizeof port) != (ssize_t)sizeof port)
        die("pipe", "broken");
    loop_run(loop);
}

// The client

struct run {
    struct loop *loop;
    struct ws_client *client;
    struct record_reader reader;
    struct blob *body;
    size_t len, got;
    unsigned in_flight;
    uint32_t call;
    uint64_t done;
    double end;
    bool open, over;
};

static void call(struct run *r)
{
    struct err err = ERR_INIT;
    const struct record_header h = {.type = RECORD_CALL, .call = ++r->call};
    int e = r->len < 4096 ? ws_client_record_copy(r->client, &h, r->body->data, r->len, &err)
                          : ws_client_record(r->client, &h, &(struct record_part){r->body, 0, r->len}, 1, &err);
    if (e < 0)
        die("call", err.msg);
}

static void client_data(void *ctx, const char *data, size_t len, bool end)
{
    struct run *r = ctx;
    struct record rec;
    struct err err = ERR_INIT;
    (void)end;
    while (record_reader_next(&r->reader, &data, &len, &rec, &err) == 1) {
        r->got += rec.len;
        if (r->got < r->len)
            continue;
        r->got = 0;
        r->done++;
        if ((r->done & 63) == 0 || r->in_flight < 64)
            r->over = now_s() >= r->end;
        if (!r->over)
            call(r);
    }
}

static void client_open(void *ctx, const char *subprotocol)
{
    struct run *r = ctx;
    (void)subprotocol;
    r->open = true;
}

static void client_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    (void)ctx;
    (void)code;
    die(reason[0] ? reason : "closed", err->msg);
}

static double measure(const char *address, struct ws_tls *tls, size_t len, unsigned in_flight)
{
    struct err err = ERR_INIT;
    struct run r = {.loop = loop_new(), .len = len, .in_flight = in_flight, .body = blob_new(len, NULL)};
    memset(r.body->data, 'x', len);
    record_reader_init(&r.reader, &(struct record_reader_config){0});
    r.client = ws_client_new(r.loop,
                             &(struct ws_client_config){.address = address,
                                                        .subprotocols = RECORD_SUBPROTOCOL,
                                                        .tls = tls,
                                                        .on_open = client_open,
                                                        .on_data = client_data,
                                                        .on_close = client_close,
                                                        .ctx = &r},
                             &err);
    if (!r.client)
        die("client", err.msg);
    while (!r.open)
        loop_run_once(r.loop, 1000);
    double begin = now_s();
    r.end = begin + seconds;
    for (unsigned i = 0; i < in_flight; i++)
        call(&r);
    while (!r.over)
        loop_run_once(r.loop, 1000);
    double rate = (double)r.done / (now_s() - begin);
    ws_client_free(r.client);
    record_reader_done(&r.reader);
    blob_unref(r.body);
    loop_free(r.loop);
    return rate;
}

// The floor: blocking sockets, nothing but bytes

static void copy_back(int fd)
{
    static char data[1 << 20];
    for (ssize_t n; (n = recv(fd, data, sizeof data, 0)) > 0;)
        for (ssize_t at = 0, w; at < n; at += w)
            if ((w = send(fd, data + at, (size_t)(n - at), MSG_NOSIGNAL)) <= 0)
                _exit(0);
    _exit(0);
}

static int bare_pair(pid_t *ret_pid)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t len = sizeof sa;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&sa, len) < 0 || listen(listener, 1) < 0)
        die("bare socket", "cannot listen");
    getsockname(listener, (struct sockaddr *)&sa, &len);
    *ret_pid = fork();
    if (*ret_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = accept(listener, NULL, NULL);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        copy_back(fd);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0)
        die("bare socket", "cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    close(listener);
    return fd;
}

// `in_flight` messages back to back; sends and receives in turn, at most 256 KiB ahead, so that neither end blocks.
static double measure_bare(size_t len, unsigned in_flight)
{
    static char out[1 << 20], in[1 << 20];
    pid_t pid;
    int fd = bare_pair(&pid);
    uint64_t sent = 0, got = 0;
    size_t ahead = MIN(len * in_flight, (size_t)256 << 10);
    double begin = now_s(), end = begin + seconds;
    memset(out, 'x', sizeof out);
    while (now_s() < end) {
        if (sent - got < ahead) {
            ssize_t n = send(fd, out, MIN(ahead - (size_t)(sent - got), sizeof out), MSG_NOSIGNAL);
            sent += n > 0 ? (uint64_t)n : 0;
        }
        ssize_t n = recv(fd, in, sizeof in, 0);
        got += n > 0 ? (uint64_t)n : 0;
    }
    double rate = (double)got / (double)len / (now_s() - begin);
    close(fd);
    waitpid(pid, NULL, 0);
    return rate;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// In turns, because the machine may do other things too; the median of the ratios.
static void line(const char *name, const char *address, struct ws_tls *tls, size_t len, unsigned in_flight)
{
    double ours[ROUNDS], bare[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = measure(address, tls, len, in_flight);
        bare[i] = measure_bare(len + RECORD_HEADER_SIZE, in_flight);
        ratio[i] = ours[i] / bare[i];
    }
    qsort(ours, ROUNDS, sizeof *ours, by_value);
    qsort(bare, ROUNDS, sizeof *bare, by_value);
    qsort(ratio, ROUNDS, sizeof *ratio, by_value);
    printf("%-24s %12.0f %12.0f %8.3f", name, ours[ROUNDS / 2], bare[ROUNDS / 2], ratio[ROUNDS / 2]);
    if (len >= 1024)
        printf("   %.2f GB/s each way", ours[ROUNDS / 2] * (double)len / 1e9);
    printf("\n");
    fflush(stdout);
}

static void parse(int argc, char **argv)
{
    int64_t n;
    for (int i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--tls"))
            with_tls = true;
        else if (str_eq(argv[i], "--unix"))
            with_unix = true;
        else if (str_eq(argv[i], "--read-size") && i + 1 < argc && str_to_i64(argv[i + 1], &n))
            read_size = (size_t)n, i++;
        else if (str_eq(argv[i], "--seconds") && i + 1 < argc && str_to_i64(argv[i + 1], &n))
            seconds = (double)n, i++;
        else
            die(argv[i], "unknown; there are --tls, --unix, --read-size BYTES and --seconds N");
    }
}

int main(int argc, char **argv)
{
    struct certs certs;
    struct err err = ERR_INIT;
    int report[2], port;
    char address[64], unix_address[64];
    parse(argc, argv);
    certs_make(&certs);
    snprintf(unix_address, sizeof unix_address, "unix:/tmp/cadre-bench-wire-%d.sock", (int)getpid());
    if (pipe(report) < 0)
        die("pipe", "cannot make one");
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(&certs, unix_address, report[1]);
        _exit(0);
    }
    if (read(report[0], &port, sizeof port) != (ssize_t)sizeof port)
        return 1;
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    struct ws_tls *tls = with_tls ? ws_tls_new(certs.ca, &err) : NULL;
    const char *to = with_unix ? unix_address : address;
    printf("%-24s %12s %12s %8s\n", "echo", "calls/s", "bare TCP/s", "ratio");
    line("10 B, one at a time", to, tls, 10, 1);
    line("10 B, 1,000 in flight", to, tls, 10, 1000);
    line("64 KiB, one at a time", to, tls, 64 << 10, 1);
    line("1 MiB, one at a time", to, tls, 1 << 20, 1);
    line("64 MiB, one at a time", to, tls, 64 << 20, 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(unix_address + 5);
    ws_tls_unref(tls);
    certs_done(&certs);
    return 0;
}
