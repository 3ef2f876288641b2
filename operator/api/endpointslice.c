// SPDX-License-Identifier: Apache-2.0
#include "operator/api/endpointslice.h"

#include "common/base/str.h"
#include "operator/api/tables.h"

#include <string.h>

struct endpoint_item {
    const char **addresses;
    size_t n_addresses;
    const char *hostname, *uid;
};
struct port_item {
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

static const struct json_field target_fields[] = {
    {"uid", J_STRING, ITEM(uid)},
};
static const struct json_table target_table = JSON_TABLE(struct endpoint_item, target_fields);
static const struct json_field endpoint_fields[] = {
    {"addresses", J_STRINGS, ITEM(addresses), .offset_n = ITEM(n_addresses)},
    {"hostname", J_STRING, ITEM(hostname)},
    {"targetRef", J_OBJECT, .table = &target_table},
};
static const struct json_table endpoint_table = JSON_TABLE(struct endpoint_item, endpoint_fields);
static const struct json_field port_fields[] = {
    {"port", J_I32, offsetof(struct port_item, port)},
};
static const struct json_table port_table = JSON_TABLE(struct port_item, port_fields);
static const struct json_field slice_fields[] = {
    {"endpoints", J_LIST, VIEW(endpoints), .offset_n = VIEW(n_endpoints), .table = &endpoint_table},
    {"ports", J_LIST, VIEW(ports), .offset_n = VIEW(n_ports), .table = &port_table},
};
static const struct json_table slice_table = JSON_TABLE(struct slice_view, slice_fields);

// Of each slice a number is kept: addresses by the thousand would only be there to be compared.
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

static void endpoint_write(struct json_writer *w, const struct endpoint *e, const char *ns)
{
    writer_object(w, NULL);
    writer_list(w, "addresses");
    writer_str(w, NULL, e->ip);
    writer_list_end(w);
    writer_object(w, "conditions");
    writer_bool(w, "ready", true);
    writer_bool(w, "serving", true);
    writer_object_end(w);
    writer_str(w, "hostname", e->hostname);
    writer_str_set(w, "nodeName", e->node);
    writer_object(w, "targetRef");
    writer_str(w, "kind", "Pod");
    writer_str(w, "namespace", ns);
    writer_str(w, "name", e->pod);
    writer_str(w, "uid", e->uid);
    writer_object_end(w);
    writer_object_end(w);
}

static void content_write(struct json_writer *w, const struct endpointslice_spec *s)
{
    writer_list(w, "endpoints");
    for (size_t i = 0; i < s->n_endpoints; i++)
        endpoint_write(w, &s->endpoints[i], s->ns);
    writer_list_end(w);
    writer_list(w, "ports");
    writer_object(w, NULL);
    writer_str(w, "name", "rendezvous");
    writer_str(w, "protocol", "TCP");
    writer_i64(w, "port", s->port);
    writer_object_end(w);
    writer_list_end(w);
}

const char *endpointslice_encode(const struct endpointslice_spec *s, struct arena *a)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    head_write(&w, KIND_ENDPOINTSLICE,
               &(struct meta){.name = s->name, .ns = s->ns, .labels = s->labels, .owner = s->owner});
    writer_str(&w, "addressType", s->ipv6 ? "IPv6" : "IPv4");
    content_write(&w, s);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

const char *endpointslice_patch(const struct endpointslice_spec *s, const char *resource_version, struct arena *a)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_object(&w, "metadata");
    writer_str(&w, "resourceVersion", resource_version);
    writer_object_end(&w);
    content_write(&w, s);
    writer_object_end(&w);
    return writer_finish(&w, a);
}
