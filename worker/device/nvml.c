// SPDX-License-Identifier: Apache-2.0
#include "worker/device/nvml.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/device/symbols.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// From the interface of the driver, which never changes for a function of a given name.
enum { NVML_SUCCESS = 0, NVML_TIMEOUT = 10, NVML_GPU_IS_LOST = 15 };
enum { NVML_TEMPERATURE_GPU = 0, NVML_CORRECTED = 0, NVML_UNCORRECTED = 1, NVML_VOLATILE = 0 };
enum { NVML_EVENT_XID = 8 };
enum { XID_OFF_THE_BUS = 79 };

typedef void *nvml_device;
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_utilization {
    unsigned gpu, memory;
};
struct nvml_event {
    nvml_device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

struct nvml_library {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int code);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, nvml_device *ret);
    int (*uuid)(nvml_device d, char *ret, unsigned size);
    int (*name)(nvml_device d, char *ret, unsigned size);
    int (*memory)(nvml_device d, struct nvml_memory *ret);
    int (*temperature)(nvml_device d, int sensor, unsigned *ret);
    int (*utilization)(nvml_device d, struct nvml_utilization *ret);
    int (*power)(nvml_device d, unsigned *ret);
    int (*ecc)(nvml_device d, int kind, int counter, unsigned long long *ret);
    int (*events_new)(void **ret);
    int (*events_free)(void *set);
    int (*events_of)(nvml_device d, unsigned long long types, void *set);
    int (*events_wait)(void *set, struct nvml_event *ret, unsigned ms);
};

static const struct symbol symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml_library, init)},
    {"nvmlShutdown", offsetof(struct nvml_library, shutdown)},
    {"nvmlErrorString", offsetof(struct nvml_library, error)},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml_library, count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml_library, by_index)},
    {"nvmlDeviceGetUUID", offsetof(struct nvml_library, uuid)},
    {"nvmlDeviceGetName", offsetof(struct nvml_library, name)},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml_library, memory)},
    {"nvmlDeviceGetTemperature", offsetof(struct nvml_library, temperature), .optional = true},
    {"nvmlDeviceGetUtilizationRates", offsetof(struct nvml_library, utilization), .optional = true},
    {"nvmlDeviceGetPowerUsage", offsetof(struct nvml_library, power), .optional = true},
    {"nvmlDeviceGetTotalEccErrors", offsetof(struct nvml_library, ecc), .optional = true},
    {"nvmlEventSetCreate", offsetof(struct nvml_library, events_new), .optional = true},
    {"nvmlEventSetFree", offsetof(struct nvml_library, events_free), .optional = true},
    {"nvmlDeviceRegisterEvents", offsetof(struct nvml_library, events_of), .optional = true},
    {"nvmlEventSetWait_v2", offsetof(struct nvml_library, events_wait), .optional = true},
};

struct nvml_gpu {
    nvml_device handle;
    char uuid[GPU_TEXT_MAX + 1], name[GPU_TEXT_MAX + 1];
};

struct nvml {
    void *object;
    struct nvml_library f;
    void *events; // NULL = the driver has none
    size_t n;
    struct nvml_gpu devices[GPU_LIST_MAX];
    struct gpu gpus[GPU_LIST_MAX];
};

static int load(struct nvml *n, struct err *err)
{
    n->object = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->object)
        return err_set(err, ERR_UNAVAILABLE, "there is no NVIDIA driver here: %s", dlerror());
    const char *missing = symbols_find(n->object, symbols, ARRAY_LEN(symbols), &n->f);
    return missing ? err_set(err, ERR_UNAVAILABLE,
                             "NVIDIA's libnvidia-ml.so.1 has no %s: its driver is too old: update the node's", missing)
                   : 0;
}

static void find_device(struct nvml *n, unsigned index)
{
    struct nvml_gpu *d = &n->devices[n->n];
    struct gpu *g = &n->gpus[n->n];
    int r = n->f.by_index(index, &d->handle);
    if (r == NVML_SUCCESS)
        r = n->f.uuid(d->handle, d->uuid, sizeof d->uuid);
    if (r == NVML_SUCCESS)
        r = n->f.name(d->handle, d->name, sizeof d->name);
    if (r != NVML_SUCCESS) // only its index is known
        snprintf(d->uuid, sizeof d->uuid, "unknown-%u", index);
    if (str_empty(d->name))
        snprintf(d->name, sizeof d->name, "unknown");
    *g = (struct gpu){.index = (int32_t)index, .uuid = d->uuid, .name = d->name, .lost = r == NVML_GPU_IS_LOST};
    for (int v = 0; v < GPU_VALUES; v++)
        g->values[v] = v == GPU_XID ? 0 : GPU_UNKNOWN;
    n->n++;
}

