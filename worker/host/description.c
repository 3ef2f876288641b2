// SPDX-License-Identifier: Apache-2.0
#include "worker/host/description.h"

#include "common/wire/mode.h"

#include <string.h>

static void write_method(struct json_writer *w, const cadre_method *m, const struct published *p)
{
    const struct published_rule *rule = published_rule(p, m->name);
    const struct published_group *group = published_group_of(p, m->name);
    writer_object(w, NULL);
    writer_str(w, "name", m->name);
    writer_str(w, "dispatch", mode_dispatch_name(m->dispatch));
    writer_str(w, "execute", mode_execute_name(m->execute));
    if (rule && rule->split)
        writer_raw(w, "split", rule->split, strlen(rule->split));
    if (rule && rule->collect)
        writer_raw(w, "collect", rule->collect, strlen(rule->collect));
    if (group) {
        writer_object(w, "concurrency");
        writer_str(w, "group", group->name);
        writer_i64(w, "limit", group->limit);
        writer_object_end(w);
    }
    if (published_idempotent(p, m->name))
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
    struct grid meshes[GRIDS_MAX];
    size_t n = roles_meshes(roles, meshes);
    if (n)
        grids_write(w, "meshes", meshes, n);
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
