// SPDX-License-Identifier: Apache-2.0
#include "operator/api/service.h"

#include "operator/api/json_encode.h"
#include "operator/api/meta.h"

#include <inttypes.h>

int service_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    (void)scratch;
    (void)err;
    ((struct service *)o)->selects = json_count(json_get(json_get(root, "spec"), "selector")) > 0;
    return 0;
}

const char *service_encode(const struct service_spec *s, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    head_write(&w, KIND_SERVICE, &(struct meta){.name = s->name, .ns = s->ns, .labels = s->labels, .owner = s->owner});
    writer_object(&w, "spec");
    writer_str(&w, "clusterIP", "None");
    writer_bool(&w, "publishNotReadyAddresses", true);
    if (s->selector.n)
        labels_write(&w, "selector", &s->selector);
    writer_print(&w, "ports", "[{'name':'rendezvous','port':%" PRId64 "}]", (int64_t)s->port);
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
