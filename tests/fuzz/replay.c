// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over files and folders of inputs, without libFuzzer: replay_<name> PATH...
#include "common/base/mem.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "re");
    struct stat st;
    if (!f || fstat(fileno(f), &st) < 0) {
        perror(path);
        exit(1);
    }
    // Not one byte more, so that a sanitizer sees any read behind the end.
    size_t size = (size_t)st.st_size;
    _cleanup_(free_p) uint8_t *data = xmalloc(size);
    if (fread(data, 1, size, f) != size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    return 1;
}

static int replay(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    if (!dir)
        return replay_file(path);
    for (const struct dirent *e; (e = readdir(dir));) {
        _cleanup_(free_p) char *file = xasprintf("%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            n += replay_file(file);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++)
        n += replay(argv[i]);
    printf("%d inputs replayed\n", n);
    return n ? 0 : 1;
}
