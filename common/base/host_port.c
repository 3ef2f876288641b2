// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_port.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdint.h>
#include <string.h>

bool host_port_split(const char *address, char **ret_host, const char **ret_port)
{
    const char *end = strrchr(address, ':'), *port = end ? end + 1 : NULL;
    int64_t number;
    if (!port || !str_to_i64(port, &number) || number < 1 || number > 65535)
        return false;
    bool bracketed = address[0] == '[' && end[-1] == ']';
    address += bracketed;
    end -= bracketed;
    size_t len = end > address ? (size_t)(end - address) : 0;
    if (len == 0 || strcspn(address, bracketed ? "/[]" : "/[]:") < len)
        return false;
    *ret_host = xasprintf("%.*s", (int)len, address);
    *ret_port = port;
    return true;
}
