// SPDX-License-Identifier: Apache-2.0
// The schemas in crds/ and the code agree. The schema has each field that the operator reads, with the same type,
// values, limits and default. It has exactly the status fields that the operator writes. For each field of a spec that
// the operator does not read, it answers NotSupported.
#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/json_table.h"
#include "operator/api/placementgroup.h"
#include "operator/api/workergroup.h"
#include "operator/reconcile/accept.h"
#include "operator/reconcile/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

static yaml_document_t documents[2];
enum { WORKERGROUPS, PLACEMENTGROUPS };

static int load(void **state)
{
    (void)state;
    static const char *const paths[] = {"crds/cadre.dev_workergroups.yaml", "crds/cadre.dev_placementgroups.yaml"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        yaml_parser_t parser;
        FILE *f = fopen(paths[i], "re");
        if (!f || !yaml_parser_initialize(&parser))
            return -1;
        yaml_parser_set_input_file(&parser, f);
        int ok = yaml_parser_load(&parser, &documents[i]);
        yaml_parser_delete(&parser);
        fclose(f);
        if (!ok)
            return -1;
    }
    return 0;
}

static int unload(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(documents); i++)
        yaml_document_delete(&documents[i]);
    return 0;
}

// A place in a schema: an object of OpenAPI, and the path of the field that it describes.
struct schema {
    yaml_document_t *doc;
    yaml_node_t *node; // NULL: no such place
    const char *path;
};

static struct arena arena; // for the paths

static const char *text_of(yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static yaml_node_t *member(yaml_document_t *doc, yaml_node_t *map, const char *name)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
        if (str_eq(text_of(yaml_document_get_node(doc, p->key)), name))
            return yaml_document_get_node(doc, p->value);
    return NULL;
}

static yaml_node_t *item(yaml_document_t *doc, yaml_node_t *list, size_t i)
{
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return NULL;
    yaml_node_item_t *at = list->data.sequence.items.start + i;
    return at < list->data.sequence.items.top ? yaml_document_get_node(doc, *at) : NULL;
}

static const char *attribute(const struct schema *s, const char *name)
{
    return text_of(member(s->doc, s->node, name));
}

static struct schema property(const struct schema *s, const char *name)
{
    return (struct schema){s->doc, member(s->doc, member(s->doc, s->node, "properties"), name),
                           arena_printf(&arena, "%s%s%s", s->path, *s->path ? "." : "", name)};
}

static struct schema items_of(const struct schema *s)
{
    return (struct schema){s->doc, member(s->doc, s->node, "items"), arena_printf(&arena, "%s[]", s->path)};
}

static struct schema root_of(int which)
{
    yaml_document_t *d = &documents[which];
    yaml_node_t *versions = member(d, member(d, yaml_document_get_root_node(d), "spec"), "versions");
    yaml_node_t *schema = member(d, member(d, item(d, versions, 0), "schema"), "openAPIV3Schema");
    assert_non_null(schema);
    assert_null(item(d, versions, 1));
    return (struct schema){d, schema, ""};
}

static bool lists(const struct schema *s, const char *attribute_name, const char *value)
{
    yaml_node_t *list = member(s->doc, s->node, attribute_name), *v;
    for (size_t i = 0; (v = item(s->doc, list, i)); i++)
        if (str_eq(text_of(v), value))
            return true;
    return false;
}

static const char *type_of(enum json_kind kind)
{
    switch (kind) {
    case J_STRING:
    case J_TIME:
    case J_ENUM:
        return "string";
    case J_BOOL:
        return "boolean";
    case J_I32:
    case J_I64:
        return "integer";
    case J_STRINGS:
    case J_I32S:
    case J_ITEMS:
    case J_LIST:
        return "array";
    default:
        return "object";
    }
}

static void must(bool holds, const struct schema *s, const char *what)
{
    if (!holds)
        fail_msg("%s: %s", s->path, what);
}

static void check_enum(const struct schema *s, const struct json_field *f)
{
    size_t n = 0;
    for (; f->names[n]; n++)
        must(lists(s, "enum", f->names[n]), s, arena_printf(&arena, "the schema does not know %s", f->names[n]));
    must(!item(s->doc, member(s->doc, s->node, "enum"), n), s, "the decoder does not know all values of the schema");
}

