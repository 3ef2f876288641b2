// SPDX-License-Identifier: Apache-2.0
// The start of programs with torchrun, NCCL or MPI, small enough to read: every rank connects to rank 0 at
// MASTER_ADDR:MASTER_PORT and names itself. When all of them are there, rank 0 prints the roll-call and lets them go.
//
// One line each way, then rank 0 closes the connection:
//   rank -> rank 0   hello MASTER_ADDR WORLD_SIZE RANK LOCAL_RANK HOST NODE
//   rank 0 -> rank   go | no REASON
// MASTER_ADDR is in the hello because addresses of pods are used again: a rank that got an old one from DNS would else
// join a group that is not its own.
#include "job.h"
#include "join.h"
#include "roll.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static const char usage[] =
    "usage: rendezvous [--exit] [--timeout SECONDS] [--fail-rank N [--exit-code C]]\n"
    "\n"
    "Every rank joins rank 0 at MASTER_ADDR:MASTER_PORT, rank 0 prints the roll-call, and all stay until SIGTERM.\n"
    "\n"
    "  --exit              exit with 0 after the roll-call instead of staying\n"
    "  --timeout SECONDS   give up with 1 if not all ranks are there by then (default 300)\n"
    "  --fail-rank N       rank N exits with an error after the roll-call\n"
    "  --exit-code C       ... with this one, 1 to 255 (default 1)\n"
    "\n"
    "Environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (in a WorkerGroup they are set), and if there are any\n"
    "LOCAL_RANK and NODE_NAME, which are shown in the roll-call.\n";

static bool options_parse(struct job *job, int argc, char **argv)
{
    static const struct option options[] = {
        {"exit", no_argument, NULL, 'e'},
        {"timeout", required_argument, NULL, 't'},
        {"fail-rank", required_argument, NULL, 'f'},
        {"exit-code", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool ok = true;
        switch (option) {
        case 'e':
            job->exit_after = true;
            break;
        case 't':
            ok = number_parse(optarg, 1, 86400, &job->timeout_s);
            break;
        case 'f':
            ok = number_parse(optarg, 0, WORLD_MAX - 1, &job->fail_rank);
            break;
        case 'c':
            ok = number_parse(optarg, 1, 255, &job->fail_code);
            break;
        case 'h':
            fputs(usage, stdout);
            exit(EXIT_SUCCESS);
        default:
            fputs("rendezvous --help lists the options\n", stderr);
            return false;
        }
        if (!ok) {
            fprintf(stderr, "rendezvous: \"%s\" is not a number that this option takes (rendezvous --help)\n", optarg);
            return false;
        }
    }
    if (optind < argc)
        fprintf(stderr, "rendezvous: \"%s\" is too much (rendezvous --help)\n", argv[optind]);
    return optind == argc;
}

static bool environment_number(const char *name, const char *fallback, long min, long max, int *ret)
{
    const char *text = getenv(name);
    if (number_parse(text ? text : fallback, min, max, ret))
        return true;
    fprintf(stderr, "rendezvous: %s is %s%s%s, it has to be a number from %ld to %ld\n", name, text ? "\"" : "",
            text ? text : "not set", text ? "\"" : "", min, max);
    return false;
}

static bool environment_name(const char *name, const char *value, char *ret)
{
    if (name_copy(ret, value))
        return true;
    fprintf(stderr, "rendezvous: %s is %s\n", name, value ? "not a name" : "not set");
    return false;
}

static bool environment_read(struct job *job)
{
    char host[NAME_SIZE] = "", addr[NAME_SIZE];
    const char *node = getenv("NODE_NAME");
    gethostname(host, sizeof host - 1);
    job->addr = getenv("MASTER_ADDR");
    job->port = getenv("MASTER_PORT");
    int port;
    bool ok = environment_number("WORLD_SIZE", NULL, 1, WORLD_MAX, &job->world) &&
              environment_number("RANK", NULL, 0, job->world - 1, &job->rank) &&
              environment_number("LOCAL_RANK", "0", 0, INT32_MAX, &job->self.local_rank) &&
              environment_number("MASTER_PORT", NULL, 1, 65535, &port) &&
              environment_name("MASTER_ADDR", job->addr, addr) &&
              environment_name("NODE_NAME", node && *node ? node : "-", job->self.node) &&
              environment_name("the host's name", host, job->self.host);
    if (!ok)
        fputs("A WorkerGroup sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its pods. By hand:\n"
              "  MASTER_ADDR=localhost MASTER_PORT=29500 WORLD_SIZE=1 RANK=0 rendezvous --exit\n",
              stderr);
    return ok;
}

// Returns the exit code.
static int stay(const struct job *job)
{
    job_say(job, "go: %d of %d on host %s, node %s, local rank %d", job->rank, job->world, job->self.host,
            job->self.node, job->self.local_rank);
    if (job->rank == job->fail_rank) {
        job_say(job, "fails as asked, exit code %d", job->fail_code);
        return job->fail_code;
    }
    if (job->exit_after)
        return EXIT_SUCCESS;
    struct signalfd_siginfo info;
    while (read(job->signals, &info, sizeof info) < 0 && errno == EINTR) {
    }
    job_say(job, "told to stop");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct job job = {.timeout_s = 300, .fail_rank = -1, .fail_code = 1, .self = {.here = true}};
    if (!options_parse(&job, argc, argv) || !environment_read(&job))
        return EXIT_USAGE;
    setvbuf(stdout, NULL, _IOLBF, 0);                 // kubectl logs -f shows each line as it comes
    setenv("RES_OPTIONS", "timeout:1 attempts:2", 0); // a lost DNS packet must not eat the deadline

    // The first process of a container gets no signal that it does not ask for.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    job.signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (job.signals < 0) {
        job_say(&job, "signalfd: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    job.deadline = now_ms() + (int64_t)job.timeout_s * 1000;
    bool together = job.rank == 0 ? roll_lead(&job) : join_master(&job);
    int code = together ? stay(&job) : EXIT_FAILURE;
    close(job.signals);
    return code;
}
