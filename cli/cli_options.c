// SPDX-License-Identifier: Apache-2.0
#include "cli/cli_options.h"

#include "cli/help.h"
#include "common/base/buf.h"
#include "common/base/duration.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/mode.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define CALL (1u << VERB_CALL)
#define INFO (1u << VERB_INFO)
#define KILL (1u << VERB_KILL)
#define STACK (1u << VERB_STACK)
#define TOP (1u << VERB_TOP)
#define PUT (1u << VERB_PUT)
#define GET (1u << VERB_GET)
#define FREE (1u << VERB_FREE)
#define OBJECTS (PUT | GET | FREE)
#define WHY (1u << VERB_WHY)
#define LOGS (1u << VERB_LOGS)
#define CA (1u << VERB_CA)
#define REACH (CALL | INFO | KILL | STACK | TOP | OBJECTS | LOGS)
#define ALL (~0u)

// The first name of a verb is the one in messages and in the help.
static const struct {
    const char *name;
    enum verb verb;
} verb_names[] = {
    {"call", VERB_CALL},       {"info", VERB_INFO},         {"status", VERB_INFO}, {"kill", VERB_KILL},
    {"stack", VERB_STACK},     {"top", VERB_TOP},           {"put", VERB_PUT},     {"get", VERB_GET},
    {"free", VERB_FREE},       {"why", VERB_WHY},           {"logs", VERB_LOGS},   {"ca", VERB_CA},
    {"version", VERB_VERSION}, {"--version", VERB_VERSION},
};

enum { ARGS_MAX = 64 << 20, TIMEOUT_MS = 60 * 1000, FIRST_ROW = 256 };

struct parse {
    struct cli_options *o;
    struct buf list; // of --arg
    const char *per_rank;
    char **argv; // getopt goes through it
};

// VERB_COUNT: there is no such verb.
static enum verb verb_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verb_names); i++)
        if (str_eq(verb_names[i].name, name))
            return verb_names[i].verb;
    return VERB_COUNT;
}

static const char *name_of(enum verb verb)
{
    for (size_t i = 0; i < ARRAY_LEN(verb_names); i++)
        if (verb_names[i].verb == verb)
            return verb_names[i].name;
    return NULL;
}

static int wrong(const struct cli_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int wrong(const struct cli_options *o, const char *fmt, ...)
{
    va_list ap;
    fputs("error: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nSee 'kubectl cadre %s --help' for usage.\n", name_of(o->verb));
    return CLI_OPTIONS_USAGE;
}

bool cli_options_duration(const char *text, int64_t *ret_ms)
{
    int64_t seconds;
    if (!str_to_i64(text, &seconds))
        return duration_parse(text, ret_ms);
    if (seconds < 0 || seconds > DURATION_MAX_MS / 1000)
        return false;
    *ret_ms = seconds * 1000;
    return true;
}

// Also accepts the spelling of kubectl's users: one-to-all.
static bool mode_is(const char *text, const char *name)
{
    for (; *text && *name; text++, name++)
        if (strncasecmp(text, name, 1) != 0 && !(*text == '-' && *name == '_'))
            return false;
    return *text == *name;
}

static int set_mode(const struct cli_options *o, const char *text, const char *(*name)(unsigned),
                    void (*list)(struct buf *), int *ret)
{
    for (unsigned i = 1; name(i); i++) {
        if (mode_is(text, name(i))) {
            *ret = (int)i;
            return -1;
        }
    }
    _cleanup_(buf_done) struct buf names = BUF_INIT(1024);
    list(&names);
    int r = wrong(o, "there is no mode %s; there are %s", text, buf_str(&names));
    return r;
}

static int set_dispatch(struct parse *p, const char *text)
{
    return set_mode(p->o, text, mode_dispatch_of, mode_dispatch_list, &p->o->request.dispatch);
}

static int set_execute(struct parse *p, const char *text)
{
    return set_mode(p->o, text, mode_execute_of, mode_execute_list, &p->o->request.execute);
}

static int set_output(struct parse *p, const char *text)
{
    struct cli_options *o = p->o;
    bool json = str_eq(text, "json"), ranks = str_eq(text, "ranks") && o->verb == VERB_CALL;
    if (!json && !ranks)
        return wrong(o, "-o must be json%s: %s", o->verb == VERB_CALL ? " or ranks" : "", text);
    o->output = json ? OUTPUT_JSON : OUTPUT_RANKS;
    return -1;
}

// A single value is the only positional argument.
static int check_json(const struct cli_options *o, const char *text, enum json_type *ret)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    int r = json_parse(text, strlen(text), NULL, &a, &root, &err);
    if (r == ERR_LIMIT)
        return wrong(o, "the argument %.200s: %s", text, err.msg);
    if (r < 0)
        return wrong(o, "the argument %.200s is not JSON: %s%s", text, err.msg,
                     strpbrk(text, "[{\"") ? "" : "; a string needs quotes: '\"text\"'");
    *ret = root->type;
    return -1;
}

