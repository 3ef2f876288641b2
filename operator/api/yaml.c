// SPDX-License-Identifier: Apache-2.0
#include "operator/api/yaml.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>
#include <yaml.h>

struct conversion {
    yaml_document_t doc;
    struct json_writer out;
    struct err *err;
};

static int invalid(struct conversion *c, const yaml_node_t *n, const char *what)
{
    return err_set(c->err, ERR_INVALID, "line %zu: %s", n->start_mark.line + 1, what);
}

static bool is_number(const char *text, size_t len)
{
    struct arena a = ARENA_INIT;
    struct json *v;
    struct err ignored = ERR_INIT;
    bool same = json_parse(text, len, NULL, &a, &v, &ignored) == 0 && v->type == JSON_NUMBER && v->len == len;
    arena_done(&a);
    return same;
}

// A number that JSON cannot write (0x1f, .inf, 1_000) becomes a string here. The decoder of the field refuses it, and
// names the field.
static void put_scalar(struct conversion *c, const yaml_node_t *n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const yes[] = {"true", "True", "TRUE"}, *const no[] = {"false", "False", "FALSE"};
    const char *s = (const char *)n->data.scalar.value;
    if (n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        for (size_t i = 0; i < ARRAY_LEN(nulls); i++)
            if (str_eq(s, nulls[i])) {
                writer_null(&c->out, NULL);
                return;
            }
        for (size_t i = 0; i < ARRAY_LEN(yes); i++)
            if (str_eq(s, yes[i]) || str_eq(s, no[i])) {
                writer_bool(&c->out, NULL, str_eq(s, yes[i]));
                return;
            }
        if (is_number(s, n->data.scalar.length)) {
            writer_raw(&c->out, NULL, s, n->data.scalar.length);
            return;
        }
    }
    writer_str(&c->out, NULL, s);
}

static int put(struct conversion *c, int id, int depth);

static int put_list(struct conversion *c, const yaml_node_t *n, int depth)
{
    writer_list(&c->out, NULL);
    for (const yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        int r = put(c, *i, depth);
        if (r < 0)
            return r;
    }
    writer_list_end(&c->out);
    return 0;
}

static int put_object(struct conversion *c, const yaml_node_t *n, int depth)
{
    writer_object(&c->out, NULL);
    for (const yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&c->doc, p->key);
        if (key->type != YAML_SCALAR_NODE)
            return invalid(c, key, "a key must be a plain word");
        writer_key(&c->out, (const char *)key->data.scalar.value, key->data.scalar.length);
        int r = put(c, p->value, depth);
        if (r < 0)
            return r;
    }
    writer_object_end(&c->out);
    return 0;
}

static int put(struct conversion *c, int id, int depth)
{
    const yaml_node_t *n = yaml_document_get_node(&c->doc, id);
    if (depth == YAML_DEPTH_MAX || c->out.buf.len > YAML_JSON_MAX)
        return err_set(c->err, ERR_LIMIT, "line %zu: too deep or too long for a manifest", n->start_mark.line + 1);
    if (n->type == YAML_SEQUENCE_NODE)
        return put_list(c, n, depth + 1);
    if (n->type == YAML_MAPPING_NODE)
        return put_object(c, n, depth + 1);
    if (strlen((const char *)n->data.scalar.value) != n->data.scalar.length)
        return invalid(c, n, "a text with byte 0");
    put_scalar(c, n);
    return 0;
}

static int convert(struct conversion *c, struct arena *a, const char **ret)
{
    c->out = WRITER_INIT_MAX(YAML_JSON_MAX);
    int r = put(c, 1, 0); // the root is the first node
    if (r < 0) {
        writer_done(&c->out);
        return r;
    }
    *ret = writer_finish(&c->out, a);
    return *ret ? 0 : err_set(c->err, ERR_LIMIT, "too long for a manifest");
}

static int load(yaml_parser_t *parser, struct arena *a, const char *texts[], size_t max, size_t *n, struct err *err)
{
    for (*n = 0;;) {
        struct conversion c = {.err = err};
        int r = 0;
        if (!yaml_parser_load(parser, &c.doc))
            return err_set(err, ERR_INVALID, "line %zu: %s", parser->problem_mark.line + 1,
                           parser->problem ? parser->problem : "this is not YAML");
        const yaml_node_t *root = yaml_document_get_root_node(&c.doc);
        bool end = !root;
        if (root && *n == max)
            r = err_set(err, ERR_LIMIT, "more than %zu documents", max);
        else if (root && root->type != YAML_SCALAR_NODE) // an empty document is a scalar
            r = convert(&c, a, &texts[(*n)++]);
        yaml_document_delete(&c.doc);
        if (r < 0 || end)
            return r;
    }
}

int yaml_to_json(const char *text, size_t len, struct arena *a, const char *const **ret, size_t *n, struct err *err)
{
    enum { DOCUMENTS_MAX = 256 };
    const char **texts = arena_array(a, DOCUMENTS_MAX, sizeof *texts);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return err_set(err, ERR_LIMIT, "no memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int r = load(&parser, a, texts, DOCUMENTS_MAX, n, err);
    yaml_parser_delete(&parser);
    *ret = texts;
    return r;
}
