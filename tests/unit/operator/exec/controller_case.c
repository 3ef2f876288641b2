// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/exec/controller_case.h"

#include <stdio.h>

void controller_case_init(struct controller_case *c)
{
    *c = (struct controller_case){.loop = loop_new(), .metrics = metrics_new()};
    c->client = stub_client_new(c->loop);
    stores_new(c->stores);
    c->recorder = recorder_new(c->loop, c->client, "cadre.dev/operator", "test", c->metrics);
}

void controller_case_start(struct controller_case *c, struct agents *agents, struct router *router)
{
    c->controller = group_controller_new(c->loop, &(struct group_controller_options){
                                                      .client = c->client,
                                                      .stores = c->stores,
                                                      .agents = agents,
                                                      .router = router,
                                                      .recorder = c->recorder,
                                                      .metrics = c->metrics,
                                                      .clock = loop_clock(c->loop),
                                                      .seed = 1,
                                                  });
    controller_case_put_node(c, "n1");
}

void controller_case_stop(struct controller_case *c)
{
    group_controller_stop(c->controller);
    stub_client_cancel(c->client);
    group_controller_free(c->controller);
}

void controller_case_done(struct controller_case *c)
{
    recorder_free(c->recorder);
    stores_free(c->stores);
    metrics_free(c->metrics);
    stub_client_free(c->client);
    loop_free(c->loop);
}

void controller_case_put_node(struct controller_case *c, const char *name)
{
    char json[512];
    snprintf(
        json, sizeof json,
        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"1\"},\"status\":{\"allocatable\":{"
        "\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":\"9\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
        name, name);
    store_put_json(c->stores[KIND_NODE], json);
}
