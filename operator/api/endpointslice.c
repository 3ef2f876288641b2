// SPDX-License-Identifier: Apache-2.0
#include "operator/api/endpointslice.h"

#include "common/base/str.h"
#include "operator/api/json_encode.h"
#include "operator/api/json_table.h"
#include "operator/api/meta.h"

#include <string.h>

struct endpoint_item {
    const char **addresses;
    size_t n_addresses;
    bool ready, serving;
    const char *hostname, *node, *kind, *ns, *pod, *uid;
};
struct port_item {
    const char *name, *protocol;
    int32_t port;
};
struct slice_view {
    struct endpoint_item *endpoints;
    size_t n_endpoints;
    struct port_item *ports;
    size_t n_ports;
};
#define ITEM(member) offsetof(struct endpoint_item, member)
#define VIEW(member) offsetof(struct slice_view, member)
#define PORT(member) offsetof(struct port_item, member)

// clang-format off
static const struct json_table conditions_table = JSON_TABLE(struct endpoint_item,
    {"ready", J_BOOL, ITEM(ready)},
    {"serving", J_BOOL, ITEM(serving)});
static const struct json_table target_table = JSON_TABLE(struct endpoint_item,
    {"kind", J_STRING, ITEM(kind)},
    {"namespace", J_STRING, ITEM(ns)},
    {"name", J_STRING, ITEM(pod)},
    {"uid", J_STRING, ITEM(uid)});
static const struct json_table endpoint_table = JSON_TABLE(struct endpoint_item,
    {"addresses", J_STRINGS, ITEM(addresses), .offset_n = ITEM(n_addresses)},
    {"conditions", J_OBJECT, .table = &conditions_table},
    {"hostname", J_STRING, ITEM(hostname)},
    {"nodeName", J_STRING, ITEM(node), .left_out = true},
    {"targetRef", J_OBJECT, .table = &target_table});
static const struct json_table port_table = JSON_TABLE(struct port_item,
    {"name", J_STRING, PORT(name)},
    {"protocol", J_STRING, PORT(protocol)},
    {"port", J_I32, PORT(port)});
static const struct json_table slice_table = JSON_TABLE(struct slice_view,
    {"endpoints", J_LIST, VIEW(endpoints), .offset_n = VIEW(n_endpoints), .table = &endpoint_table,
     .keeps_empty = true},
    {"ports", J_LIST, VIEW(ports), .offset_n = VIEW(n_ports), .table = &port_table});
// clang-format on

// Keeps only a hash of the slice, because its thousands of addresses are only compared.
int endpointslice_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    struct endpointslice *s = (struct endpointslice *)o;
    struct slice_view v = {0};
    int r = json_decode(&slice_table, root, "", &v, scratch, err);
    if (r < 0)
        return r;
    struct endpoint *endpoints = arena_array(scratch, v.n_endpoints, sizeof *endpoints);
    for (size_t i = 0; i < v.n_endpoints; i++) {
        const struct endpoint_item *from = &v.endpoints[i];
        endpoints[i] = (struct endpoint){
            .ip = from->n_addresses == 1 ? from->addresses[0] : NULL, .hostname = from->hostname, .uid = from->uid};
    }
    s->n_endpoints = v.n_endpoints;
    s->hash = endpointslice_hash(endpoints, v.n_endpoints, v.n_ports == 1 ? v.ports[0].port : 0);
    return 0;
}

static uint64_t mix(uint64_t hash, const char *s)
{
    return (hash ^ (s ? str_hash(s, strlen(s)) : 0)) * 0x100000001b3u; // as FNV does with bytes
}

uint64_t endpointslice_hash(const struct endpoint *endpoints, size_t n, int32_t port)
{
    uint64_t hash = (uint64_t)port + 1;
    for (size_t i = 0; i < n; i++) {
        hash = mix(hash, endpoints[i].ip);
        hash = mix(hash, endpoints[i].hostname);
        hash = mix(hash, endpoints[i].uid);
    }
    return hash;
}

static void content_write(struct json_writer *w, const struct endpointslice_spec *s, struct arena *a)
{
    struct port_item port = {"rendezvous", "TCP", s->port};
    struct slice_view v = {arena_array(a, s->n_endpoints, sizeof *v.endpoints), s->n_endpoints, &port, 1};
    for (size_t i = 0; i < s->n_endpoints; i++) {
        const struct endpoint *e = &s->endpoints[i];
        const char **address = arena_new(a, const char *);
        *address = e->ip;
        v.endpoints[i] = (struct endpoint_item){
            address, 1, true, true, e->hostname, str_empty(e->node) ? NULL : e->node, "Pod", s->ns, e->pod, e->uid};
    }
    json_encode_members(&slice_table, &v, w);
}

const char *endpointslice_encode(const struct endpointslice_spec *s, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    head_write(&w, KIND_ENDPOINTSLICE,
               &(struct meta){.name = s->name, .ns = s->ns, .labels = s->labels, .owner = s->owner});
    writer_str(&w, "addressType", s->ipv6 ? "IPv6" : "IPv4");
    content_write(&w, s, a);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

const char *endpointslice_patch(const struct endpointslice_spec *s, const char *resource_version, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_print(&w, "metadata", "{'resourceVersion':%s}", resource_version);
    content_write(&w, s, a);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
