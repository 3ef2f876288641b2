// SPDX-License-Identifier: Apache-2.0
// events.k8s.io/v1.
#pragma once

#include "operator/api/object.h"

struct event {
    const char *ns, *name;              // name of the Event
    const char *type;                   // "Normal" or "Warning"
    const char *reason, *action, *note; // note at most 1 KiB
    const char *controller, *instance;  // reportingController, reportingInstance
    const char *regarding_api_version, *regarding_kind, *regarding_ns, *regarding_name, *regarding_uid;
    int64_t time_ms;      // eventTime, of the first Event of a series
    int32_t series_count; // 0 or 1: no series
    int64_t series_last_ms;
};

const char *event_encode(const struct event *e, struct arena *a);
// Returns a merge patch that updates the series of an existing Event.
const char *event_series_patch(const struct event *e, struct arena *a);
