// SPDX-License-Identifier: Apache-2.0
// The cost of decoding an object with our reader, compared with the cost of only parsing the same text with cJSON.
// Every round runs all ways in turn, and compares them within the round, so a busy machine disturbs all of them
// equally.
//
//   decode   object_decode(): the text checked, large members left out, what Cadre keeps in one block of memory
//   tree     json_parse() of the whole text into an arena
//   cJSON    cJSON_ParseWithLength() and cJSON_Delete() with malloc: nothing is decoded yet, UTF-8 not checked
//   bump     the same with hooks that only move a pointer and never free: the best that cJSON can do
#include "common/base/json.h"
#include "bench/lib/samples.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/object.h"
#include "operator/api/object_decode.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DOCUMENT_MAX = 1024 * 1024, ROUND_NS = 5 * 1000 * 1000, POOL = 8 * 1024 * 1024 };

struct document {
    const char *name;
    enum kind kind;
    struct buf text; // first the letter
};

// Memory of the bump hooks, and the bytes that cJSON asked for.
static struct {
    unsigned char *bytes;
    size_t used;
} pool;

static void *pool_alloc(size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (n > POOL - pool.used)
        return NULL;
    pool.used += n;
    return pool.bytes + pool.used - n;
}

static void pool_free(void *p)
{
    (void)p;
}

static const char *text_of(const struct document *d, size_t *ret_len)
{
    *ret_len = d->text.len - 1;
    return buf_str(&d->text) + 1;
}

static void must(bool holds, const struct document *d, const char *why)
{
    if (holds)
        return;
    fprintf(stderr, "bench-json: %s: %s\n", d->name, why);
    exit(1);
}

static void run_decode(const struct document *d)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    size_t len;
    const char *text = text_of(d, &len);
    must(object_decode(d->kind, text, len, &o, &err) == 0, d, err.msg);
    object_unref(o);
}

static size_t tree_size(const struct document *d)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    size_t len;
    const char *text = text_of(d, &len);
    must(json_parse(text, len, NULL, &a, &root, &err) == 0, d, err.msg);
    size_t used = a.used;
    arena_done(&a);
    return used;
}

static void run_tree(const struct document *d)
{
    tree_size(d);
}

static void run_peer(const struct document *d)
{
    size_t len;
    const char *text = text_of(d, &len);
    cJSON *root = cJSON_ParseWithLength(text, len);
    must(root, d, "cJSON refuses it");
    cJSON_Delete(root);
}

static void run_bump(const struct document *d)
{
    cJSON_Hooks hooks = {.malloc_fn = pool_alloc, .free_fn = pool_free};
    cJSON_InitHooks(&hooks);
    pool.used = 0;
    run_peer(d);
    cJSON_InitHooks(NULL);
}

static const struct way {
    const char *name;
    void (*run)(const struct document *d);
} ways[] = {{"decode", run_decode}, {"tree", run_tree}, {"cJSON", run_peer}, {"bump", run_bump}};

enum { DECODE, TREE, PEER, BUMP, WAYS };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Microseconds of CPU a call.
static double measure(const struct way *w, const struct document *d)
{
    double from = cpu_ns(), now = from;
    size_t n = 0;
    for (; now - from < ROUND_NS; now = cpu_ns())
        for (int i = 0; i < 16; i++, n++)
            w->run(d);
    return (now - from) / (double)n / 1000;
}

static void print_ratio(const char *name, const struct samples *of, const struct samples *to)
{
    struct samples r;
    samples_ratios(of, to, &r);
    printf("  %-16s %5.2f  (%.2f to %.2f)\n", name, samples_median(&r), samples_quantile(&r, 0.1),
           samples_quantile(&r, 0.9));
}

static void report(const struct document *d, const struct samples *us)
{
    run_bump(d);
    size_t peer_size = pool.used;
    printf("%s, %zu bytes\n", d->name, d->text.len - 1);
    for (int i = 0; i < WAYS; i++)
        printf("  %-16s %6.1f us\n", ways[i].name, samples_median(&us[i]));
    print_ratio("decode / cJSON", &us[DECODE], &us[PEER]);
    print_ratio("decode / bump", &us[DECODE], &us[BUMP]);
    print_ratio("tree / cJSON", &us[TREE], &us[PEER]);
    print_ratio("tree / bump", &us[TREE], &us[BUMP]);
    printf("  %-16s %5.2f  (%zu and %zu bytes)\n", "tree memory", (double)tree_size(d) / (double)peer_size,
           tree_size(d), peer_size);
}

static void load(struct document *d, const char *path)
{
    static const char letters[] = "pnw";
    static const enum kind kinds[] = {KIND_POD, KIND_NODE, KIND_WORKERGROUP};
    char chunk[4096];
    *d = (struct document){.name = path, .text = BUF_INIT(DOCUMENT_MAX)};
    FILE *f = fopen(path, "re");
    must(f, d, "cannot be read");
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        buf_append(&d->text, chunk, n);
    fclose(f);
    const char *letter = d->text.len ? strchr(letters, *buf_str(&d->text)) : NULL;
    must(letter && *letter, d, "does not begin with p, n or w");
    d->kind = kinds[letter - letters];
}

static void bench(const char *path, int64_t rounds)
{
    struct document d;
    struct samples us[WAYS] = {0};
    load(&d, path);
    for (int64_t round = 0; round < rounds; round++)
        for (int i = 0; i < WAYS; i++)
            samples_add(&us[i], measure(&ways[i], &d));
    report(&d, us);
    buf_done(&d.text);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"pod-real-foreign", "pod-real-ours", "node-images", "workergroup-real"};
    int64_t rounds = 31;
    int first = 1;
    if (argc > 2 && str_eq(argv[1], "--rounds")) {
        if (!str_to_i64(argv[2], &rounds) || rounds < 1 || rounds > SAMPLES_MAX) {
            fprintf(stderr, "bench-json: --rounds takes 1 to %d\n", SAMPLES_MAX);
            return 2;
        }
        first = 3;
    }
    pool.bytes = xmalloc(POOL);
    for (int i = first; i < argc; i++)
        bench(argv[i], rounds);
    for (size_t i = 0; first == argc && i < ARRAY_LEN(usual); i++)
        bench(usual[i], rounds);
    free(pool.bytes);
    return 0;
}
