// SPDX-License-Identifier: Apache-2.0
// bench-beside-gloo: all_reduce of Cadre's back end gloo beside gloo's own, on four processes of this machine, in
// turns. Prints a line for each size: bytes, medians of both in milliseconds, the median of the ratios (Cadre to gloo).
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

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

enum { MEMBERS = 4, PAIRS = 15, LIMIT_MS = 60 * 1000 };
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

// Once each, so that all begin together; the time of the slowest member is what counts, and a barrier shows it.
template <typename F> double timed(cadre_comm *comm, size_t times, F f)
{
    cadre_barrier(comm);
    double begin = now_ms();
    for (size_t i = 0; i < times; i++)
        f();
    cadre_barrier(comm);
    return (now_ms() - begin) / (double)times;
}

void compare(const team_member *m, cadre_comm *comm, const std::shared_ptr<gloo::Context> &own, size_t count)
{
    std::vector<float> x(count, 0);
    samples cadre = {}, gloo = {}, ratios;
    size_t times = count < (1 << 20) ? 50 : 1;
    auto ours = [&] {
        if (cadre_all_reduce(comm, "F32", x.data(), x.data(), x.size(), CADRE_SUM) != CADRE_OK)
            std::exit(1);
    };
    auto theirs = [&] { reduce_own(own, x); };
    timed(comm, times, theirs);
    timed(comm, times, ours);
    for (int i = 0; i < PAIRS; i++) {
        samples_add(&gloo, timed(comm, times, theirs));
        samples_add(&cadre, timed(comm, times, ours));
    }
    samples_ratios(&cadre, &gloo, &ratios);
    if (m->index == 0)
        std::printf("%zu %.3f %.3f %.2f\n", count * sizeof(float), samples_median(&cadre), samples_median(&gloo),
                    samples_median(&ratios));
    std::fflush(stdout);
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
