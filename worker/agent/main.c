// SPDX-License-Identifier: Apache-2.0
// cadre-agent: builds the parts, turns the loop, and takes the parts down in order.
#include "common/base/mem.h"
#include "worker/agent/agent.h"
#include "worker/agent/agent_options.h"
#include "worker/agent/control.h"
#include "worker/agent/install.h"
#include "worker/agent/nursery.h"
#include "worker/agent/operators.h"
#include "worker/agent/standalone.h"

#include <fcntl.h>
#include <glob.h>
#include <nss.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CANNOT = 1, TURN_MS = 24 * 3600 * 1000, GOODBYE_MS = 1000 };

struct agent_parts {
    const struct agent_options *options;
    struct loop *loop;
    struct agent *agent;
    struct standalone standalone;
    struct control *control;     // NULL = no program watches this one
    struct operators *operators; // NULL for `cadre-agent run`
    struct probe *probe;         // NULL = there are no GPUs to watch
    bool stopping, done;
};

static void on_stop_signal(void *ctx, int signo)
{
    struct agent_parts *p = ctx;
    rank_output_say(agent_output(p->agent), p->stopping ? "signal %d again: killing" : "signal %d: stopping", signo);
    if (p->operators) // say goodbye before the first process exits because of this
        operators_goodbye(p->operators);
    agent_shutdown(p->agent, p->stopping ? 0 : p->options->grace_ms);
    p->stopping = true;
}

static void on_report(void *ctx, const struct agent_report *r)
{
    struct agent_parts *p = ctx;
    if (p->operators)
        operators_report(p->operators, r);
    if (p->control)
        control_report(p->control, r);
    if (p->options->mode == AGENT_OPTIONS_RUN)
        standalone_report(&p->standalone, r);
}

static void on_printed(void *ctx, const char *group, int rank, const char *text, size_t len)
{
    const struct agent_parts *p = ctx;
    if (p->operators)
        operators_printed(p->operators, group, rank, text, len);
}

static void on_done(void *ctx)
{
    struct agent_parts *p = ctx;
    p->done = true;
}

static int count_gpus(void)
{
    glob_t found;
    int n = glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return n ? n : GPUS_UNKNOWN;
}

static void on_gpus(void *ctx, bool urgent)
{
    const struct agent_parts *p = ctx;
    if (p->operators && urgent)
        operators_gpus(p->operators);
}

static void watch_gpus(struct agent_parts *p)
{
    const char *const *env = (const char *const *)environ;
    int n = count_gpus();
    _cleanup_(free_p) char *path = install_beside(INSTALL_GPUS);
    const char *const argv[] = {path, NULL};
    const struct probe_config config = {.loop = p->loop,
                                        .agent = p->agent,
                                        .argv = argv,
                                        .env = env,
                                        .pod_gpus = n,
                                        .err = STDERR_FILENO,
                                        .changed = on_gpus,
                                        .ctx = p};
    if (!probe_wanted(env, n))
        return;
    if (path)
        p->probe = probe_new(&config);
    else
        rank_output_say(agent_output(p->agent), "GPUs: not watched: there is no " INSTALL_GPUS " beside cadre-agent");
}

static int cannot(const struct err *err)
{
    fprintf(stderr, "cadre-agent: %s\n", err->msg);
    return EXIT_CANNOT;
}

static int begin(struct agent_parts *p, struct err *err)
{
    const struct agent_options *o = p->options;
    if (o->mode == AGENT_OPTIONS_RUN) {
        p->standalone = (struct standalone){.agent = p->agent, .options = o};
        if (o->control >= 0 && !(p->control = control_new(p->loop, p->agent, o->control, err)))
            return err->code;
        p->standalone.control = p->control;
        return standalone_start(&p->standalone, err);
    }
    // Ignores nsswitch.conf of the image: a static program cannot load plugins. Pods need only files and dns.
    __nss_configure_lookup("hosts", "files dns");
    watch_gpus(p);
    p->operators = operators_new(p->loop, p->agent, p->probe, o->operator_url, getenv("CADRE_CA"), o->token_file, err);
    return err->code;
}

static void say_goodbye(struct agent_parts *p)
{
    int64_t until = clock_mono_ms(&clock_system) + GOODBYE_MS;
    if (!p->operators)
        return;
    operators_close(p->operators);
    while (!operators_closed(p->operators) && clock_mono_ms(&clock_system) < until)
        loop_run_once(p->loop, GOODBYE_MS / 10);
}

static int run(const struct agent_options *o)
{
    static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct agent_parts p = {.options = o, .loop = loop_new()};
    struct loop_signal *signals[ARRAY_LEN(stop_signals)];
    struct err err = ERR_INIT;
    const struct template_preforked preforked = template_preforked_take();
    _cleanup_(free_p) char *brought = install_brought();
    const struct agent_config config = {.loop = p.loop,
                                        .out = STDOUT_FILENO,
                                        .err = STDERR_FILENO,
                                        .env = (const char *const *)environ,
                                        .argv = o->argv,
                                        .brought = brought,
                                        .preforked = preforked,
                                        .gpus = count_gpus(),
                                        .report = on_report,
                                        .printed = on_printed,
                                        .done = on_done,
                                        .ctx = &p};
    signal(SIGPIPE, SIG_IGN);
    p.agent = agent_new(&config);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        signals[i] = loop_signal_new(p.loop, stop_signals[i], on_stop_signal, &p);
    begin(&p, &err);
    while (err.code == 0 && !p.done)
        loop_run_once(p.loop, TURN_MS); // not loop_run(): it returns if only SIGCHLD is watched
    say_goodbye(&p);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        loop_signal_free(signals[i]);
    operators_free(p.operators);
    probe_free(p.probe);
    control_free(p.control);
    agent_free(p.agent);
    loop_free(p.loop);
    return err.code < 0 ? cannot(&err) : p.standalone.exit_code;
}

// Opens the descriptors 0 to 2 that the caller closed. Otherwise a pipe would get their numbers.
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
    struct agent_options o;
    struct err err = ERR_INIT;
    open_standard();
    int code = agent_options_parse(argc, argv, &o);
    if (code >= 0)
        return code;
    if (o.mode == AGENT_OPTIONS_INSTALL)
        return install_program(o.dir, &err) < 0 ? cannot(&err) : 0;
    if (o.mode == AGENT_OPTIONS_RUN && nursery_run(argc, argv, o.control, &code))
        return code;
    return run(&o);
}
