// SPDX-License-Identifier: Apache-2.0
#include "cli/tunnel.h"

#include "cli/kubectl.h"
#include "common/base/file.h"
#include "common/base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { OPEN_MS = 60 * 1000, STEP_MS = 20 };

static const char *path_of(const struct tunnel *t)
{
    return t->address + strlen("unix:");
}

static bool answers(const struct tunnel *t)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(to.sun_path, path_of(t), strlen(path_of(t)) + 1);
    bool good = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return good;
}

static void read_messages(const struct tunnel *t, char *text, size_t size)
{
    ssize_t n = pread(t->err_fd, text, size - 1, 0);
    size_t len = n > 0 ? (size_t)n : 0;
    while (len && text[len - 1] == '\n')
        len--;
    text[len] = '\0';
}

static int wait_until_it_answers(struct tunnel *t, struct err *err)
{
    char said[512];
    int status;
    for (int waited = 0; waited < OPEN_MS; waited += STEP_MS) {
        if (answers(t))
            return 0;
        if (process_interrupted())
            return err_set(err, ERR_CANCELED, "interrupted");
        if (process_ended(t->pid, &status)) {
            t->pid = -1;
            read_messages(t, said, sizeof said);
            return err_set(err, ERR_UNAVAILABLE, "kubectl proxy ended with exit code %d: %s", status, said);
        }
        poll(NULL, 0, STEP_MS);
    }
    return err_set(err, ERR_TIMEOUT, "kubectl proxy does not answer after %d s", OPEN_MS / 1000);
}

static int start_proxy(struct tunnel *t, const struct cli_options *o, struct err *err)
{
    t->err_fd = memfd_create("kubectl proxy", MFD_CLOEXEC); // a pipe that nobody reads would block it when it is full
    if (t->err_fd < 0)
        return err_set(err, ERR_IO, "cannot make a file in memory: %s", strerror(errno));
    _cleanup_(free_p) char *socket = xasprintf("--unix-socket=%s", path_of(t));
    _cleanup_(free_p) char *paths = xasprintf("--accept-paths=^%s/", t->prefix); // nothing else can be reached
    const struct kubectl_args args = kubectl_args(o, "proxy", socket, paths, NULL);
    return process_start(args.argv, &t->pid, NULL, t->err_fd, err);
}

int tunnel_open(struct tunnel *t, const struct cli_options *o, struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    *t = TUNNEL_NONE;
    int n = snprintf(t->dir, sizeof t->dir, "%s/kubectl-cadre-XXXXXX", tmp && *tmp && strlen(tmp) < 32 ? tmp : "/tmp");
    if (n < 0 || !mkdtemp(t->dir)) { // with mode 0700: nobody else may use it
        err_set(err, ERR_IO, "cannot make a directory like %s: %s", t->dir, strerror(errno));
        t->dir[0] = '\0';
        return err->code;
    }
    snprintf(t->address, sizeof t->address, "unix:%s/proxy.sock", t->dir);
    n = snprintf(t->prefix, sizeof t->prefix, "/api/v1/namespaces/%s/services/https:cadre-operator:9443/proxy",
                 o->operator_ns);
    if (n < 0 || (size_t)n >= sizeof t->prefix || strchr(o->operator_ns, '/'))
        err_set(err, ERR_INVALID, "\"%s\" is not the name of a namespace", o->operator_ns);
    else if (start_proxy(t, o, err) == 0)
        wait_until_it_answers(t, err);
    if (err->code)
        tunnel_close(t);
    return err->code;
}

struct tunnel tunnel_borrow(const struct tunnel *t)
{
    struct tunnel same = *t;
    same.dir[0] = '\0';
    same.pid = same.err_fd = -1;
    return same;
}

void tunnel_close(struct tunnel *t)
{
    if (t->pid > 0)
        process_end(t->pid);
    file_close(&t->err_fd);
    if (t->dir[0]) {
        unlink(path_of(t));
        rmdir(t->dir);
    }
    *t = TUNNEL_NONE;
}
