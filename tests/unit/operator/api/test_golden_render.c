// SPDX-License-Identifier: Apache-2.0
// tests/golden/render/<case>/{in.json,want.json}: a template, the fields that Cadre sets, and the resulting pod.
#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/podtemplate.h"
#include "tests/unit/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct labels read_labels(const struct json *map, struct arena *a)
{
    struct labels l = {arena_array(a, json_count(map), sizeof(struct label)), 0};
    JSON_FOREACH(m, map)
        l.items[l.n++] = (struct label){arena_strndup(a, m->key, m->key_len), json_str(m, a)};
    return l;
}

static struct pod_render read_render(const struct json *v, struct arena *a)
{
    const struct json *owner = json_get(v, "owner"), *env = json_get(v, "env");
    struct env_var *vars = arena_array(a, json_count(env), sizeof *vars);
    size_t n = 0;
    JSON_FOREACH(m, env)
        vars[n++] = (struct env_var){arena_strndup(a, m->key, m->key_len), json_str(m, a)};
    return (struct pod_render){
        .ns = json_str(json_get(v, "namespace"), a),
        .name = json_str(json_get(v, "name"), a),
        .hostname = json_str(json_get(v, "hostname"), a),
        .subdomain = json_str(json_get(v, "subdomain"), a),
        .labels = read_labels(json_get(v, "labels"), a),
        .annotations = read_labels(json_get(v, "annotations"), a),
        .owner = {.api_version = json_str(json_get(owner, "apiVersion"), a),
                  .kind = json_str(json_get(owner, "kind"), a),
                  .name = json_str(json_get(owner, "name"), a),
                  .uid = json_str(json_get(owner, "uid"), a)},
        .env = vars,
        .n_env = n,
        .pin = json_str(json_get(v, "pin"), a),
    };
}

static char *error_document(int code, const struct err *err, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "code", err_name(code));
    writer_str(&w, "message", err->msg);
    writer_object_end(&w);
    const char *text = writer_finish(&w, a);
    return golden_pretty(text, strlen(text));
}

static char *render(const struct json *in, struct arena *a)
{
    const struct json *template = json_get(in, "template");
    struct err err = ERR_INIT;
    const char *pod;
    if (!template)
        return xstrdup("in.json has no template\n");
    struct pod_render r = read_render(json_get(in, "render"), a);
    int code = pod_render(arena_strndup(a, template->text, template->len), &r, a, &pod, &err);
    return code < 0 ? error_document(code, &err, a) : golden_pretty(pod, strlen(pod));
}

static char *render_case(const char *name, const char *in, size_t len)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    (void)name;
    char *out = json_parse(in, len, NULL, &a, &root, &err) < 0 ? xasprintf("%s\n", err.msg) : render(root, &a);
    arena_done(&a);
    return out;
}

static void pods_are_rendered_as_reviewed(void **state)
{
    (void)state;
    assert_int_equal(golden_run("tests/golden/render", "in.json", "want.json", render_case), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pods_are_rendered_as_reviewed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
