// SPDX-License-Identifier: Apache-2.0
// Clusters and gangs for tests, from a few lines that a person reads at once:
//
//   # a comment
//   node n1 gpu=8 cpu=64 rack=a used.gpu=3 cordoned notready taint=dedicated=ml:NoSchedule
//   pod a on=n1 gpu=2 priority=-5 age=60 group=llama
//   gang StrictPack key=rack priority=10 patient
//   bundles 4 gpu=1 cpu=8 select.rack=a tolerate=dedicated=ml:NoSchedule
//   bundles 2 gpu=1 on=n1
//   avoid n1 n2
//   held n3
//
// `gpu` stands for nvidia.com/gpu; cpu, memory, pods and names with a '/' are amounts too; any other NAME=VALUE of a
// node is a label. A node has 110 pods unless it says so, a bundle takes one. One pod that nobody evicts takes the used
// amounts. A `pod` line makes other pods, bound with `on` or only pinned with `pin`; with `group`, they belong to a
// WorkerGroup. A patient gang preempts nobody. `bundles`, `avoid` and `held` belong to the gang above them; with on=
// they are there already, and counted. Several gangs may follow; each is planned as if the others were not there.
#pragma once

#include "operator/placement/planner.h"

enum { WORLD_GANGS = 16, WORLD_BUNDLES = 1024, WORLD_AVOID = 8 };

struct world_gang {
    const char *line;
    struct gang gang;
    struct bundle bundles[WORLD_BUNDLES];
    const char *avoid[WORLD_AVOID], *held[WORLD_AVOID];
    int32_t priority;
    bool patient;
};

struct world {
    struct arena arena;
    struct cluster *cluster;
    struct world_gang *gangs[WORLD_GANGS];
    size_t n_gangs;
};

struct world *world_new(const char *text); // what it cannot read fails the test, with the line
void world_free(struct world *w);

void world_place(struct world *w, const struct world_gang *g, struct placement *ret);
// The answer of the planner to a gang: "Placed" with the number of evicted pods, then a line for each node, "n1:
// 0-1,3"; or the verdict and the message.
const char *world_answer(struct world *w, const struct world_gang *g);
// All gangs one after the other, each under its line.
const char *world_answers(struct world *w);

// Objects with one reference, for tests that feed a cluster themselves. Amounts as above: "gpu=8 cpu=64".
struct node *build_node(const char *name, const char *words);
struct pod *build_pod(const char *name, const char *node, const char *amounts);
struct resources build_amounts(const char *amounts, struct arena *a);
