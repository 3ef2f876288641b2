// SPDX-License-Identifier: Apache-2.0
#include "operator/local/container.h"

#include "operator/api/quantity.h"

#include <cjson/cJSON.h>

static const cJSON *get(const cJSON *of, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(of, name);
    return cJSON_IsNull(v) ? NULL : v;
}

static int read_words(const cJSON *of, const char *name, struct arena *a, const char ***ret, size_t *ret_n,
                      struct err *err)
{
    const cJSON *list = get(of, name), *word;
    *ret = arena_array(a, (size_t)cJSON_GetArraySize(list), sizeof **ret);
    cJSON_ArrayForEach(word, list) {
        const char *s = cJSON_GetStringValue(word);
        if (!s)
            return err_set(err, ERR_INVALID, "spec.template.spec.containers[0].%s must be a list of strings", name);
        (*ret)[(*ret_n)++] = arena_strdup(a, s);
    }
    return 0;
}

static void read_environment(const cJSON *of, struct arena *a, struct container *ret)
{
    const cJSON *list = get(of, "env"), *variable;
    ret->env = arena_array(a, (size_t)cJSON_GetArraySize(list), sizeof *ret->env);
    cJSON_ArrayForEach(variable, list) {
        const char *name = cJSON_GetStringValue(get(variable, "name"));
        const char *value = cJSON_GetStringValue(get(variable, "value"));
        if (name && value)
            ret->env[ret->n_env++] = (struct container_variable){arena_strdup(a, name), arena_strdup(a, value)};
    }
}

// A quantity may be a string or a number.
static int64_t read_cpu(const cJSON *of, struct arena *a)
{
    const cJSON *resources = get(of, "resources"), *v = get(get(resources, "requests"), "cpu");
    struct err ignored = ERR_INIT; // the decoder of the template has checked it
    int64_t milli = 0;
    v = v ? v : get(get(resources, "limits"), "cpu");
    const char *text = cJSON_IsNumber(v) ? arena_printf(a, "%.15g", v->valuedouble) : cJSON_GetStringValue(v);
    return text && quantity_parse(text, &milli, &ignored) == 0 ? milli : 0;
}

static int read_containers(const cJSON *list, struct arena *a, struct container *ret, struct err *err)
{
    const cJSON *first = cJSON_GetArrayItem(list, 0), *one;
    int r = read_words(first, "command", a, &ret->command, &ret->n_command, err);
    if (r == 0)
        r = read_words(first, "args", a, &ret->args, &ret->n_args, err);
    read_environment(first, a, ret);
    cJSON_ArrayForEach(one, list)
        ret->cpu_milli = amount_add(ret->cpu_milli, read_cpu(one, a));
    return r;
}

int container_read(const char *template, struct arena *a, struct container *ret, struct err *err)
{
    *ret = (struct container){0};
    if (!template)
        return 0;
    cJSON *root = cJSON_Parse(template);
    if (!root)
        return err_set(err, ERR_INVALID, "spec.template is not JSON");
    int r = read_containers(get(get(root, "spec"), "containers"), a, ret, err);
    cJSON_Delete(root);
    return r;
}
