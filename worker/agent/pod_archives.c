// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/pod_archives.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/archive_piece.h"
#include "worker/agent/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct archive {
    char sha256[ARCHIVE_SHA256_LEN + 1];
    char *path;
    bool here;
};

struct pod_archives {
    struct loop_timer *look;
    struct archive archives[POD_ARCHIVES_MAX]; // the oldest first
    size_t n;
    uint64_t version;
};

static void note(struct pod_archives *k, struct archive *a, bool here)
{
    k->version += here != a->here;
    a->here = here;
}

// Looks for the archives that are missing: workers are fetching them.
static void on_look(void *ctx)
{
    struct pod_archives *k = ctx;
    bool all = true;
    for (size_t i = 0; i < k->n; i++) {
        struct archive *a = &k->archives[i];
        note(k, a, access(a->path, R_OK) == 0);
        all = all && a->here;
    }
    if (!all)
        loop_timer_arm(k->look, POD_ARCHIVES_LOOK_MS);
}

struct pod_archives *pod_archives_new(struct loop *loop)
{
    struct pod_archives *k = xcalloc(1, sizeof *k);
    k->look = loop_timer_new(loop, on_look, k);
    k->version = POD_ARCHIVES_VERSION_NEW;
    return k;
}

void pod_archives_free(struct pod_archives *k)
{
    if (!k)
        return;
    loop_timer_free(k->look);
    for (size_t i = 0; i < k->n; i++)
        free(k->archives[i].path);
    free(k);
}

static struct archive *find(struct pod_archives *k, const char *sha256)
{
    for (size_t i = 0; i < k->n; i++)
        if (str_eq(k->archives[i].sha256, sha256))
            return &k->archives[i];
    return NULL;
}

static void forget_first(struct pod_archives *k)
{
    k->version += k->archives[0].here;
    free(k->archives[0].path);
    memmove(k->archives, k->archives + 1, --k->n * sizeof *k->archives);
}

static bool can_be_written(const char *folder)
{
    struct stat s;
    return !str_empty(folder) && stat(folder, &s) == 0 && S_ISDIR(s.st_mode) && access(folder, W_OK | X_OK) == 0;
}

// The folder for temporary files, as Python finds it: the first one that can be used.
static const char *temporary(const char *const *env)
{
    static const char *const names[] = {"TMPDIR", "TEMP", "TMP"};
    static const char *const folders[] = {"/tmp", "/var/tmp", "/usr/tmp", "."};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (can_be_written(environment_get(env, names[i])))
            return environment_get(env, names[i]);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (can_be_written(folders[i]))
            return folders[i];
    return folders[0];
}

// The same path as in sdk/python/cadre/_code/_archive.py.
static char *path_of(const char *const *env, const char *sha256)
{
    const char *folder = environment_get(env, "CADRE_ARCHIVES");
    if (!str_empty(folder))
        return xasprintf("%s/%s.tar", folder, sha256);
    return xasprintf("%s/cadre-archives-%u/%s.tar", temporary(env), (unsigned)geteuid(), sha256);
}

void pod_archives_want(struct pod_archives *k, const char *const *env)
{
    const char *said = environment_get(env, "CADRE_ARCHIVE"); // SHA256:BYTES
    char sha256[ARCHIVE_SHA256_LEN + 1] = "";
    if (said && strlen(said) > ARCHIVE_SHA256_LEN && said[ARCHIVE_SHA256_LEN] == ':')
        memcpy(sha256, said, ARCHIVE_SHA256_LEN);
    if (!archive_sha256(sha256))
        return;
    if (!find(k, sha256)) {
        if (k->n == POD_ARCHIVES_MAX)
            forget_first(k);
        struct archive *a = &k->archives[k->n++];
        *a = (struct archive){.path = path_of(env, sha256)};
        memcpy(a->sha256, sha256, sizeof sha256);
    }
    on_look(k);
}

uint64_t pod_archives_version(const struct pod_archives *k)
{
    return k->version;
}

void pod_archives_write(const struct pod_archives *k, struct json_writer *w)
{
    writer_list(w, "archives");
    for (size_t i = 0; i < k->n; i++)
        if (k->archives[i].here)
            writer_str(w, NULL, k->archives[i].sha256);
    writer_list_end(w);
}

int pod_archives_read(struct pod_archives *k, const char *sha256, int64_t offset, struct buf *out, struct err *err)
{
    struct archive *a = find(k, sha256);
    int fd = a ? open(a->path, O_RDONLY | O_CLOEXEC) : -1;
    _cleanup_(free_p) char *piece = fd >= 0 ? xmalloc(ARCHIVE_PIECE_MAX) : NULL;
    ssize_t n = fd >= 0 ? pread(fd, piece, ARCHIVE_PIECE_MAX, (off_t)offset) : -1;
    const char *why = n == 0 ? "it is not so long" : strerror(errno);
    if (a && fd < 0)
        note(k, a, false);
    file_close(&fd);
    if (n <= 0)
        return err_set(err, ERR_NOT_FOUND, "archive %.12s: %s", sha256, a ? why : "no group here has ever wanted it");
    return buf_append(out, piece, (size_t)n);
}
