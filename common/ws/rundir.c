// SPDX-License-Identifier: Apache-2.0
#include "common/ws/rundir.h"

#include "common/base/file.h"
#include "common/base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SUFFIX ".sock"

static void path_of(char out[RUNDIR_PATH_SIZE])
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (base && base[0] == '/' && strlen(base) < RUNDIR_PATH_SIZE / 2)
        snprintf(out, RUNDIR_PATH_SIZE, "%s/cadre", base);
    else
        snprintf(out, RUNDIR_PATH_SIZE, "/tmp/cadre-%ld", (long)geteuid());
}

// Under /tmp, anybody may have made it first.
static int check(const char *dir, struct err *err)
{
    struct stat st;
    if (lstat(dir, &st) < 0)
        return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "%s: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
        return err_set(err, ERR_FORBIDDEN,
                       "%s must be a directory of yours that nobody else may open (mode 0700): remove it, or set "
                       "XDG_RUNTIME_DIR",
                       dir);
    return 0;
}

static int path_in(const char *ns, const char *group, const char *suffix, char ret[RUNDIR_PATH_SIZE], struct err *err)
{
    char dir[RUNDIR_PATH_SIZE];
    path_of(dir);
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, ERR_UNAVAILABLE, "cannot make %s: %s", dir, strerror(errno));
    int r = check(dir, err), n = snprintf(ret, RUNDIR_PATH_SIZE, "%s/%s.%s%s", dir, group, ns, suffix);
    if (r == 0 && n >= RUNDIR_PATH_SIZE)
        r = err_set(err, ERR_LIMIT,
                    "%s/%s.%s%s is longer than the path of a socket can be (%d characters): name another", dir, group,
                    ns, suffix, RUNDIR_PATH_SIZE - 1);
    return r;
}

int rundir_socket(const char *ns, const char *group, char ret[RUNDIR_PATH_SIZE], struct err *err)
{
    return path_in(ns, group, SUFFIX, ret, err);
}

int rundir_token(const char *ns, const char *group, char ret[RUNDIR_PATH_SIZE], struct err *err)
{
    return path_in(ns, group, ".token", ret, err);
}

bool rundir_is_alive(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool alive = false;
    if (fd >= 0 && strlen(path) < sizeof sa.sun_path) {
        memcpy(sa.sun_path, path, strlen(path) + 1);
        // EAGAIN: its queue is full, so a process listens there
        alive = connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0 || errno == EAGAIN;
    }
    file_close(&fd);
    return alive;
}

// A namespace has no dots, so dots in the name of the group do no harm.
bool rundir_namespace(const char *file, const char *group, char ret_ns[RUNDIR_NAMESPACE_SIZE])
{
    size_t len = strlen(group);
    const char *ns = strncmp(file, group, len) == 0 && file[len] == '.' ? file + len + 1 : "";
    size_t n = strcspn(ns, ".");
    if (n == 0 || n >= RUNDIR_NAMESPACE_SIZE || !str_eq(ns + n, SUFFIX))
        return false;
    memcpy(ret_ns, ns, n);
    ret_ns[n] = '\0';
    return true;
}

static int look(DIR *d, const char *dir, const char *group, const char *ns, char ret[RUNDIR_PATH_SIZE],
                char ret_ns[RUNDIR_NAMESPACE_SIZE], struct err *err)
{
    int found = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        char path[RUNDIR_PATH_SIZE], its[RUNDIR_NAMESPACE_SIZE];
        if (!rundir_namespace(e->d_name, group, its) || (ns && !str_eq(its, ns)) ||
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path || !rundir_is_alive(path))
            continue;
        if (found++)
            return err_set(err, ERR_INVALID, "%s runs here in the namespaces %s and %s: say which with -n", group,
                           ret_ns, its);
        memcpy(ret, path, sizeof path);
        memcpy(ret_ns, its, sizeof its);
    }
    return found;
}

int rundir_find(const char *group, const char *ns, char ret[RUNDIR_PATH_SIZE], char ret_ns[RUNDIR_NAMESPACE_SIZE],
                struct err *err)
{
    char dir[RUNDIR_PATH_SIZE];
    struct err why = ERR_INIT;
    path_of(dir);
    int r = check(dir, &why);
    if (r == ERR_NOT_FOUND)
        return 0;
    DIR *d = r == 0 ? opendir(dir) : NULL;
    if (!d)
        return r < 0 ? err_set(err, r, "%s", why.msg) : err_set(err, ERR_UNAVAILABLE, "%s: %s", dir, strerror(errno));
    r = look(d, dir, group, ns, ret, ret_ns, err);
    closedir(d);
    return r;
}