// The decoder must not refuse an object that the API server accepts.
static void check_limits(const struct schema *s, const struct json_field *f)
{
    int64_t min, max;
    bool bounded = str_to_i64(attribute(s, "minimum"), &min) && str_to_i64(attribute(s, "maximum"), &max);
    if (f->min || f->max)
        must(bounded && min == f->min && max == f->max, s, "the decoder has other limits");
    else if (f->kind == J_I32)
        must(str_eq(attribute(s, "format"), "int32"), s, "does not fit into 32 bits");
}

static void check_default(const struct schema *s, const struct json_field *f)
{
    const char *text = attribute(s, "default"), *ours = f->missing_str;
    if (!text)
        return;
    if (f->kind == J_BOOL)
        ours = f->missing ? "true" : "false";
    else if (f->kind == J_ENUM)
        ours = f->names[f->missing];
    else if (f->kind == J_I32 || f->kind == J_I64)
        ours = arena_printf(&arena, "%" PRId64, f->missing);
    must(str_eq(text, ours), s, arena_printf(&arena, "the default is %s, of the decoder %s", text, ours));
}

static void check_table(const struct schema *s, const struct json_table *table);

static void check_field(const struct schema *s, const struct json_field *f)
{
    must(s->node, s, "the operator reads it, but the schema does not have it");
    must(str_eq(attribute(s, "type"), type_of(f->kind)), s, "has another type in the schema");
    if (f->kind == J_TIME)
        must(str_eq(attribute(s, "format"), "date-time"), s, "is not a time in the schema");
    if (f->kind == J_ENUM)
        check_enum(s, f);
    if (f->kind == J_I32 || f->kind == J_I64)
        check_limits(s, f);
    check_default(s, f);
    struct schema within = f->kind == J_LIST ? items_of(s) : *s;
    if (f->table)
        check_table(&within, f->table);
}

static void check_table(const struct schema *s, const struct json_table *table)
{
    for (size_t i = 0; i < table->n; i++) {
        struct schema p = property(s, table->fields[i].name);
        check_field(&p, &table->fields[i]);
        if (table->fields[i].required)
            must(lists(s, "required", table->fields[i].name), &p, "the decoder asks for it, the schema does not");
    }
}

static void what_the_operator_reads_is_in_the_schema(void **state)
{
    (void)state;
    struct schema wg = root_of(WORKERGROUPS), plg = root_of(PLACEMENTGROUPS);
    check_table(&wg, &workergroup_table);
    check_table(&plg, &placementgroup_table);
}

static const struct json_field *field_of(const struct json_table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return &table->fields[i];
    return NULL;
}

static void check_properties_are_read(const struct schema *s, const struct json_table *table)
{
    yaml_node_t *properties = member(s->doc, s->node, "properties");
    for (yaml_node_pair_t *p = properties->data.mapping.pairs.start; p < properties->data.mapping.pairs.top; p++) {
        struct schema at = property(s, text_of(yaml_document_get_node(s->doc, p->key)));
        const struct json_field *f = field_of(table, strrchr(at.path, '.') + 1);
        must(f, &at, "the operator does not read it");
        must(f->table || f->kind != J_OBJECT, &at, "the operator does not look into it");
        struct schema within = f->kind == J_LIST ? items_of(&at) : at;
        if (f->table)
            check_properties_are_read(&within, f->table);
    }
}

static void what_the_schema_offers_is_read(void **state)
{
    (void)state;
    struct schema root = root_of(WORKERGROUPS), spec = property(&root, "spec");
    check_properties_are_read(&spec, field_of(&workergroup_table, "spec")->table);
}

static const char *type_of_value(const struct json *v)
{
    static const char *const names[] = {
        [JSON_BOOL] = "boolean", [JSON_NUMBER] = "integer", [JSON_STRING] = "string",
        [JSON_LIST] = "array",   [JSON_OBJECT] = "object",
    };
    return names[v->type];
}

