// SPDX-License-Identifier: Apache-2.0
#include "operator/api/event.h"

#include "operator/api/meta.h"

enum { NOTE_MAX = 1024, WORD_MAX = 128 }; // the API server refuses longer ones

static void write_series(struct json_writer *w, const struct event *e)
{
    if (e->series_count < 2)
        return;
    writer_object(w, "series");
    writer_i64(w, "count", e->series_count);
    writer_micro(w, "lastObservedTime", e->series_last_ms);
    writer_object_end(w);
}

const char *event_encode(const struct event *e, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    head_write(&w, KIND_EVENT, &(struct meta){.name = e->name, .ns = e->ns});
    writer_micro(&w, "eventTime", e->time_ms);
    write_series(&w, e);
    writer_str(&w, "type", e->type);
    writer_str_max(&w, "reason", e->reason, WORD_MAX);
    writer_str_max(&w, "action", e->action, WORD_MAX);
    writer_str_max(&w, "note", e->note ? e->note : "", NOTE_MAX);
    writer_str(&w, "reportingController", e->controller);
    writer_str_max(&w, "reportingInstance", e->instance, WORD_MAX);
    writer_object(&w, "regarding");
    writer_str_set(&w, "apiVersion", e->regarding_api_version);
    writer_str_set(&w, "kind", e->regarding_kind);
    writer_str_set(&w, "namespace", e->regarding_ns);
    writer_str_set(&w, "name", e->regarding_name);
    writer_str_set(&w, "uid", e->regarding_uid);
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

const char *event_series_patch(const struct event *e, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    write_series(&w, e);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