static int add_arg(struct parse *p, const char *text)
{
    enum json_type type = JSON_NULL;
    int r = check_json(p->o, text, &type);
    if (r < 0 && buf_printf(&p->list, "%s%s", p->list.len ? "," : "[", text) < 0)
        return wrong(p->o, "the arguments are too long");
    return r;
}

// A reference as `put` prints it, or only its text.
static int set_reference(struct parse *p, const char *text)
{
    if (!str_starts(text, "cadre:") || strpbrk(text, "\"\\"))
        return -1;
    p->o->args = xasprintf("{\"$ref\":\"%s\"}", text);
    return 0;
}

static int set_args(struct parse *p, const char *text)
{
    enum json_type type = JSON_NULL;
    if (set_reference(p, text) == 0)
        return -1;
    int r = check_json(p->o, text, &type);
    if (r >= 0)
        return r;
    p->o->args = type == JSON_LIST || type == JSON_OBJECT ? xstrdup(text) : xasprintf("[%s]", text);
    return -1;
}

// getopt passes a word such as -10 only after its last letter.
static const char *unknown_word(const struct parse *p)
{
    const char *next = p->argv[optind];
    bool inside = optopt && next && next[0] == '-' && next[1] != '-' && strchr(next + 1, optopt);
    return inside ? next : p->argv[optind - 1];
}

static int unknown(const struct parse *p)
{
    const char *arg = unknown_word(p);
    return wrong(p->o, "unknown option, or its value is missing: %s%s", arg,
                 strspn(arg, "-.0123456789") == strlen(arg) ? "; write a negative number after --" : "");
}

static int set_per_rank(struct parse *p, const char *text)
{
    p->per_rank = text;
    return -1;
}

static int set_socket(struct parse *p, const char *path)
{
    p->o->socket = path;
    return path[0] == '/' ? -1 : wrong(p->o, "--socket %s: must be the path of a socket, from /", path);
}

static int set_interval(struct parse *p, const char *text)
{
    return cli_options_duration(text, &p->o->interval_ms) && p->o->interval_ms > 0
               ? -1
               : wrong(p->o, "--interval %s: must be seconds, or " DURATION_FORM, text);
}

static int set_timeout(struct parse *p, const char *text)
{
    return cli_options_duration(text, &p->o->request.timeout_ms)
               ? -1
               : wrong(p->o, "--timeout %s: must be seconds, or " DURATION_FORM, text);
}

// This session ends in a moment. A pinned object stays.
static int set_keep(struct parse *p, const char *unused)
{
    (void)unused;
    p->o->request.by_reference = p->o->request.pin = 1;
    return -1;
}

static int show_help(struct parse *p, const char *unused)
{
    (void)unused;
    fputs(help_of(name_of(p->o->verb)), stdout);
    return 0;
}

enum kind {
    TEXT,    // const char *
    FLAG,    // bool
    SWITCH,  // int: 1
    NUMBER,  // int64_t, from min to max
    KUBECTL, // it gets the option as it is
    SET,     // `set` reads it
};

