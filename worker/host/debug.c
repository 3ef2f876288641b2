// SPDX-License-Identifier: Apache-2.0
#include "worker/host/debug.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/host/code_right.h"

#include <string.h>
#include <sys/socket.h>

enum { MESSAGE_MAX = 64 << 10 };

static int debug_fd = -1;

void debug_install(int fd)
{
    debug_fd = fd;
}

static int type(const char *args, size_t len, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root = NULL;
    int r = json_parse(args, len, NULL, &a, &root, err);
    const char *text = r == 0 && root->type == JSON_LIST && root->child ? json_str(root->child, &a) : NULL;
    if (r == 0 && !text)
        r = err_set(err, ERR_INVALID, "%s takes a text, which may be empty", DEBUG_METHOD);
    else if (r == 0 && *text && send(debug_fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        r = err_set(err, ERR_LIMIT, "no breakpoint takes this line: %.100s", text);
    return r;
}

int debug_turn(const char *args, size_t len, bool code, struct buf *out, struct err *err)
{
    char piece[MESSAGE_MAX];
    ssize_t n;
    if (debug_fd < 0)
        return err_set(err, ERR_FORBIDDEN, "this rank has no debugger: only workers in Python have one");
    if (!code_right_admits(code))
        return err_set(err, ERR_FORBIDDEN,
                       "a debugger runs any code, and you may not send code to this group: it needs create on "
                       "workergroups/code (group cadre.dev); bind the chart's ClusterRole that ends in -code to you");
    int r = type(args, len, err);
    while (r == 0 && out->len + sizeof piece <= DEBUG_MAX &&
           (n = recv(debug_fd, piece, sizeof piece, MSG_DONTWAIT)) > 0)
        buf_append(out, piece, (size_t)n);
    return r;
}
