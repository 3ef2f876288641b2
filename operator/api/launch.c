// SPDX-License-Identifier: Apache-2.0
#include "operator/api/launch.h"

#include "common/base/mem.h"

#include <string.h>

enum { PART = 96 * 1024 };

static void add_words(struct launch *l, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        l->command[l->n_command++] = words[i];
}

static void add_variable(struct launch *l, const char *name, const char *value)
{
    if (value)
        l->env[l->n_env++] = (struct worker_env){.name = name, .value = value};
}

static void add_preload(struct launch *l, const struct worker_spec *s, struct arena *a)
{
    const char *names = s->n_preload ? s->preload[0] : NULL;
    for (size_t i = 1; i < s->n_preload; i++)
        names = arena_printf(a, "%s %s", names, s->preload[i]);
    add_variable(l, "CADRE_PRELOAD", names);
}

// The kernel refuses variables over 128 KiB, so the value is split.
static size_t code_parts(const struct worker_spec *s)
{
    return s->code_inline ? (strlen(s->code_inline) + PART - 1) / PART : 0;
}

static void add_code(struct launch *l, const struct worker_spec *s, struct arena *a)
{
    add_variable(l, "CADRE_CODE", s->code_sha256);
    for (size_t i = 0; i < code_parts(s); i++)
        add_variable(l, arena_printf(a, "CADRE_CODE_%zu", i),
                     arena_printf(a, "%.*s", (int)PART, s->code_inline + i * PART));
}

void launch_of(const struct worker_spec *s, struct arena *a, struct launch *ret)
{
    static const char *const module[] = {"cadre-worker"}, *const python[] = {"python3", "-m", "cadre.worker"};
    enum { OWN_WORDS = 3, OWN_VARIABLES = 8 };
    *ret = (struct launch){.command = arena_array(a, OWN_WORDS + s->n_command + s->n_args + 1, sizeof(char *)),
                           .env = arena_array(a, OWN_VARIABLES + code_parts(s) + s->n_env, sizeof *ret->env)};
    add_variable(ret, "CADRE_MODULE", s->module);
    add_variable(ret, "CADRE_PYTHON", s->python);
    add_preload(ret, s, a);
    add_code(ret, s, a);
    if (s->has_archive)
        add_variable(ret, "CADRE_ARCHIVE", arena_printf(a, "%s:%lld", s->archive_sha256, (long long)s->archive_size));
    add_variable(ret, "CADRE_CLASS", s->class_name);
    add_variable(ret, "CADRE_INIT", s->init_json);
    add_variable(ret, "CADRE_ROLES", s->roles_json);
    for (size_t i = 0; i < s->n_env; i++)
        if (!s->env[i].value_from)
            add_variable(ret, s->env[i].name, s->env[i].value ? s->env[i].value : "");
    if (s->module)
        add_words(ret, module, ARRAY_LEN(module));
    else if (s->python)
        add_words(ret, python, ARRAY_LEN(python));
    else
        add_words(ret, s->command, s->n_command);
    if (ret->n_command)
        add_words(ret, s->args, s->n_args);
}
