// SPDX-License-Identifier: Apache-2.0
// cadre-gpus tells the agent about the GPUs of its pod. The agent runs in any image, so it links no library, and it
// must not stand still when the driver does. That is why this is a program of its own.
//
// It prints a line of JSON at once, whenever the driver reports trouble, and at least every --interval-ms:
//   {"gpus":[...]}         common/wire/gpu.h
//   {"error":"..."}        there are no GPUs, and the program ends
#include "common/base/str.h"
#include "worker/device/nvml.h"

#include <stdio.h>
#include <unistd.h>

enum { INTERVAL_MS = 15 * 1000, INTERVAL_MIN_MS = 10, INTERVAL_MAX_MS = 600 * 1000 };

static bool print(struct json_writer *w)
{
    writer_object_end(w);
    buf_putc(&w->buf, '\n');
    bool written = fwrite(buf_str(&w->buf), 1, w->buf.len, stdout) == w->buf.len && fflush(stdout) == 0;
    writer_done(w);
    return written;
}

static bool print_gpus(struct nvml *n)
{
    struct json_writer w = WRITER_INIT;
    size_t count;
    const struct gpu *gpus = nvml_read(n, &count);
    writer_object(&w, NULL);
    writer_list(&w, "gpus");
    for (size_t i = 0; i < count; i++)
        gpu_write(&w, &gpus[i]);
    writer_list_end(&w);
    return print(&w);
}

static void print_error(const struct err *err)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_str(&w, "error", err->msg);
    print(&w);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    int64_t interval_ms = INTERVAL_MS;
    if (argc == 3 && str_eq(argv[1], "--interval-ms") && str_to_i64(argv[2], &interval_ms) &&
        interval_ms >= INTERVAL_MIN_MS && interval_ms <= INTERVAL_MAX_MS)
        argc = 1;
    if (argc != 1) {
        fprintf(stderr, "cadre-gpus: error: usage: cadre-gpus [--interval-ms N]; N from %d to %d\n", INTERVAL_MIN_MS,
                INTERVAL_MAX_MS);
        return 2;
    }
    struct nvml *n = nvml_open(&err);
    if (!n)
        print_error(&err);
    while (n && print_gpus(n)) // until the agent has closed the pipe
        nvml_wait(n, (int)interval_ms);
    nvml_close(n);
    return 0;
}
