// SPDX-License-Identifier: Apache-2.0
// Group ml/llama of any size and one client, for calls with batches. Workers are given, and return, a column or tensor
// "a".
#pragma once

#include "common/wire/batch.h"
#include "tests/unit/operator/proxy/proxy_fixture.h"

enum { WORLD_MAX = 96, ROWS_MAX = 400 };

struct batch_case {
    struct proxy_fixture f;
    struct worker workers[WORLD_MAX];
    struct client c;
    uint32_t world, id;
    bool quiet[WORLD_MAX]; // the client does not want the rank's result of the last call
    struct arena memory;
};

// f is DP_COMPUTE_PROTO, two_to_all SPLIT, train 3D_PROTO of the mesh "train". The caller appends the closing brace.
#define BATCH_CASE_HELLO                                                                    \
    "{\"methods\":[{\"name\":\"f\",\"dispatch\":\"DP_COMPUTE_PROTO\",\"execute\":\"ALL\"}," \
    "{\"name\":\"two_to_all\",\"dispatch\":\"SPLIT\",\"execute\":\"ALL\","                  \
    "\"split\":{\"index\":[0,1,0,1],\"elements\":true}},"                                   \
    "{\"name\":\"train\",\"dispatch\":\"3D_PROTO\",\"execute\":\"ALL\",\"split\":{\"mesh\":\"train\"}}]"

struct batch_case *batch_case_with(uint32_t world, const struct mesh *meshes, size_t n); // no rank is connected
// Meshes as "train: pp2 dp2 tp2", NULL = none. All ranks are connected.
struct batch_case *batch_case_new(uint32_t world, const char *first, const char *second);
void batch_case_free(struct batch_case *w);
void batch_case_dial(struct batch_case *w, uint32_t rank, const char *hello);
struct mesh mesh_of(const char *text, struct arena *a);

struct body {
    char *data;
    size_t len;
};

struct body text_body(const char *text);
// A batch of "a", as a tensor or as JSON. Only a batch of tensors may have columns and meta (JSON, may be NULL).
struct body batch_of(const int64_t *values, size_t n, bool tensor, const char *columns, const char *meta,
                     struct arena *a);
size_t values_of(const char *data, size_t len, int64_t *values, struct arena *a); // reads "a"

struct mode {
    uint8_t dispatch, execute;
    const char *method, *more; // NULL = f; further members of the head, such as ",\"pad\":true"
};

void batch_case_sends(struct batch_case *w, const struct mode *m, const struct body *args);
// Takes the arguments. Returns the id, 0 = the rank has no call.
uint32_t batch_case_takes(struct batch_case *w, uint32_t rank, struct body *ret);
void batch_case_says(struct batch_case *w, uint32_t rank, uint32_t id, const struct body *b);
struct body batch_case_hears(struct batch_case *w); // result of the last call
// The call is refused, and no rank has it.
void batch_case_refused(struct batch_case *w, const struct mode *m, const char *args, const char *code,
                        const char *why);

typedef int64_t (*add_fn)(uint32_t rank);
int64_t add_rank(uint32_t rank);
// Each rank adds something to its rows, and the client gets a batch. Runs with JSON and with tensors.
void adds(struct batch_case *w, struct mode m, add_fn add, const int64_t *in, size_t n, const int64_t *want,
          size_t n_want);
#define LIST(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
// The ranks get `each` and answer with `results` (JSON). `want` is the whole answer.
void lists(struct batch_case *w, struct mode m, const char *args, const char *const *each, const char *const *results,
           const char *want);
