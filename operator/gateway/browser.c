// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/browser.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_port(const char *text)
{
    return !*text || (text[0] == ':' && text[1] && strspn(text + 1, "0123456789") == strlen(text + 1));
}

// "127.0.0.1", "[::1]" or "localhost", with or without a port.
static bool is_address(const char *host)
{
    char name[INET6_ADDRSTRLEN];
    struct in6_addr address;
    bool v6 = host[0] == '[';
    size_t len = strcspn(host += v6, v6 ? "]" : ":");
    const char *port = host + len + (v6 && host[len]);
    if (len >= sizeof name || (v6 && !host[len]) || !is_port(port))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)len, host);
    return inet_pton(v6 ? AF_INET6 : AF_INET, name, &address) == 1 || (!v6 && strcasecmp(name, "localhost") == 0);
}

// The origin is this server itself. Some websocket libraries send that.
static bool is_own(const char *origin, const char *host)
{
    const char *name = strstr(origin, "://");
    return name && host && strcasecmp(name + 3, host) == 0;
}

int browser_check(bool plain, const char *host, const char *origin, struct err *err)
{
    if (plain && (!host || !is_address(host)))
        return err_set(err, ERR_FORBIDDEN,
                       "the Host header is %.100s: this port is for programs that name an address of this machine, "
                       "such as 127.0.0.1, or localhost",
                       host ? host : "missing");
    if (origin && !is_own(origin, host))
        return err_set(err, ERR_FORBIDDEN, "a web site (%.100s) may not send requests here", origin);
    return 0;
}

int browser_check_type(const char *content_type, struct err *err)
{
    static const char json[] = "application/json";
    size_t len = content_type ? strcspn(content_type, "; \t") : 0;
    if (len == sizeof json - 1 && strncasecmp(content_type, json, len) == 0)
        return 0;
    err->http_status = 415;
    return err_set(err, ERR_INVALID, "a POST has the header Content-Type: application/json, not %.100s",
                   content_type ? content_type : "none");
}
