// SPDX-License-Identifier: Apache-2.0
// Connections that say nothing, or not enough: what they may take of a server, and what they cannot take from others.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ws_fixture f;
static struct ws_peer p;
static struct certs certs;

static int make_certs(void **state)
{
    (void)state;
    certs_make(&certs);
    return 0;
}

static int drop_certs(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    f = (struct ws_fixture){0};
    p = (struct ws_peer){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    return 0;
}

static void open_peer(void)
{
    ws_peer_start(&p, &f, NULL);
    WS_UNTIL(&f, p.opened || p.closed);
    assert_true(p.opened);
}

static int silent_connection(void)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)f.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

// libwebsockets would walk a list of them for each that comes.
static void connections_that_say_nothing_stay_out_and_take_nobody_s_place(void **state)
{
    int fds[60];
    const struct ws_server_counters *n;
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_connections = 32});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = silent_connection();
    WS_UNTIL(&f, n->turned_away >= ARRAY_LEN(fds) - 8); // a quarter of 32
    assert_int_equal(n->connections, 0);
    open_peer();
    assert_int_equal(n->connections, 1);
    // The one that came last may still say something.
    assert_int_equal(send(fds[ARRAY_LEN(fds) - 1], "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
    WS_UNTIL(&f, n->connections == 2);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void requests_that_never_end_go_for_new_ones(void **state)
{
    int fds[30];
    const struct ws_server_counters *n;
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_connections = 32});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = silent_connection();
        assert_int_equal(send(fds[i], "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
        uint64_t before = n->turned_away;
        WS_UNTIL(&f, n->connections == i + 1 || n->turned_away > before || n->connections >= 8);
    }
    WS_UNTIL(&f, n->turned_away >= ARRAY_LEN(fds) - 8 && n->connections <= 8);
    open_peer();
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void who_says_nothing_in_time_goes(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.first_line_ms = 10});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    int fd = silent_connection();
    WS_UNTIL(&f, ws_server_counters(f.server)->turned_away == 1);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), -1); // a reset
    close(fd);
}

static void start_server(bool tls)
{
    ws_fixture_start(&f, &(struct ws_server_config){
                             .max_connections = 4096, .cert_pem = certs.server_cert, .key_pem = certs.server_key});
    ws_fixture_listen(&f, "127.0.0.1:0", tls);
}

// The first bytes of a TLS client.
static size_t client_hello(unsigned char *out, size_t size)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *sent = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, sent);
    assert_int_equal(SSL_connect(ssl), -1); // no answer comes
    int n = BIO_read(sent, out, (int)size);
    assert_true(n > 100 && n < (int)size);
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return (size_t)n;
}

