// SPDX-License-Identifier: Apache-2.0
// events.k8s.io/v1.
#pragma once

#include "operator/api/object.h"

struct event {
    const char *ns, *name;              // of the Event
    const char *type;                   // "Normal" or "Warning"
    const char *reason, *action, *note; // note at most 1 KiB
    const char *controller, *instance;  // reportingController, reportingInstance
    const char *regarding_api_version, *regarding_kind, *regarding_ns, *regarding_name, *regarding_uid;
    int64_t time_ms;      // eventTime: of the first
    int32_t series_count; // 0 or 1: single; else the series
    int64_t series_last_ms;
};

const char *event_encode(const struct event *e, struct arena *a);
// A merge patch that raises the series of an Event that exists.
const char *event_series_patch(const struct event *e, struct arena *a);
