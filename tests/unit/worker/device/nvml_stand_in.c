// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libnvidia-ml.so.1 as far as worker/device uses it, over a file that a test writes and may change at any
// time. NVML_STAND_IN names it:
//
//   gpu UUID NAME USED TEMPERATURE ECC XID STATE [CORRECTED [MILLIWATTS]]
//                                                   for each GPU; STATE: ok, lost, no-ecc, no-handle; without
//                                                   MILLIWATTS it does not tell its power
//   init CODE                                       nvmlInit_v2() fails with this
//   hang                                            every call waits until the line is gone
//
// With OLD_DRIVER it is one that has neither events nor power.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, LOST = 15, UNKNOWN = 999 };
enum { GPUS = 16, TEXT = 64, LOOK_MS = 5, EVENT_XID = 8 };

struct gpu {
    char uuid[TEXT], name[TEXT], state[TEXT];
    unsigned long long used, ecc, xid, corrected;
    unsigned temperature, milliwatts; // 0 milliwatts = it does not tell
};

struct world {
    struct gpu gpus[GPUS];
    unsigned n;
    int init;
    bool hangs;
};

struct memory {
    unsigned long long total, free, used;
};
struct utilization {
    unsigned gpu, memory;
};
struct event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

static unsigned long long told[GPUS]; // the last Xid of each that came as an event

static unsigned long long number(char **rest)
{
    const char *word = strsep(rest, " \n");
    return word ? strtoull(word, NULL, 10) : 0;
}

static void word(char **rest, char ret[TEXT])
{
    const char *text = strsep(rest, " \n");
    snprintf(ret, TEXT, "%s", text ? text : "");
}

static void read_line(struct world *w, char *line)
{
    char kind[TEXT];
    word(&line, kind);
    if (strcmp(kind, "gpu") == 0 && w->n < GPUS) {
        struct gpu *g = &w->gpus[w->n++];
        word(&line, g->uuid);
        word(&line, g->name);
        g->used = number(&line);
        g->temperature = (unsigned)number(&line);
        g->ecc = number(&line);
        g->xid = number(&line);
        word(&line, g->state);
        g->corrected = number(&line);
        g->milliwatts = (unsigned)number(&line);
    } else if (strcmp(kind, "init") == 0) {
        w->init = (int)number(&line);
    } else if (strcmp(kind, "hang") == 0) {
        w->hangs = true;
    }
}

static void read_once(struct world *w)
{
    char line[512];
    const char *path = getenv("NVML_STAND_IN");
    FILE *f = path ? fopen(path, "re") : NULL;
    memset(w, 0, sizeof *w);
    while (f && fgets(line, sizeof line, f))
        read_line(w, line);
    if (f)
        fclose(f);
}

static void look(struct world *w)
{
    for (read_once(w); w->hangs; read_once(w))
        usleep(LOOK_MS * 1000);
}

static int of(void *device, struct gpu *ret)
{
    struct world w;
    size_t i = (size_t)device - 1;
    look(&w);
    if (i >= w.n)
        return NOT_FOUND;
    *ret = w.gpus[i];
    return strcmp(ret->state, "lost") == 0 ? LOST : SUCCESS;
}

#define OFFERED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

OFFERED int nvmlInit_v2(void)
{
    struct world w;
    look(&w);
    for (unsigned i = 0; i < w.n; i++)
        told[i] = w.gpus[i].xid;
    return w.init;
}

OFFERED int nvmlShutdown(void)
{
    return SUCCESS;
}

OFFERED const char *nvmlErrorString(int code)
{
    return code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : code == LOST ? "GPU is lost" : "Unknown Error";
}

OFFERED int nvmlDeviceGetCount_v2(unsigned *n)
{
    struct world w;
    look(&w);
    *n = w.n;
    return SUCCESS;
}

OFFERED int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **ret)
{
    struct gpu g;
    int r = of((void *)(size_t)(i + 1), &g);
    if (strcmp(g.state, "no-handle") == 0)
        return UNKNOWN;
    *ret = (void *)(size_t)(i + 1);
    return r;
}

OFFERED int nvmlDeviceGetUUID(void *d, char *ret, unsigned size)
{
    struct gpu g;
    int r = of(d, &g);
    snprintf(ret, size, "%s", g.uuid);
    return r;
}

OFFERED int nvmlDeviceGetName(void *d, char *ret, unsigned size)
{
    struct gpu g;
    int r = of(d, &g);
    snprintf(ret, size, "%s", g.name);
    return r;
}

OFFERED int nvmlDeviceGetMemoryInfo(void *d, struct memory *ret)
{
    struct gpu g;
    int r = of(d, &g);
    *ret = (struct memory){1000, 1000 - g.used, g.used};
    return r;
}

OFFERED int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *ret)
{
    struct gpu g;
    int r = of(d, &g);
    (void)sensor;
    *ret = g.temperature;
    return r;
}

OFFERED int nvmlDeviceGetUtilizationRates(void *d, struct utilization *ret)
{
    struct gpu g;
    *ret = (struct utilization){7, 3};
    return of(d, &g);
}

OFFERED int nvmlDeviceGetTotalEccErrors(void *d, int kind, int counter, unsigned long long *ret)
{
    struct gpu g;
    int r = of(d, &g);
    (void)counter;
    *ret = kind ? g.ecc : g.corrected;
    return r == SUCCESS && strcmp(g.state, "no-ecc") == 0 ? NOT_SUPPORTED : r;
}

#ifndef OLD_DRIVER
OFFERED int nvmlDeviceGetPowerUsage(void *d, unsigned *ret)
{
    struct gpu g;
    int r = of(d, &g);
    *ret = g.milliwatts;
    return r == SUCCESS && !g.milliwatts ? NOT_SUPPORTED : r;
}

OFFERED int nvmlEventSetCreate(void **ret)
{
    *ret = told;
    return SUCCESS;
}

OFFERED int nvmlEventSetFree(void *set)
{
    (void)set;
    return SUCCESS;
}

OFFERED int nvmlDeviceRegisterEvents(void *d, unsigned long long types, void *set)
{
    (void)d, (void)set;
    return types == EVENT_XID ? SUCCESS : NOT_SUPPORTED;
}

OFFERED int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned ms)
{
    struct world w;
    (void)set;
    for (unsigned waited = 0; waited <= ms; waited += LOOK_MS, usleep(LOOK_MS * 1000)) {
        look(&w);
        for (unsigned i = 0; i < w.n; i++)
            if (w.gpus[i].xid != told[i]) {
                told[i] = w.gpus[i].xid;
                *ret = (struct event){(void *)(size_t)(i + 1), EVENT_XID, told[i], 0, 0};
                return SUCCESS;
            }
    }
    return TIMEOUT;
}
#endif
