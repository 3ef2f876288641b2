// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/install.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy(int from, int to)
{
    _cleanup_(free_p) char *block = xmalloc(256 * 1024);
    for (ssize_t n; (n = read(from, block, 256 * 1024)) != 0;)
        if (n < 0 ? errno != EINTR : !file_write_all(to, block, (size_t)n))
            return -1;
    return fchmod(to, 0755);
}

static int install(const char *source, const char *dir, const char *name, struct err *err)
{
    _cleanup_(free_p) char *path = xasprintf("%s/%s", dir, name), *part = xasprintf("%s.part", path);
    int from = open(source, O_RDONLY | O_CLOEXEC), to = -1, r = 0;
    if (from < 0)
        return err_set(err, ERR_IO, "cannot read %s: %s", source, strerror(errno));
    to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (to < 0)
        r = err_set(err, ERR_IO, "cannot install into %s: %s", dir, strerror(errno));
    else if (copy(from, to) != 0)
        r = err_set(err, ERR_IO, "cannot write %s: %s", part, strerror(errno));
    close(from);
    if (to >= 0 && close(to) != 0 && r == 0)
        r = err_set(err, ERR_IO, "cannot write %s: %s", part, strerror(errno));
    if (r == 0 && rename(part, path) != 0)
        r = err_set(err, ERR_IO, "cannot rename %s: %s", part, strerror(errno));
    if (r < 0 && to >= 0)
        unlink(part);
    return r;
}

// Returns the folder of this program, such as "/usr/bin". NULL = it is not known.
static char *own_folder(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[MAX(n, (ssize_t)0)] = '\0';
    char *slash = strrchr(path, '/');
    return slash ? xasprintf("%.*s", (int)(slash - path), path) : NULL;
}

int install_program(const char *dir, struct err *err)
{
    static const char *const beside[] = {INSTALL_PACKAGE, INSTALL_LIBRARY, "libuv.so.1", INSTALL_NCCL, INSTALL_GPUS};
    _cleanup_(free_p) char *own = own_folder();
    int r = install("/proc/self/exe", dir, "cadre-agent", err);
    for (size_t i = 0; i < ARRAY_LEN(beside) && r == 0 && own; i++) {
        _cleanup_(free_p) char *source = xasprintf("%s/../lib/cadre/%s", own, beside[i]);
        if (access(source, F_OK) == 0)
            r = install(source, dir, beside[i], err);
    }
    return r;
}

char *install_brought(void)
{
    char *own = own_folder();
    _cleanup_(free_p) char *package = xasprintf("%s/" INSTALL_PACKAGE, own ? own : "");
    if (own && access(package, R_OK) == 0)
        return own;
    free(own);
    return NULL;
}

char *install_beside(const char *name)
{
    _cleanup_(free_p) char *own = own_folder();
    // The program was installed by install_program(), or the image has both.
    static const char *const folders[] = {"", "../lib/cadre/"};
    for (size_t i = 0; own && i < ARRAY_LEN(folders); i++) {
        char *path = xasprintf("%s/%s%s", own, folders[i], name);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}
