// SPDX-License-Identifier: Apache-2.0
#include "worker/host/description.h"

static void write_method(struct json_writer *w, const cadre_method *m)
{
    writer_object(w, NULL);
    writer_str(w, "name", m->name);
    writer_str(w, "dispatch", m->dispatch == CADRE_ALL_TO_ALL ? "ALL_TO_ALL" : "ONE_TO_ALL");
    writer_str(w, "execute", m->execute == CADRE_EXECUTE_RANK_ZERO ? "RANK_ZERO" : "ALL");
    writer_str_set(w, "doc", m->doc);
    writer_object_end(w);
}

void description_write(struct json_writer *w, const struct module *m, const cadre_class *class)
{
    writer_str_set(w, "module", m->info->name);
    writer_str(w, "class", class->name);
    writer_list(w, "methods");
    for (size_t i = 0; i < class->n_methods; i++)
        write_method(w, &class->methods[i]);
    writer_list_end(w);
}
