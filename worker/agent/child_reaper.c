// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/child_reaper.h"

#include "common/base/file.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct child_reaper_watch {
    struct list link;
    pid_t pid; // 0 = all children that nobody watches
    child_reaper_fn fn;
    void *ctx;
};

struct child_reaper {
    struct list watches;
    struct loop_signal *signal;
};

static struct child_reaper_watch *watch_of(const struct child_reaper *r, pid_t pid)
{
    LIST_FOREACH(l, &r->watches) {
        struct child_reaper_watch *w = CONTAINER_OF(l, struct child_reaper_watch, link);
        if (w->pid == pid)
            return w;
    }
    return NULL;
}

static void tell_orphan_watches(struct child_reaper *r)
{
    // A callback may remove any watch, even its own and the next one. So the watches that are not called yet move to a
    // list of their own.
    struct list todo = LIST_INIT(todo);
    LIST_FOREACH(l, &r->watches) {
        if (CONTAINER_OF(l, struct child_reaper_watch, link)->pid == 0) {
            list_remove(l);
            list_append(&todo, l);
        }
    }
    for (struct list *l; (l = list_pop(&todo));) {
        list_append(&r->watches, l);
        struct child_reaper_watch *w = CONTAINER_OF(l, struct child_reaper_watch, link);
        w->fn(w->ctx, 0);
    }
}

static void on_child(void *ctx, int signo)
{
    struct child_reaper *r = ctx;
    bool orphans = false;
    int status;
    (void)signo;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) { // one signal may stand for several children
        struct child_reaper_watch *w = watch_of(r, pid);
        if (!w) {
            orphans = true;
            continue;
        }
        child_reaper_fn fn = w->fn;
        void *fn_ctx = w->ctx;
        child_reaper_unwatch(w);
        fn(fn_ctx, status);
    }
    if (orphans)
        tell_orphan_watches(r);
}

struct child_reaper *child_reaper_new(struct loop *loop)
{
    struct child_reaper *r = xcalloc(1, sizeof *r);
    list_init(&r->watches);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    r->signal = loop_signal_new(loop, SIGCHLD, on_child, r);
    return r;
}

void child_reaper_free(struct child_reaper *r)
{
    if (!r)
        return;
    loop_signal_free(r->signal);
    free(r);
}

struct child_reaper_watch *child_reaper_watch(struct child_reaper *r, pid_t pid, child_reaper_fn fn, void *ctx)
{
    struct child_reaper_watch *w = xcalloc(1, sizeof *w);
    *w = (struct child_reaper_watch){.pid = pid, .fn = fn, .ctx = ctx};
    list_append(&r->watches, &w->link);
    return w;
}

void child_reaper_unwatch(struct child_reaper_watch *w)
{
    if (!w)
        return;
    list_remove(&w->link);
    free(w);
}

// Reads the parent of a process from /proc/PID/stat: "PID (name) state parent ...", where the name may contain
// anything. Returns -1 for a zombie: it is reaped anyway.
static pid_t parent_of(const char *pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    file_close(&fd);
    text[MAX(n, 0)] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && strlen(name_end) > 4 && name_end[2] != 'Z' ? (pid_t)strtol(name_end + 4, NULL, 10) : -1;
}

bool child_reaper_is_child(pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    return pid > 1 && parent_of(text) == getpid();
}

static bool is_marked(pid_t pid, const char *mark)
{
    char path[64];
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *environment = fopen(path, "re");
    while (environment && !found && getdelim(&line, &size, '\0', environment) > 0)
        found = str_eq(line, mark);
    if (environment)
        fclose(environment);
    free(line);
    return found;
}

int child_reaper_kill_orphans(struct child_reaper *r, const char *mark)
{
    DIR *proc = opendir("/proc");
    int n = 0;
    for (struct dirent *e; proc && (e = readdir(proc));) {
        int64_t pid;
        if (!str_to_i64(e->d_name, &pid) || pid <= 1 || parent_of(e->d_name) != getpid())
            continue;
        if (watch_of(r, (pid_t)pid) || (mark && !is_marked((pid_t)pid, mark)))
            continue;
        if (kill((pid_t)pid, SIGKILL) == 0)
            n++;
    }
    if (proc)
        closedir(proc);
    return n;
}