static const struct choice {
    const char *name;
    enum kind kind;
    unsigned verbs;
    size_t offset; // of the field in struct cli_options
    int (*set)(struct parse *p, const char *value);
    int64_t min, max;
    char letter; // of the short form; 0 = none
    bool no_value;
} choices[] = {
#define AT(field) offsetof(struct cli_options, field)
    {"namespace", TEXT, REACH | WHY, AT(ns), .letter = 'n'},
    {"context", KUBECTL, ALL},
    {"kubeconfig", KUBECTL, ALL},
    {"cluster", KUBECTL, ALL},
    {"user", KUBECTL, ALL},
    {"as", KUBECTL, ALL},
    {"as-group", KUBECTL, ALL},
    {"as-uid", KUBECTL, ALL},
    {"certificate-authority", KUBECTL, ALL},
    {"client-certificate", KUBECTL, ALL},
    {"client-key", KUBECTL, ALL},
    {"tls-server-name", KUBECTL, ALL},
    {"insecure-skip-tls-verify", KUBECTL, ALL, .no_value = true},
    {"operator-namespace", TEXT, REACH | CA, AT(operator_ns)},
    {"server", TEXT, REACH, AT(server)},
    {"socket", SET, REACH, .set = set_socket},
    {"ca-file", TEXT, REACH, AT(ca_file)},
    {"token", TEXT, REACH, AT(token)},
    {"token-file", TEXT, REACH, AT(token_file)},
    {"service-account", TEXT, REACH, AT(service_account)},
    {"output", SET, CALL | INFO | TOP | GET, .set = set_output, .letter = 'o'},
    {"timeout", SET, CALL | INFO | KILL | TOP | OBJECTS, .set = set_timeout},
    {"arg", SET, CALL, .set = add_arg},
    {"per-rank", SET, CALL, .set = set_per_rank},
    {"rank", NUMBER, CALL | KILL | STACK | PUT | LOGS, AT(request.rank), .max = INT32_MAX},
    {"role", TEXT, CALL, AT(request.role)},
    {"dispatch", SET, CALL | PUT, .set = set_dispatch},
    {"execute", SET, CALL, .set = set_execute},
    {"split", TEXT, CALL, AT(request.split)},
    {"collect", TEXT, CALL, AT(request.collect)},
    {"pad", SWITCH, CALL, AT(request.pad)},
    {"attempt", NUMBER, CALL | KILL, AT(request.attempt), .min = 1, .max = UINT32_MAX},
    {"no-wait", SWITCH, CALL, AT(request.refuse_when_not_ready)},
    {"no-reply", SWITCH, CALL, AT(request.no_result)},
    {"keep", SET, CALL, .set = set_keep, .no_value = true},
    {"logs", FLAG, CALL, AT(logs)},
    {"fold", FLAG, LOGS, AT(fold)},
    {"follow", FLAG, LOGS, AT(follow), .letter = 'f'},
    {"tail", NUMBER, LOGS, AT(tail), .max = INT32_MAX},
    {"watch", FLAG, TOP, AT(watch), .letter = 'w'},
    {"interval", SET, TOP, .set = set_interval},
    {"help", SET, ALL, .set = show_help, .letter = 'h', .no_value = true},
#undef AT
};

static int set_number(const struct cli_options *o, const struct choice *c, const char *text, int64_t *ret)
{
    if (str_to_i64(text, ret) && *ret >= c->min && *ret <= c->max)
        return -1;
    return wrong(o, "--%s %s: must be a number from %lld to %lld", c->name, text, (long long)c->min, (long long)c->max);
}

static int add_kubectl(struct cli_options *o, const char *name, const char *value)
{
    if (o->n_kubectl == CLI_OPTIONS_KUBECTL_MAX)
        return wrong(o, "more than %d options are for kubectl", CLI_OPTIONS_KUBECTL_MAX);
    o->kubectl[o->n_kubectl++] = xasprintf("--%s%s%s", name, value ? "=" : "", value ? value : "");
    return -1;
}