static void check_written(const struct schema *s, const struct json *v)
{
    must(s->node, s, "the operator writes it, but the schema does not have it");
    must(str_eq(attribute(s, "type"), type_of_value(v)), s, "is written with another type");
    struct schema items = v->type == JSON_LIST ? items_of(s) : *s;
    JSON_FOREACH(child, v) {
        struct schema at =
            v->type == JSON_LIST ? items : property(s, arena_strndup(&arena, child->key, child->key_len));
        check_written(&at, child);
    }
}

static void check_all_written(const struct schema *s, const struct json *v)
{
    yaml_node_t *properties = member(s->doc, s->node, "properties");
    if (!properties)
        return;
    for (yaml_node_pair_t *p = properties->data.mapping.pairs.start; p < properties->data.mapping.pairs.top; p++) {
        const char *name = text_of(yaml_document_get_node(s->doc, p->key));
        struct schema at = property(s, name);
        const struct json *child = json_get(v, name);
        must(child, &at, "the schema has it, but the operator never writes it");
        struct schema within = child->type == JSON_LIST ? items_of(&at) : at;
        check_all_written(&within, child->type == JSON_LIST ? child->child : child);
    }
}

static const struct json *parse(const char *text)
{
    struct json *root = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(json_parse(text, strlen(text), NULL, &arena, &root, &err), 0);
    return root;
}

static struct condition condition = {"Ready", CONDITION_TRUE, "Running", "all 4 replicas are ready", 3, 1000};

static void a_status_is_what_the_schema_says(void **state)
{
    (void)state;
    struct node_ranges placement = {"n1", "0-3"};
    struct placementgroup_ref pool = {"pool", "0-3"};
    struct workergroup_status status = {
        .master_addr = "a:1",
        .selector = "cadre.dev/group=a",
        .strategy = "Pack",
        .placements = &placement,
        .n_placements = 1,
        .last_failure = {.rank = 1, .pod = "p", .node = "n", .reason = "Error", .message = "m", .time_ms = 1000},
        .revision = {"1", "2", 3, 4, 1, &pool, 1},
        .conditions = &condition,
        .n_conditions = 1,
    };
    struct schema root = root_of(WORKERGROUPS), at = property(&root, "status");
    const struct json *v = json_get(parse(workergroup_status_patch(&status, &arena)), "status");
    check_written(&at, v);
    check_all_written(&at, v);
    root = root_of(PLACEMENTGROUPS);
    at = property(&root, "status");
    struct node_ranges bundles = {"n1", "0-3"};
    struct placementgroup_status plg = {
        .placements = &bundles, .n_placements = 1, .conditions = &condition, .n_conditions = 1};
    v = json_get(parse(placementgroup_status_patch(&plg, &arena)), "status");
    check_written(&at, v);
    check_all_written(&at, v);
}

// ".status.conditions[?(@.type=="Ready")].reason": member by member. A filter follows a list, and stands for its items.
static void check_path(struct schema at, const char *path)
{
    while (*path == '.') {
        size_t n = strcspn(++path, ".[");
        at = property(&at, arena_strndup(&arena, path, n));
        must(at.node || str_starts(at.path, "metadata."), &at, "a column shows it, but the schema does not have it");
        path += n;
        if (*path == '[') {
            path = strchr(path, ']') + 1;
            at = items_of(&at);
        }
    }
}

static void columns_show_what_there_is(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        yaml_document_t *d = &documents[which];
        yaml_node_t *versions = member(d, member(d, yaml_document_get_root_node(d), "spec"), "versions"), *column;
        yaml_node_t *columns = member(d, item(d, versions, 0), "additionalPrinterColumns");
        size_t i = 0;
        for (; (column = item(d, columns, i)); i++)
            check_path(root_of(which), text_of(member(d, column, "jsonPath")));
        assert_true(i > 5);
    }
}

static int clear(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_the_operator_reads_is_in_the_schema, clear),
        cmocka_unit_test_teardown(what_the_schema_offers_is_read, clear),
        cmocka_unit_test_teardown(a_status_is_what_the_schema_says, clear),
        cmocka_unit_test_teardown(columns_show_what_there_is, clear),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
