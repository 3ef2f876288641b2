// SPDX-License-Identifier: Apache-2.0
// safetensors_peer IN OUT: reads a document, prints what is in it, one "tensor NAME DTYPE SHAPE VALUES" or "meta KEY
// VALUE" a line, strings and bytes in hexadecimal, and writes it again. For test_safetensors_peer.py.
#include "common/base/mem.h"
#include "common/wire/safetensors.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void put_hex(const char *bytes, size_t len)
{
    putchar(' ');
    for (size_t i = 0; i < len; i++)
        printf("%02x", (unsigned char)bytes[i]);
}

static void describe(const struct safetensors *s, const char *doc)
{
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct safetensors_tensor *t = &s->tensors[i];
        fputs("tensor", stdout);
        put_hex(t->name, strlen(t->name));
        printf(" %s ", safetensors_dtype_name(t->dtype));
        for (size_t k = 0; k < t->n_dims; k++)
            printf("%s%llu", k ? "," : "", (unsigned long long)t->shape[k]);
        put_hex(doc + t->offset, t->len);
        putchar('\n');
    }
    for (size_t i = 0; i < s->n_meta; i++) {
        fputs("meta", stdout);
        put_hex(s->meta[i].key, strlen(s->meta[i].key));
        put_hex(s->meta[i].value, strlen(s->meta[i].value));
        putchar('\n');
    }
}

static int write_again(const struct safetensors *s, const struct scatter_source *source, struct scatter *out, FILE *f,
                       struct arena *a, struct err *err)
{
    struct safetensors_tensor *t = arena_array(a, s->n_tensors, sizeof *t);
    if (s->n_tensors)
        memcpy(t, s->tensors, s->n_tensors * sizeof *t);
    safetensors_sort(t, s->n_tensors);
    int r = safetensors_write_head(out, t, s->n_tensors, s->meta, s->n_meta, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_tensors; i++)
        scatter_add(out, 0, safetensors_find(s, t[i].name)->offset, t[i].len);
    _cleanup_(free_p) char *doc = xmalloc(out->len);
    scatter_gather(out, source, doc);
    return fwrite(doc, 1, out->len, f) == out->len ? 0 : err_set(err, ERR_IO, "cannot write");
}

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *f = fopen(path, "re");
    struct stat st;
    if (!f || fstat(fileno(f), &st) < 0) {
        perror(path);
        exit(2);
    }
    char *data = xmalloc((size_t)st.st_size);
    *ret_len = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    return data;
}

int main(int argc, char **argv)
{
    struct arena a = ARENA_INIT;
    struct scatter out = SCATTER_INIT;
    struct safetensors s;
    struct err err = ERR_INIT;
    size_t len;
    if (argc != 3)
        return 2;
    _cleanup_(free_p) char *doc = read_file(argv[1], &len);
    FILE *f = fopen(argv[2], "we");
    if (!f)
        return 2;
    if (safetensors_read(doc, len, &a, &s, &err) == 0) {
        describe(&s, doc);
        write_again(&s, &(struct scatter_source){doc, len}, &out, f, &a, &err);
    }
    if (err.code)
        printf("refused: %s\n", err.msg);
    scatter_done(&out);
    arena_done(&a);
    return fclose(f) || err.code ? 1 : 0;
}
