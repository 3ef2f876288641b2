// SPDX-License-Identifier: Apache-2.0
// cadre-worker: loads the module, creates the object or the objects of all roles, and serves until it is told to stop.
#include "worker/host/crash.h"
#include "worker/host/description.h"
#include "worker/host/host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

enum { KEPT_BLOCK = 32 << 20, KEPT_BYTES = 64 << 20 };

static int load(struct host *h, struct err *err)
{
    int r = module_load(h->options.module, &h->module, err);
    if (r < 0)
        return r;
    return roles_read(&h->roles, &h->module, &h->worker, h->options.class, h->options.init, h->options.roles, err);
}

static void describe(const struct host *h)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    description_write(&w, &h->module, &h->roles);
    writer_object_end(&w);
    puts(buf_str(&w.buf));
}

int main(int argc, char **argv)
{
    struct host h = {.exit_code = 0};
    mem_keep(KEPT_BLOCK, KEPT_BYTES, KEPT_BLOCK / 32);
    struct err err = ERR_INIT;
    setvbuf(stdout, NULL, _IOLBF, 0); // stdout is a pipe to the agent, and people want to see lines at once
    signal(SIGPIPE, SIG_IGN);
    int code = host_options_parse(argc, argv, &h.options);
    if (code < 0 && process_from_env(&h.worker, &err) < 0) {
        fprintf(stderr, "cadre-worker: %s\n", err.msg);
        code = EX_USAGE;
    }
    if (code < 0) {
        crash_install(h.worker.rank);
        if (load(&h, &err) < 0) {
            host_say(&h, "", err.msg);
            code = HOST_EXIT_MODULE;
        } else if (h.options.describe) {
            describe(&h);
            code = 0;
        } else {
            code = host_run(&h);
        }
        roles_done(&h.roles);
    }
    free(h.options.ticket);
    return code;
}
