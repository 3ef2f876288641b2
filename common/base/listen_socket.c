// SPDX-License-Identifier: Apache-2.0
#include "common/base/listen_socket.h"

#include "common/base/str.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int not_an_address(const char *address, struct err *err)
{
    return err_set(
        err, ERR_INVALID,
        "\"%s\" is not an address to listen on: want <IP address>:<port>, [<IPv6 address>]:<port> or :<port>", address);
}

// Splits "host:port", "[host]:port" or ":port" (`host` is then ""). Returns false for anything else.
static bool split(const char *address, char *host, size_t size, const char **ret_port)
{
    const char *colon = strrchr(address, ':'), *end = colon;
    bool bracket = address[0] == '[';
    int64_t number;
    if (!colon || !str_to_i64(colon + 1, &number) || number < 0 || number > 65535)
        return false;
    if (bracket) {
        if (colon[-1] != ']' || colon == address + 2)
            return false;
        address++;
        end--;
    }
    size_t n = (size_t)(end - address);
    if (n >= size || (!bracket && memchr(address, ':', n)))
        return false;
    memcpy(host, address, n);
    host[n] = '\0';
    *ret_port = colon + 1;
    return true;
}

static int cannot_listen(const char *address, struct err *err)
{
    int reason = errno;
    return err_set(err, ERR_UNAVAILABLE, "cannot listen on %s: %s", address,
                   reason == EADDRINUSE ? "address already in use: stop the program that has it, or choose another port"
                   : reason == EACCES   ? "permission denied: ports below 1024 need a privilege, choose another"
                   : reason == EADDRNOTAVAIL ? "no interface of this machine has that address"
                                             : strerror(reason));
}

// Returns a bound and listening socket, or -1 with errno.
static int open_socket(const struct addrinfo *a)
{
    int yes = 1, no = 0;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {.any.sa_family = AF_UNSPEC};
    socklen_t len = sizeof a;
    getsockname(fd, &a.any, &len);
    return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

// ":port" listens on the IPv6 wildcard, which also accepts IPv4. On a machine without IPv6, or with IPv6 switched off,
// it listens on the IPv4 wildcard.
int listen_socket_open(const char *address, int *ret_port, struct err *err)
{
    char host[64];
    const char *port;
    if (!split(address, host, sizeof host, &port))
        return not_an_address(address, err);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    if (getaddrinfo(*host ? host : "::", port, &hints, &found) != 0)
        return not_an_address(address, err);
    int fd = open_socket(found);
    if (fd < 0 && !*host && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
        freeaddrinfo(found);
        if (getaddrinfo("0.0.0.0", port, &hints, &found) != 0)
            return not_an_address(address, err);
        fd = open_socket(found);
    }
    freeaddrinfo(found);
    if (fd < 0)
        return cannot_listen(address, err);
    *ret_port = bound_port(fd);
    return fd;
}