static int apply(struct parse *p, const struct choice *c, const char *value)
{
    void *field = (char *)p->o + c->offset;
    switch (c->kind) {
    case TEXT:
        *(const char **)field = value;
        return -1;
    case FLAG:
        *(bool *)field = true;
        return -1;
    case SWITCH:
        *(int *)field = 1;
        return -1;
    case NUMBER:
        return set_number(p->o, c, value, field);
    case KUBECTL:
        return add_kubectl(p->o, c->name, value);
    case SET:
        break;
    }
    return c->set(p, value);
}

static int take_call(struct parse *p, int n, char **rest)
{
    struct cli_options *o = p->o;
    if (n < 2)
        return wrong(o, "call needs a GROUP and a METHOD");
    o->request.method = rest[1];
    if ((n > 2) + (p->list.len > 0) + (p->per_rank != NULL) > 1)
        return wrong(o, "use only one of ARGS, --arg and --per-rank");
    if (n > 2)
        return set_args(p, rest[2]);
    if (p->list.len) {
        buf_putc(&p->list, ']');
        o->args = buf_take(&p->list);
    }
    if (!p->per_rank)
        return -1;
    int r = set_args(p, p->per_rank);
    if (r >= 0)
        return r;
    if (o->request.rank >= 0 || o->request.dispatch || strspn(p->per_rank, " \t\r\n[{") == 0)
        return wrong(o,
                     "--per-rank needs a list with one element per rank, and goes with neither --rank nor --dispatch");
    o->request.dispatch = CADRE_CLIENT_ALL_TO_ALL;
    return -1;
}

// A value as it is, or a reference.
static int take_object(struct parse *p, int n, char **rest)
{
    struct cli_options *o = p->o;
    enum json_type type = JSON_NULL;
    if (n < 2)
        return wrong(o, o->verb == VERB_PUT ? "put needs a GROUP and a VALUE: JSON"
                                            : "the reference of the object is missing");
    if (set_reference(p, rest[1]) == 0)
        return -1;
    int r = check_json(o, rest[1], &type);
    if (r < 0 && o->verb != VERB_PUT && type != JSON_OBJECT)
        return wrong(o,
                     "%.200s is not a reference: a reference is the text that put or call --keep printed, from "
                     "cadre: on",
                     rest[1]);
    if (r < 0)
        o->args = xstrdup(rest[1]);
    return r;
}

static bool takes_object(const struct cli_options *o)
{
    return o->verb == VERB_PUT || o->verb == VERB_GET || o->verb == VERB_FREE;
}

// Accepts the names that kubectl takes and prints: "wg/llama", "workergroup.cadre.dev/llama".
static char *without_kind(char *group)
{
    static const char *const kinds[] = {"wg/", "workergroup/", "workergroups/", "workergroup.cadre.dev/",
                                        "workergroups.cadre.dev/"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_starts(group, kinds[i]))
            return group + strlen(kinds[i]);
    return group;
}

static int take_operands(struct parse *p, int n, char **rest)
{
    struct cli_options *o = p->o;
    const cadre_client_request *r = &o->request;
    int max = o->verb == VERB_CALL ? 3 : takes_object(o) ? 2 : o->verb >= VERB_CA ? 0 : 1;
    if (n > max)
        return wrong(o, "unexpected argument %s%s", rest[max],
                     o->verb == VERB_CALL ? ": a method's arguments are one JSON list, such as '[1, 2]'" : "");
    if (max && n == 0 && o->verb != VERB_TOP)
        return wrong(o, "the name of the group is missing");
    if (n)
        o->group = o->verb == VERB_WHY ? rest[0] : without_kind(rest[0]);
    if (o->group && o->verb != VERB_WHY && strchr(o->group, '/'))
        return wrong(o, "GROUP is the name of a WorkerGroup; set its namespace with -n: %s", o->group);
    if (o->server && o->socket)
        return wrong(o, "use only one of --server and --socket");
    if (o->token && o->token_file)
        return wrong(o, "use only one of --token and --token-file");
    if (o->output == OUTPUT_RANKS && r->dispatch && !mode_lists_ranks(mode_of((unsigned)r->dispatch)))
        return wrong(o, "-o ranks is for modes that return one result per rank");
    if (r->no_result && o->output)
        return wrong(o, "--no-reply has no result to print, so no -o");
    if (o->output == OUTPUT_RANKS && r->by_reference)
        return wrong(o, "--keep prints one reference to all results, so no -o ranks");
    if (r->no_result && r->by_reference)
        return wrong(o, "use only one of --no-reply and --keep");
    if (o->verb == VERB_KILL && r->rank < 0)
        return wrong(o, "--rank is missing");
    if (r->rank >= 0 && (r->dispatch || r->execute))
        return wrong(o, "a call to one rank has no --dispatch and no --execute");
    if (takes_object(o))
        return take_object(p, n, rest);
    return o->verb == VERB_CALL ? take_call(p, n, rest) : -1;
}

