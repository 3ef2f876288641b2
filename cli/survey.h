// SPDX-License-Identifier: Apache-2.0
// group.stats of some groups, from every replica of the operator: each replica knows only the calls of its own clients.
//
// We cannot choose the replica of a connection: the API server takes any, and naming one needs rights to its pod that
// clients do not have. The survey therefore connects until it has reached all replicas that the answers name. With
// --server, it tries the addresses of the name in turn.
#pragma once

#include "cli/document.h"
#include "cli/proxy.h"
#include "common/base/arena.h"

enum { SURVEY_REPLICAS_MAX = 16 };

struct survey_answer {   // of one replica
    const char *replica; // NULL = it has no name, as in a local run
    cJSON **groups;      // in the order of the names; NULL = there is no such group (any more)
    size_t n_groups;
    int64_t at_ms; // by our own clock
};

struct survey_absent { // a replica that did not answer
    const char *replica, *why;
};

struct survey { // free it with survey_done()
    struct arena arena;
    struct survey_answer answers[SURVEY_REPLICAS_MAX];
    size_t n;
    struct survey_absent absent[SURVEY_REPLICAS_MAX];
    size_t n_absent;
    bool named; // the answers name all replicas
};

struct surveyor {
    const struct cli_options *o;
    const char *const *names; // of the groups
    size_t n_names;
    struct proxy *links[SURVEY_REPLICAS_MAX]; // the first is borrowed
    size_t n_links;
    unsigned tried; // connections that were made to find missing replicas
};

// Replaces the survey in *s by a new one. False: no replica knows the group, none answered, or a signal came;
// *ret_status is the exit status.
bool survey_take(struct surveyor *by, struct survey *s, int *ret_status);
void survey_done(struct survey *s);
const struct survey_answer *survey_of(const struct survey *s, const char *replica); // NULL = it did not answer

void surveyor_done(struct surveyor *by);
