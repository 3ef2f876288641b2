// SPDX-License-Identifier: Apache-2.0
#include "cli/address.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static char *write_address(const char *scheme, const struct addrinfo *a, const char *port)
{
    char host[NI_MAXHOST];
    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
        return NULL;
    return xasprintf(strchr(host, ':') ? "%s[%s]:%s" : "%s%s:%s", scheme, host, port);
}

static char *pick(const char *scheme, const struct addrinfo *found, unsigned nth, const char *port)
{
    unsigned n = 0;
    for (const struct addrinfo *a = found; a; a = a->ai_next)
        n++;
    const struct addrinfo *a = found;
    for (unsigned i = n ? nth % n : 0; i > 0; i--)
        a = a->ai_next;
    return a ? write_address(scheme, a, port) : NULL;
}

char *address_nth(const char *url, unsigned nth, char **ret_name)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *scheme = str_starts(url, "wss://") ? "wss://" : "ws://", *host = url + strlen(scheme);
    const char *port = str_starts(url, scheme) ? strrchr(host, ':') : NULL;
    if (!port || *host == '[')
        return NULL;
    *ret_name = xasprintf("%.*s", (int)(port - host), host);
    char *address = getaddrinfo(*ret_name, port + 1, &hints, &found) == 0 ? pick(scheme, found, nth, port + 1) : NULL;
    if (found)
        freeaddrinfo(found);
    if (!address)
        free(TAKE_PTR(*ret_name));
    return address;
}
