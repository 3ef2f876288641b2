// SPDX-License-Identifier: Apache-2.0
// bench-beside-gloo: all_reduce of Cadre's back end gloo beside gloo's own, on four processes of this machine. The two
// take turns within each pair, and every second pair begins with the other one. Prints a line for each size: bytes,
// medians of both in milliseconds; of the pairs' ratios (Cadre to gloo) the median and the quartiles; and the median of
// the ratios of CPU time of all four, which other programs on the machine hardly change.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

extern "C" {
#include "bench/lib/samples.h"
#include "tests/unit/support/team.h"
}

namespace
{

enum { MEMBERS = 4, PAIRS = 41, LIMIT_MS = 60 * 1000 };
const size_t counts[] = {1 << 8, 1 << 14, 1 << 20, 1 << 24}; // of F32

double now_ms()
{
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::milli>(clock::now().time_since_epoch()).count();
}

std::shared_ptr<gloo::Context> make_own(const team_member *m, const char *folder)
{
    gloo::transport::tcp::attr attr("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(m->index, m->n);
    context->connectFullMesh(store, device);
    return context;
}

void reduce_own(const std::shared_ptr<gloo::Context> &context, std::vector<float> &x)
{
    gloo::AllreduceOptions options(context);
    options.setOutput(x.data(), x.size());
    options.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
}

// The CPU time of this process, with all of its threads.
double cpu_ms()
{
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

struct times {
    samples ms, cpu;
};

// Begun together; the slowest member is what counts, and a barrier shows it. Then the CPU times are added up.
template <typename F> void measure(cadre_comm *comm, size_t calls, times *to, F f)
{
    cadre_barrier(comm);
    double begin = now_ms(), cpu = cpu_ms();
    for (size_t i = 0; i < calls; i++)
        f();
    cpu = cpu_ms() - cpu;
    cadre_barrier(comm);
    double ms = now_ms() - begin;
    if (cadre_all_reduce(comm, "F64", &cpu, &cpu, 1, CADRE_SUM) != CADRE_OK)
        std::exit(1);
    samples_add(&to->ms, ms / (double)calls);
    samples_add(&to->cpu, cpu / (double)calls);
}

void print(size_t bytes, const times &cadre, const times &gloo)
{
    samples ms, cpu;
    samples_ratios(&cadre.ms, &gloo.ms, &ms);
    samples_ratios(&cadre.cpu, &gloo.cpu, &cpu);
    std::printf("%zu %.3f %.3f %.2f %.2f %.2f %.2f\n", bytes, samples_median(&cadre.ms), samples_median(&gloo.ms),
                samples_median(&ms), samples_quantile(&ms, 0.25), samples_quantile(&ms, 0.75), samples_median(&cpu));
    std::fflush(stdout);
}

void compare(const team_member *m, cadre_comm *comm, const std::shared_ptr<gloo::Context> &own, size_t count)
{
    std::vector<float> x(count, 0);
    times cadre = {}, gloo = {}, warm = {};
    size_t calls = count < (1 << 20) ? 50 : 1;
    auto ours = [&](times *to) {
        measure(comm, calls, to, [&] {
            if (cadre_all_reduce(comm, "F32", x.data(), x.data(), x.size(), CADRE_SUM) != CADRE_OK)
                std::exit(1);
        });
    };
    auto theirs = [&](times *to) { measure(comm, calls, to, [&] { reduce_own(own, x); }); };
    ours(&warm);
    theirs(&warm);
    for (int i = 0; i < PAIRS; i++) {
        if (i % 2)
            ours(&cadre);
        theirs(&gloo);
        if (i % 2 == 0)
            ours(&cadre);
    }
    if (m->index == 0)
        print(count * sizeof(float), cadre, gloo);
}

int run(const team_member *m, void *ctx)
{
    err e = {};
    cadre_comm *comm = team_join(m, &e);
    if (!comm) {
        std::fprintf(stderr, "bench-beside-gloo: error: %s\n", e.msg);
        return 1;
    }
    auto own = make_own(m, static_cast<const char *>(ctx));
    for (size_t count : counts)
        compare(m, comm, own, count);
    cadre_comm_free(comm);
    return 0;
}

} // namespace

int main()
{
    char folder[] = "/tmp/cadre-bench-XXXXXX";
    team t;
    int failed = !mkdtemp(folder);
    team_start(&t, MEMBERS, LIMIT_MS, run, folder);
    for (int i = 0; i < MEMBERS; i++)
        failed |= team_wait(&t, i);
    std::filesystem::remove_all(folder);
    return failed;
}
