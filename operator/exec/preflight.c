// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/preflight.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

#define NO_SUCH_NAME "cadre-preflight-check"

static const struct probe {
    const char *what;
    struct kube_request request;
    bool everywhere;    // read in all namespaces, also in a namespaced install
    bool missing_is_ok; // the name does not exist: 404 proves the right to ask
    const char *advice; // NULL: look at the rights that the chart gives
} probes[] = {
    {"WorkerGroups are served",
     {.verb = VERB_LIST, .kind = KIND_WORKERGROUP, .limit = 1},
     .advice = "install the CRDs: kubectl apply -f crds/"},
    {"PlacementGroups are served",
     {.verb = VERB_LIST, .kind = KIND_PLACEMENTGROUP, .limit = 1},
     .advice = "install the CRDs: kubectl apply -f crds/"},
    {"nodes can be read", {.verb = VERB_LIST, .kind = KIND_NODE, .limit = 1}, .everywhere = true},
    {"pods can be read", {.verb = VERB_LIST, .kind = KIND_POD, .limit = 1}, .everywhere = true},
    {"services can be read", {.verb = VERB_LIST, .kind = KIND_SERVICE, .limit = 1}},
    {"pods can be created",
     {.verb = VERB_CREATE,
      .kind = KIND_POD,
      .dry_run = true,
      .body = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" NO_SUCH_NAME "\"},\"spec\":{"
              "\"securityContext\":{\"runAsNonRoot\":true,\"runAsUser\":65532,\"seccompProfile\":{\"type\":"
              "\"RuntimeDefault\"}},\"containers\":[{\"name\":\"check\",\"image\":\"none\",\"resources\":{\"requests\":"
              "{\"cpu\":\"1m\",\"memory\":\"1Mi\"},\"limits\":{\"cpu\":\"1m\",\"memory\":\"1Mi\"}},"
              "\"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}}]}}"}},
    {"pods can be deleted",
     {.verb = VERB_DELETE, .kind = KIND_POD, .name = NO_SUCH_NAME, .grace_s = -1},
     .missing_is_ok = true},
    {"services can be created",
     {.verb = VERB_CREATE,
      .kind = KIND_SERVICE,
      .dry_run = true,
      .body = "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"" NO_SUCH_NAME "\"},\"spec\":{"
              "\"clusterIP\":\"None\",\"ports\":[{\"port\":1}]}}"}},
    {"endpointslices can be read", {.verb = VERB_LIST, .kind = KIND_ENDPOINTSLICE, .limit = 1}},
    {"endpointslices can be created",
     {.verb = VERB_CREATE,
      .kind = KIND_ENDPOINTSLICE,
      .dry_run = true,
      .body =
          "{\"apiVersion\":\"discovery.k8s.io/v1\",\"kind\":\"EndpointSlice\",\"metadata\":{\"name\":\"" NO_SUCH_NAME
          "\"},\"addressType\":\"IPv4\",\"endpoints\":[]}"}},
    {"endpointslices can be changed",
     {.verb = VERB_PATCH_MERGE, .kind = KIND_ENDPOINTSLICE, .name = NO_SUCH_NAME, .body = "{}"},
     .missing_is_ok = true},
    {"the status of WorkerGroups can be written",
     {.verb = VERB_PATCH_MERGE, .kind = KIND_WORKERGROUP, .name = NO_SUCH_NAME, .subresource = "status", .body = "{}"},
     .missing_is_ok = true},
    {"tokens of clients can be reviewed",
     {.verb = VERB_CREATE,
      .kind = KIND_TOKEN_REVIEW,
      .body = "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{\"token\":\"none\"}}"}},
    {"rights of clients can be reviewed",
     {.verb = VERB_CREATE,
      .kind = KIND_SUBJECT_ACCESS_REVIEW,
      .body = "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{\"user\":"
              "\"nobody\",\"nonResourceAttributes\":{\"path\":\"/\",\"verb\":\"get\"}}}"}},
    {"the Secret with the keys can be read", {.verb = VERB_GET, .kind = KIND_SECRET}, .missing_is_ok = true},
    {"the Secret with the keys can be watched", {.verb = VERB_LIST, .kind = KIND_SECRET}},
    {"the Secret with the keys can be written",
     {.verb = VERB_PATCH_MERGE, .kind = KIND_SECRET, .dry_run = true, .body = "{}"},
     .missing_is_ok = true},
    {"the Secret with the keys can be created again",
     {.verb = VERB_CREATE, .kind = KIND_SELF_SUBJECT_ACCESS_REVIEW},
     .advice = "its Role needs create on that name, see the chart's rbac"},
};

