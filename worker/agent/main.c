// SPDX-License-Identifier: Apache-2.0
// cadre-agent: builds the parts, turns the loop, takes the parts down in order.
#include "common/base/mem.h"
#include "worker/agent/agent.h"
#include "worker/agent/install.h"
#include "worker/agent/options.h"
#include "worker/agent/standalone.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_CANNOT = 1, TURN_MS = 60 * 1000 };

struct program {
    const struct options *options;
    struct loop *loop;
    struct agent *agent;
    struct standalone standalone;
    bool stopping, done;
};

static void on_stop_signal(void *ctx, int signo)
{
    struct program *p = ctx;
    output_say(agent_output(p->agent), p->stopping ? "signal %d again: killing" : "signal %d: stopping", signo);
    agent_shutdown(p->agent, p->stopping ? 0 : p->options->grace_ms);
    p->stopping = true;
}

static void on_report(void *ctx, const struct agent_report *r)
{
    struct program *p = ctx;
    standalone_report(&p->standalone, r);
}

static void on_done(void *ctx)
{
    struct program *p = ctx;
    p->done = true;
}

static int count_gpus(void)
{
    glob_t found;
    int n = glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return n ? n : GPUS_UNKNOWN;
}

static int cannot(const struct err *err)
{
    fprintf(stderr, "cadre-agent: %s\n", err->msg);
    return EXIT_CANNOT;
}

static int run(const struct options *o)
{
    static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct program p = {.options = o, .loop = loop_new()};
    struct loop_signal *signals[ARRAY_LEN(stop_signals)];
    struct err err = ERR_INIT;
    const struct agent_config config = {.loop = p.loop,
                                        .out = STDOUT_FILENO,
                                        .err = STDERR_FILENO,
                                        .env = (const char *const *)environ,
                                        .argv = o->argv,
                                        .gpus = count_gpus(),
                                        .report = on_report,
                                        .done = on_done,
                                        .ctx = &p};
    signal(SIGPIPE, SIG_IGN);
    p.agent = agent_new(&config);
    p.standalone = (struct standalone){.agent = p.agent, .options = o};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        signals[i] = loop_signal_new(p.loop, stop_signals[i], on_stop_signal, &p);
    if (standalone_start(&p.standalone, &err) == 0)
        while (!p.done)
            loop_run_once(p.loop, TURN_MS); // not loop_run(): waiting for SIGCHLD alone would not keep it up
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        loop_signal_free(signals[i]);
    agent_free(p.agent);
    loop_free(p.loop);
    return err.code < 0 ? cannot(&err) : p.standalone.exit_code;
}

// Descriptors 0 to 2 that the caller closed would be handed out again, for pipes.
static void open_standard(void)
{
    for (int fd; (fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0;)
        if (fd > STDERR_FILENO) {
            close(fd);
            break;
        }
}

int main(int argc, char **argv)
{
    struct options o;
    struct err err = ERR_INIT;
    open_standard();
    int code = options_parse(argc, argv, &o);
    if (code >= 0)
        return code;
    if (o.mode == OPTIONS_INSTALL)
        return install_program(o.dir, &err) < 0 ? cannot(&err) : 0;
    return run(&o);
}