static void sends(int fd, const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

// All send the same at once. How many of them a turn of the loop lets in at most, until all are.
static unsigned let_in_a_turn(bool tls, const void *data, size_t len)
{
    int fds[24];
    unsigned most = 0;
    start_server(tls);
    const struct ws_server_counters *n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = silent_connection();
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        sends(fds[i], data, len);
    while (n->connections < ARRAY_LEN(fds)) {
        unsigned before = n->connections;
        loop_run_once(f.loop, 100);
        most = MAX(most, n->connections - before);
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    return most;
}

static void few_requests_are_let_in_in_a_turn_of_the_loop(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\n";
    (void)state;
    assert_in_range(let_in_a_turn(false, request, sizeof request - 1), 1, 4);
}

static void fewer_handshakes_are_begun_in_a_turn_of_the_loop(void **state)
{
    unsigned char hello[4096];
    size_t len = client_hello(hello, sizeof hello);
    (void)state;
    assert_in_range(let_in_a_turn(true, hello, len), 1, 2);
}

// Else many could be kept in the middle of a handshake, and let go on in one turn.
static void a_handshake_is_begun_when_all_of_its_first_message_is_there(void **state)
{
    unsigned char hello[4096];
    size_t len = client_hello(hello, sizeof hello);
    (void)state;
    start_server(true);
    const struct ws_server_counters *n = ws_server_counters(f.server);
    int slow = silent_connection(), fast = silent_connection();
    sends(slow, hello, 1);
    sends(fast, hello, len);
    WS_UNTIL(&f, n->connections == 1); // the other one
    sends(slow, hello + 1, len - 2);
    sends(fast, hello, len); // no message of TLS that may come now
    WS_UNTIL(&f, n->connections == 0);
    sends(slow, hello + len - 1, 1);
    WS_UNTIL(&f, n->connections == 1);
    close(slow);
    close(fast);
}

static void the_first_message_of_a_handshake_is_in_one_record(void **state)
{
    unsigned char hello[4096], byte;
    size_t len = client_hello(hello, sizeof hello);
    ssize_t got = -1;
    (void)state;
    start_server(true);
    int fd = silent_connection();
    hello[3] = 0;
    hello[4] = 50; // bytes of the first of several records
    sends(fd, hello, len);
    WS_UNTIL(&f, (got = recv(fd, &byte, 1, MSG_DONTWAIT)) >= 0 || errno == ECONNRESET);
    assert_true(got <= 0);
    assert_int_equal(ws_server_counters(f.server)->connections, 0);
    close(fd);
}

// The only key that the clients send is of a group that the server does not know, so it wants another one. All clients
// send that one at once.
static void few_second_messages_of_handshakes_are_answered_in_a_turn_of_the_loop(void **state)
{
    static const unsigned char x448_and_p521[] = {0, 0x1e, 0, 0x19}, key_of_x25519[] = {0, 0x1d, 0, 32};
    unsigned char hello[4096], other[4096], answer[4096];
    int fds[12];
    size_t len = client_hello(hello, sizeof hello);
    unsigned char *group = memmem(hello, len, x448_and_p521, 4), *key = memmem(hello, len, key_of_x25519, 4);
    (void)state;
    assert_true(group && key);
    memset(group, 0x0a, 2);
    memcpy(other, hello, len);
    memset(other + (key - hello), 0x0a, 2);
    start_server(true);
    const struct ws_server_counters *n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = silent_connection();
        sends(fds[i], other, len);
        WS_UNTIL(&f, recv(fds[i], answer, sizeof answer, MSG_DONTWAIT | MSG_PEEK) > 0);
        assert_in_range(recv(fds[i], answer, sizeof answer, MSG_DONTWAIT), 50, 200); // a HelloRetryRequest
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        sends(fds[i], hello, len);
    unsigned answered = 0, most = 0;
    while (answered + n->turned_away < ARRAY_LEN(fds)) {
        unsigned before = answered;
        loop_run_once(f.loop, 100);
        for (size_t i = 0; i < ARRAY_LEN(fds); i++) // by a ServerHello, and not by an alert
            answered += recv(fds[i], answer, sizeof answer, MSG_DONTWAIT) > 100;
        most = MAX(most, answered - before);
    }
    assert_in_range(most, 1, 2);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static int goes_on = -1; // a client

// While libwebsockets reads what the client has sent, as much comes again.
__attribute__((visibility("default"))) ssize_t recv(int fd, void *data, size_t size, int flags)
{
    ssize_t n = recvfrom(fd, data, size, flags, NULL, NULL);
    if (goes_on >= 0 && n > 0 && !(flags & MSG_PEEK)) {
        char more[64];
        memset(more, 'A', sizeof more);
        sends(goes_on, more, MIN((size_t)n, sizeof more));
        goes_on = -1;
    }
    return n;
}

// How many connections end in a turn of the loop at most, until all have.
static unsigned most_ends(void)
{
    const struct ws_server_counters *n = ws_server_counters(f.server);
    unsigned most = 0;
    while (n->connections) {
        unsigned before = n->connections;
        loop_run_once(f.loop, 100);
        most = MAX(most, before - n->connections);
    }
    return most;
}

// All begin a request, and then hang up at once.
static unsigned end_in_a_turn(bool tls, const void *data, size_t len)
{
    int fds[48];
    start_server(tls);
    const struct ws_server_counters *n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = silent_connection();
        goes_on = tls ? -1 : fds[i];
        sends(fds[i], data, len);
        WS_UNTIL(&f, goes_on < 0);
    }
    WS_UNTIL(&f, n->connections == ARRAY_LEN(fds));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    return most_ends();
}

static void few_requests_that_never_end_end_in_a_turn_of_the_loop(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\n";
    (void)state;
    assert_in_range(end_in_a_turn(false, request, sizeof request - 1), 1, 16);
}

static void few_handshakes_that_never_end_end_in_a_turn_of_the_loop(void **state)
{
    unsigned char hello[4096];
    size_t len = client_hello(hello, sizeof hello);
    (void)state;
    assert_in_range(end_in_a_turn(true, hello, len), 1, 16);
}

static void few_sessions_end_in_a_turn_of_the_loop(void **state)
{
    struct ws_peer peers[48] = {0};
    (void)state;
    start_server(false);
    const struct ws_server_counters *n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(peers); i++)
        ws_peer_start(&peers[i], &f, NULL);
    WS_UNTIL(&f, n->sessions == ARRAY_LEN(peers));
    for (size_t i = 0; i < ARRAY_LEN(peers); i++)
        ws_peer_stop(&peers[i]);
    assert_in_range(most_ends(), 1, 16);
}

static void a_request_that_does_not_come_in_time_ends(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.first_line_ms = 10});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    int fd = silent_connection();
    sends(fd, "GET / HTTP/1.1\r\n", 16);
    const struct ws_server_counters *n = ws_server_counters(f.server);
    WS_UNTIL(&f, n->turned_away == 1 && n->connections == 0);
    close(fd);
}

static bool answer_comes_first;

// OpenSSL's, too. A server that was preempted behind it would find the client's answer when it looks for that.
__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t len)
{
    ssize_t n = syscall(SYS_write, fd, data, len);
    if (answer_comes_first && len > 500) // the server's part of a handshake
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
    return n;
}

