// SPDX-License-Identifier: Apache-2.0
// Ranks of a proxy_world that keep objects, and references to these.
#pragma once

#include "common/wire/ref.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#define KEEP "{\"method\":\"add\",\"keep\":true}"

// The rank says that it keeps object 16 + rank.
void keeps(struct world *w, uint32_t rank, uint32_t id, char kind);
void all_keep(struct world *w, const char *args, char kind);
// The next answer, which must be a reference: as JSON, in the arena.
const char *reference(struct world *w, struct arena *a, struct ref *ret);
const char *kept_by_all(struct world *w, struct arena *a);
const char *kept_by_one(struct world *w, struct arena *a);
struct wire_record *takes(struct world *w, uint32_t rank, enum record_type type);
void is_told_to_free(struct world *w, uint32_t rank, const char *body);
void gets_nothing(struct world *w, uint32_t rank);
// Sends a batch to the group. Each rank gets a piece.
void sends_cut(struct world *w, uint32_t id, const char *head, const char *args);