static void watch(struct nvml *n)
{
    if (!n->f.events_new || !n->f.events_free || !n->f.events_of || !n->f.events_wait ||
        n->f.events_new(&n->events) != NVML_SUCCESS)
        return;
    for (size_t i = 0; i < n->n; i++)
        if (n->devices[i].handle)
            (void)n->f.events_of(n->devices[i].handle, NVML_EVENT_XID, n->events); // not all GPUs have them
}

struct nvml *nvml_open(struct err *err)
{
    struct nvml *n = xcalloc(1, sizeof *n);
    unsigned count = 0;
    int r = load(n, err) < 0 ? NVML_SUCCESS : n->f.init();
    if (!err->code && r == NVML_SUCCESS)
        r = n->f.count(&count);
    if (r != NVML_SUCCESS)
        err_set(err, ERR_UNAVAILABLE, "the NVIDIA driver does not answer: %s", n->f.error(r));
    if (err->code < 0) {
        nvml_close(n);
        return NULL;
    }
    for (unsigned i = 0; i < MIN(count, (unsigned)GPU_LIST_MAX); i++)
        find_device(n, i);
    watch(n);
    return n;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    if (n->events)
        n->f.events_free(n->events);
    if (n->f.shutdown)
        n->f.shutdown();
    if (n->object)
        dlclose(n->object);
    free(n);
}

static void note(struct gpu *g, int r, enum gpu_value which, uint64_t value)
{
    g->values[which] = r == NVML_SUCCESS ? (int64_t)MIN(value, (uint64_t)INT64_MAX) : GPU_UNKNOWN;
    g->lost = g->lost || r == NVML_GPU_IS_LOST; // a GPU that fell off the bus only comes back when the node is reset
}

static void read_counters(struct nvml *n, nvml_device d, struct gpu *g)
{
    static const struct {
        int kind;
        enum gpu_value value;
    } kinds[] = {{NVML_CORRECTED, GPU_ECC_CORRECTED}, {NVML_UNCORRECTED, GPU_ECC_UNCORRECTED}};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        unsigned long long errors = 0;
        int r = n->f.ecc ? n->f.ecc(d, kinds[i].kind, NVML_VOLATILE, &errors) : -1;
        note(g, r, kinds[i].value, errors);
    }
}

static void read_device(struct nvml *n, nvml_device d, struct gpu *g)
{
    struct nvml_memory memory = {0};
    struct nvml_utilization busy = {0};
    unsigned celsius = 0, milliwatts = 0;
    int r = n->f.memory(d, &memory);
    note(g, r, GPU_MEMORY_BYTES, memory.total);
    note(g, r, GPU_USED_BYTES, memory.used);
    r = n->f.temperature ? n->f.temperature(d, NVML_TEMPERATURE_GPU, &celsius) : -1;
    note(g, r, GPU_TEMPERATURE, celsius);
    r = n->f.utilization ? n->f.utilization(d, &busy) : -1;
    note(g, r, GPU_UTILIZATION, busy.gpu);
    r = n->f.power ? n->f.power(d, &milliwatts) : -1;
    note(g, r, GPU_POWER, milliwatts);
    read_counters(n, d, g);
}

const struct gpu *nvml_read(struct nvml *n, size_t *ret_n)
{
    for (size_t i = 0; i < n->n; i++)
        if (n->devices[i].handle)
            read_device(n, n->devices[i].handle, &n->gpus[i]);
    *ret_n = n->n;
    return n->gpus;
}

static void on_xid(struct nvml *n, const struct nvml_event *e)
{
    for (size_t i = 0; i < n->n; i++)
        if (n->devices[i].handle == e->device) {
            n->gpus[i].values[GPU_XID] = (int64_t)e->data;
            n->gpus[i].lost = n->gpus[i].lost || e->data == XID_OFF_THE_BUS;
        }
}

bool nvml_wait(struct nvml *n, int ms)
{
    struct nvml_event e = {0};
    int r = n->events ? n->f.events_wait(n->events, &e, (unsigned)ms) : -1;
    if (r == NVML_SUCCESS && e.type == NVML_EVENT_XID)
        on_xid(n, &e);
    if (r != NVML_SUCCESS && r != NVML_TIMEOUT)
        poll(NULL, 0, ms); // without events, the values show the trouble
    return r == NVML_SUCCESS;
}