static int find_verb(int argc, char **argv, struct cli_options *o)
{
    if (argc < 2 || str_eq(argv[1], "--help") || str_eq(argv[1], "help") || str_eq(argv[1], "-h")) {
        fputs(help_of(argc > 2 ? name_of(verb_of(argv[2])) : NULL), argc < 2 ? stderr : stdout);
        return argc < 2 ? CLI_OPTIONS_USAGE : 0;
    }
    o->verb = verb_of(argv[1]);
    if (o->verb != VERB_COUNT)
        return -1;
    fprintf(stderr, "error: unknown command \"%s\"\nSee 'kubectl cadre --help' for usage.\n", argv[1]);
    return CLI_OPTIONS_USAGE;
}

// The options of the verb, for getopt_long(). Their values are the indexes of their rows, after all letters.
static void select_options(enum verb verb, struct option *table, char *letters)
{
    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        const struct choice *c = &choices[i];
        if (!(c->verbs & 1u << verb))
            continue;
        bool takes = !c->no_value && c->kind != FLAG && c->kind != SWITCH;
        *table++ = (struct option){c->name, takes ? required_argument : no_argument, NULL, FIRST_ROW + (int)i};
        if (c->letter)
            *letters++ = c->letter;
        if (c->letter && takes)
            *letters++ = ':';
    }
}

static const struct choice *choice_of(int opt)
{
    for (size_t i = 0; i < ARRAY_LEN(choices); i++)
        if (opt == FIRST_ROW + (int)i || (opt && opt == choices[i].letter))
            return &choices[i];
    return NULL;
}

int cli_options_parse(int argc, char **argv, struct cli_options *ret)
{
    const char *operator_ns = getenv("CADRE_OPERATOR_NAMESPACE");
    *ret = (struct cli_options){.operator_ns = str_empty(operator_ns) ? "cadre-system" : operator_ns, .tail = -1};
    cadre_client_request_init(&ret->request, NULL);
    ret->request.timeout_ms = TIMEOUT_MS;
    int r = find_verb(argc, argv, ret);
    if (r >= 0)
        return r;
    struct option table[ARRAY_LEN(choices) + 1] = {0};
    char letters[2 * ARRAY_LEN(choices) + 1] = "";
    select_options(ret->verb, table, letters);
    struct parse p = {.o = ret, .list = BUF_INIT(ARGS_MAX), .argv = argv + 1};
    opterr = 0;
    optind = 0; // getopt begins at the start, also the second time
    for (int opt; r < 0 && (opt = getopt_long(argc - 1, argv + 1, letters, table, NULL)) != -1;) {
        const struct choice *c = choice_of(opt);
        r = c ? apply(&p, c, optarg) : unknown(&p);
    }
    if (r < 0)
        r = take_operands(&p, argc - 1 - optind, argv + 1 + optind);
    if (ret->args)
        ret->request.args = (cadre_client_json){ret->args, strlen(ret->args)};
    buf_done(&p.list);
    return r;
}

void cli_options_done(struct cli_options *o)
{
    free(o->args);
    for (size_t i = 0; i < o->n_kubectl; i++)
        free(o->kubectl[i]);
}