static int ask_for_a_bad_path(int fd)
{
    static const char request[] = "GET /v1/%2f HTTP/1.1\r\nHost: h\r\n\r\n";
    char answer[64] = "";
    SSL *ssl = SSL_new(SSL_CTX_new(TLS_client_method()));
    bool asked = SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1 && SSL_write(ssl, request, sizeof request - 1) > 0;
    return asked && SSL_read(ssl, answer, sizeof answer - 1) > 0 && strstr(answer, "HTTP/1.1 400 ") == answer ? 0 : 1;
}

static void the_first_line_is_read_when_the_handshake_is_done_at_once(void **state)
{
    int status = -1;
    (void)state;
    start_server(true);
    int fd = silent_connection();
    pid_t pid = fork();
    if (pid == 0)
        _exit(ask_for_a_bad_path(fd));
    close(fd);
    answer_comes_first = true;
    WS_UNTIL(&f, status >= 0 || waitpid(pid, &status, WNOHANG) == pid);
    answer_comes_first = false;
    assert_int_equal(status, 0);
}

// The client sends all of this at once behind its handshake. Whether the request is answered.
static bool is_answered_behind_new_keys(int fd, int n)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    unsigned char out[16384];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *sent = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, BIO_new_socket(fd, BIO_NOCLOSE), sent);
    const struct ws_server_counters *c = ws_server_counters(f.server);
    uint64_t requests = c->requests, over_limit = c->over_limit;
    for (bool done = false; !done; loop_run_once(f.loop, 10)) {
        done = SSL_connect(ssl) == 1;
        int len = BIO_read(sent, out, sizeof out);
        if (len > 0)
            sends(fd, out, (size_t)len);
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(ssl), 1);
    }
    assert_true(SSL_write(ssl, request, sizeof request - 1) > 0);
    int len = BIO_read(sent, out, sizeof out);
    sends(fd, out, (size_t)len);
    WS_UNTIL(&f, c->connections == 0);
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    assert_int_equal(c->requests - requests + c->over_limit - over_limit, 1);
    return c->requests > requests;
}

static int nonblocking_connection(void)
{
    int fd = silent_connection();
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void few_new_keys_are_made_in_a_turn_of_the_loop(void **state)
{
    (void)state;
    start_server(true);
    int few = nonblocking_connection(), many = nonblocking_connection();
    assert_true(is_answered_behind_new_keys(few, 2));
    assert_false(is_answered_behind_new_keys(many, 100));
    close(few);
    close(many);
}

// Turns a server of a process that may have so many files, until all peers have come. Returns whether it has taken half
// of that number, and has turned away one peer.
static bool takes_half_of(rlim_t files, const char *address, int ready)
{
    const char *const none[] = {NULL};
    const struct ws_server_config config = {.subprotocols = none, .first_line_ms = 3600 * 1000};
    struct err err = ERR_INIT;
    struct loop *loop = loop_new();
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){files, files});
    struct ws_server *server = ws_server_new(loop, &config, &err);
    if (!server || ws_server_listen(server, address, false, &err) < 0 || write(ready, "", 1) != 1)
        return false;
    const struct ws_server_counters *n = ws_server_counters(server);
    while (n->connections + n->turned_away <= files / 2)
        loop_run_once(loop, 1000);
    return n->connections == files / 2 && n->turned_away == 1;
}

// The limit of files is the process's, so it is a child's here.
static void there_are_fewer_connections_where_there_are_few_descriptors(void **state)
{
    enum { FILES = 128 };
    int ready[2], fds[FILES / 2 + 1], status = -1;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char address[64];
    (void)state;
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-few-%d.sock", (int)getpid());
    snprintf(at.sun_path, sizeof at.sun_path, "%s", address + strlen("unix:"));
    ws_fixture_start(&f, &(struct ws_server_config){0});
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(takes_half_of(FILES, address, ready[1]) ? 0 : 1);
    close(ready[1]);
    assert_int_equal(read(ready[0], &status, 1), 1);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&at, sizeof at), 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    close(ready[0]);
    unlink(at.sun_path);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(connections_that_say_nothing_stay_out_and_take_nobody_s_place),
        T(requests_that_never_end_go_for_new_ones),
        T(who_says_nothing_in_time_goes),
        T(few_requests_are_let_in_in_a_turn_of_the_loop),
        T(fewer_handshakes_are_begun_in_a_turn_of_the_loop),
        T(a_handshake_is_begun_when_all_of_its_first_message_is_there),
        T(the_first_message_of_a_handshake_is_in_one_record),
        T(few_second_messages_of_handshakes_are_answered_in_a_turn_of_the_loop),
        T(few_new_keys_are_made_in_a_turn_of_the_loop),
        T(few_requests_that_never_end_end_in_a_turn_of_the_loop),
        T(few_handshakes_that_never_end_end_in_a_turn_of_the_loop),
        T(few_sessions_end_in_a_turn_of_the_loop),
        T(a_request_that_does_not_come_in_time_ends),
        T(the_first_line_is_read_when_the_handshake_is_done_at_once),
        T(there_are_fewer_connections_where_there_are_few_descriptors),
    };
    return cmocka_run_group_tests(tests, make_certs, drop_certs);
}
