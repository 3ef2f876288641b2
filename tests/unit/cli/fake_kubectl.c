// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cli/fake_kubectl.h"

#include "tests/unit/support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LEFT_OVERS "kubectl-cadre-*"

void fake_kubectl_start(struct fake_kubectl *k)
{
    char link[128], path[8192];
    folder_new(k->folder);
    snprintf(link, sizeof link, "%s/kubectl", k->folder);
    assert_int_equal(symlink(FAKE_KUBECTL, link), 0);
    snprintf(k->path, sizeof k->path, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:%s", k->folder, k->path);
    setenv("PATH", path, 1);
    setenv("FAKE_KUBECTL", k->folder, 1);
    setenv("TMPDIR", k->folder, 1);
}

// Finds the files with names like this in the folder. The caller frees *ret with globfree().
static void find(const struct fake_kubectl *k, const char *like, glob_t *ret)
{
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s/%s", k->folder, like);
    *ret = (glob_t){0};
    (void)glob(pattern, 0, NULL, ret);
}

void fake_kubectl_stop(struct fake_kubectl *k)
{
    glob_t sockets, folders;
    find(k, LEFT_OVERS "/*", &sockets);
    for (size_t i = 0; i < sockets.gl_pathc; i++)
        unlink(sockets.gl_pathv[i]);
    find(k, LEFT_OVERS, &folders);
    for (size_t i = 0; i < folders.gl_pathc; i++)
        (void)rmdir(folders.gl_pathv[i]);
    globfree(&sockets);
    globfree(&folders);
    folder_free(k->folder);
    setenv("PATH", k->path, 1);
}

void fake_kubectl_put(const struct fake_kubectl *k, const char *file, const char *text)
{
    folder_write(k->folder, file, text);
}

void fake_kubectl_lead_to(const struct fake_kubectl *k, const int *ports, size_t n)
{
    char text[64];
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%d ", ports[i]);
    folder_write(k->folder, "port", text);
}

bool fake_kubectl_was_asked(const struct fake_kubectl *k, const char *words)
{
    char asked[16384];
    folder_read(k->folder, "asked", asked, sizeof asked);
    return strstr(asked, words);
}

bool fake_kubectl_has_proxy(const struct fake_kubectl *k)
{
    glob_t sockets;
    bool found = false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    find(k, LEFT_OVERS "/proxy.sock", &sockets);
    for (size_t i = 0; i < sockets.gl_pathc; i++) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        snprintf(to.sun_path, sizeof to.sun_path, "%.100s", sockets.gl_pathv[i]);
        found = found || connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    }
    globfree(&sockets);
    close(fd);
    return found;
}

size_t fake_kubectl_left_overs(const struct fake_kubectl *k)
{
    glob_t folders;
    find(k, LEFT_OVERS, &folders);
    size_t n = folders.gl_pathc;
    globfree(&folders);
    return n;
}
