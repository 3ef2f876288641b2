// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/again.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void become(const char *argument, const char *path, int out)
{
    char name[] = "again", own[64], *args[] = {name, own, NULL};
    snprintf(own, sizeof own, "%s", argument);
    if (dup2(out, STDOUT_FILENO) >= 0 && setenv("LD_LIBRARY_PATH", path, 1) == 0)
        execv("/proc/self/exe", args);
    _exit(127);
}

void again(const char *argument, const char *path, char *out, size_t size)
{
    int ends[2];
    size_t len = 0;
    if (pipe(ends) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0)
        become(argument, path, ends[1]);
    close(ends[1]);
    for (ssize_t n = 1; pid > 0 && n > 0 && len<size - 1; len += n> 0 ? (size_t)n : 0)
        n = read(ends[0], out + len, size - 1 - len);
    out[len] = '\0';
    close(ends[0]);
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        abort();
}

void again_make_empty_library(const char *folder, const char *name)
{
    char file[256];
    Dl_info any;
    void *function = dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests");
    snprintf(file, sizeof file, "%s/%s", folder, name);
    if (!function || !dladdr(function, &any) || symlink(any.dli_fname, file) != 0)
        abort();
}
