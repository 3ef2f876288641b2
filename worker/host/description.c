// SPDX-License-Identifier: Apache-2.0
#include "worker/host/description.h"

#include "common/wire/mode.h"

#include <string.h>

static void write_method(struct json_writer *w, const cadre_method *m, const struct published_rule *rule)
{
    writer_object(w, NULL);
    writer_str(w, "name", m->name);
    writer_str(w, "dispatch", mode_dispatch_name(m->dispatch));
    writer_str(w, "execute", mode_execute_name(m->execute));
    if (rule && rule->split)
        writer_raw(w, "split", rule->split, strlen(rule->split));
    if (rule && rule->collect)
        writer_raw(w, "collect", rule->collect, strlen(rule->collect));
    writer_str_set(w, "doc", m->doc);
    writer_object_end(w);
}

void description_write(struct json_writer *w, const struct module *m, const cadre_class *class,
                       const struct published *published)
{
    writer_str_set(w, "module", m->info->name);
    writer_str(w, "class", class->name);
    writer_list(w, "methods");
    for (size_t i = 0; i < class->n_methods; i++)
        write_method(w, &class->methods[i], published ? published_rule(published, class->methods[i].name) : NULL);
    writer_list_end(w);
    if (published && published->n_meshes)
        grids_write(w, "meshes", published->meshes, published->n_meshes);
}
