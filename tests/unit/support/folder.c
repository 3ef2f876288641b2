// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void folder_new(char path[64])
{
    snprintf(path, 64, "/tmp/cadre-test-XXXXXX");
    if (!mkdtemp(path))
        abort();
}

void folder_clear(const char *path)
{
    char file[400];
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            unlink(file);
    }
    if (d)
        closedir(d);
}

void folder_free(const char *path)
{
    folder_clear(path);
    rmdir(path);
}

void folder_write(const char *path, const char *name, const char *text)
{
    char file[256], part[280];
    snprintf(file, sizeof file, "%s/%s", path, name);
    snprintf(part, sizeof part, "%s.part", file);
    FILE *f = fopen(part, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || rename(part, file) != 0)
        abort();
}

void folder_read(const char *path, const char *name, char *ret, size_t size)
{
    char file[256];
    snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *f = fopen(file, "re");
    size_t n = f ? fread(ret, 1, size - 1, f) : 0;
    ret[n] = '\0';
    if (f)
        fclose(f);
}
