// SPDX-License-Identifier: Apache-2.0
#include "worker/host/description.h"

#include "common/wire/mode.h"

#include <inttypes.h>
#include <string.h>

static void write_method(struct json_writer *w, const cadre_method *m, const struct published *p)
{
    static const struct published_method nothing;
    const struct published_method *said = published_of(p, m->name);
    said = said ? said : &nothing;
    writer_object(w, NULL);
    writer_str(w, "name", m->name);
    writer_str(w, "dispatch", mode_dispatch_name(m->dispatch));
    writer_str(w, "execute", mode_execute_name(m->execute));
    if (said->split)
        writer_raw(w, "split", said->split, strlen(said->split));
    if (said->collect)
        writer_raw(w, "collect", said->collect, strlen(said->collect));
    if (said->group)
        writer_print(w, "concurrency", "{'group':%s,'limit':%" PRId64 "}", said->group->name,
                     (int64_t)said->group->limit);
    if (said->idempotent)
        writer_bool(w, "idempotent", true);
    writer_str_set(w, "doc", m->doc);
    writer_object_end(w);
}

static void write_class(struct json_writer *w, const struct role *role)
{
    const cadre_class *class = role->class;
    writer_str(w, "class", class->name);
    writer_list(w, "methods");
    for (size_t i = 0; i < class->n_methods; i++)
        write_method(w, &class->methods[i], &role->worker.published);
    writer_list_end(w);
}

static void write_meshes(struct json_writer *w, const struct roles *roles)
{
    struct mesh meshes[MESHES_MAX];
    size_t n = roles_meshes(roles, meshes);
    if (n)
        meshes_write(w, "meshes", meshes, n);
}

void description_write(struct json_writer *w, const struct module *m, const struct roles *roles)
{
    writer_str_set(w, "module", m->info->name);
    if (roles->at[0].name) {
        writer_list(w, "roles");
        for (size_t i = 0; i < roles->n; i++) {
            writer_object(w, NULL);
            writer_str(w, "name", roles->at[i].name);
            write_class(w, &roles->at[i]);
            writer_object_end(w);
        }
        writer_list_end(w);
    } else {
        write_class(w, &roles->at[0]);
    }
    write_meshes(w, roles);
}