struct preflight {
    struct loop *loop;
    struct kube_client *client;
    const struct preflight_options *options;
    const char *ns; // the namespace of namespaced probes
    bool all;       // lists of namespaced kinds include all namespaces
    size_t next;
    int failed;
    bool done;
};

static void ask(void *ctx);

// Reads the verdict of a review. Other answers prove the right by their success.
static int check_review(const struct kube_response *response, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *root = NULL;
    int r = json_parse(response->body, response->len, NULL, &a, &root, err);
    if (r == 0) {
        const struct json *allowed = json_get(json_get(root, "status"), "allowed");
        if (!allowed || strncmp(allowed->text, "true", allowed->len) != 0)
            r = err_set(err, ERR_FORBIDDEN, "the API server says that these credentials may not");
    }
    arena_done(&a);
    return r;
}

static void on_answer(void *ctx, const struct kube_response *response, const struct err *answer)
{
    struct preflight *p = ctx;
    const struct probe *probe = &probes[p->next++];
    struct err err = *answer;
    if (!err.code && probe->request.kind == KIND_SELF_SUBJECT_ACCESS_REVIEW)
        check_review(response, &err);
    if (!err.code || (probe->missing_is_ok && err.code == ERR_NOT_FOUND)) {
        printf("ok    %s\n", probe->what);
    } else {
        printf("FAIL  %s: %s (%s)\n", probe->what, err.msg, probe->advice ? probe->advice : "see the chart's rbac");
        p->failed++;
    }
    p->done = p->next == ARRAY_LEN(probes);
    if (!p->done)
        loop_defer(p->loop, ask, p);
}

// Returns the review that asks whether these credentials may create the Secret by its name.
static const char *review_of_secret(const struct preflight *p, struct arena *a)
{
    const struct kind_info *k = kind_info(KIND_SELF_SUBJECT_ACCESS_REVIEW);
    return json_print(a,
                      "{'apiVersion':%s,'kind':%s,'spec':{'resourceAttributes':{'namespace':%s,'verb':'create',"
                      "'resource':%s,'name':%s}}}",
                      k->api_version, k->kind, p->options->home, kind_info(KIND_SECRET)->plural,
                      p->options->keys_secret);
}

static void ask(void *ctx)
{
    struct preflight *p = ctx;
    struct arena a = ARENA_INIT;
    struct kube_request r = probes[p->next].request;
    bool list = r.verb == VERB_LIST;
    if (r.kind == KIND_SELF_SUBJECT_ACCESS_REVIEW) {
        r.body = review_of_secret(p, &a);
    } else if (r.kind == KIND_SECRET) {
        r.ns = p->options->home;
        if (list)
            r.field_selector = arena_printf(&a, "metadata.name=%s", p->options->keys_secret);
        else
            r.name = p->options->keys_secret;
    } else if (kind_info(r.kind)->namespaced && !(list && (p->all || probes[p->next].everywhere)))
        r.ns = p->ns;
    kube_send(p->client, &r, 0, on_answer, p);
    arena_done(&a);
}

int preflight_run(struct loop *loop, struct kube_client *client, const struct kube_config *config,
                  const struct preflight_options *options)
{
    bool all = str_empty(options->ns);
    struct preflight p = {
        .loop = loop, .client = client, .options = options, .ns = all ? config->ns : options->ns, .all = all};
    printf("API server %s, credentials of %s\n", config->server, config->source);
    ask(&p);
    while (!p.done)
        loop_run_once(loop, 1000);
    printf("%d passed, %d failed\n", (int)ARRAY_LEN(probes) - p.failed, p.failed);
    return p.failed ? 1 : 0;
}
