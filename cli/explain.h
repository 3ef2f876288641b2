// SPDX-License-Identifier: Apache-2.0
// Explains the state of a group to people, from the cluster's objects. Pure: objects in, text out.
#pragma once

#include "cli/document.h"
#include "common/base/buf.h"

struct explain_input {
    const cJSON *group;  // a WorkerGroup or PlacementGroup
    const cJSON *pods;   // a list of Pods, as kubectl prints it; NULL = not known
    const cJSON *events; // a list of Events (v1) of the group; NULL = not known
    int64_t now_ms;      // Unix time
};

void explain(const struct explain_input *in, struct buf *out);
