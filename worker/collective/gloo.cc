// SPDX-License-Identifier: Apache-2.0
// The back end gloo: memory of the host, over TCP. A shared object of its own, the only code of ours in C++.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "sdk/c/include/cadre/collective.h"
#include "worker/collective/backend.h"
}

#include "worker/collective/reduce.h"

namespace
{

using Bytes = std::vector<char>;
constexpr uint64_t PEER_SLOT = 1; // of send and recv; those of collectives begin with the number of their kind

std::chrono::milliseconds ms(int64_t n)
{
    return std::chrono::milliseconds(n);
}

// gloo writes to connections that the other side has closed. The thread that it starts meanwhile inherits the mask.
class WithoutSigpipe
{
  public:
    WithoutSigpipe()
    {
        sigset_t pending;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, &before);
        sigpending(&pending);
        was_pending = sigismember(&pending, SIGPIPE);
    }

    ~WithoutSigpipe()
    {
        const struct timespec now = {0, 0};
        while (!was_pending && sigtimedwait(&pipe, nullptr, &now) < 0 && errno == EINTR)
            ;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

  private:
    sigset_t pipe, before;
    bool was_pending;
};

class Mesh : public gloo::Context
{
  public:
    Mesh(int index, int n, const char *address, int64_t limit_ms) : gloo::Context(index, n)
    {
        device_ = gloo::transport::tcp::CreateDevice(address);
        setTimeout(ms(limit_ms));
        transportContext_ = device_->createContext(rank, size);
        transportContext_->setTimeout(ms(limit_ms));
        for (int i = 0; i < size; i++)
            addresses.push_back(i == rank ? Bytes() : transportContext_->createPair(i)->address().bytes());
    }

    void join(const std::vector<std::vector<Bytes>> &all)
    {
        for (int i = 0; i < size; i++)
            if (i != rank)
                transportContext_->getPair(i)->connect(all[i].at(rank));
        find_sockets(all);
    }

    // gloo wakes nobody when it closes a connection itself, but everybody when the other side has.
    void abort()
    {
        for (int fd : sockets)
            ::shutdown(fd, SHUT_RDWR);
    }

    std::vector<Bytes> addresses; // one for each peer
    std::vector<int> sockets;     // copies of its descriptors

  private:
    // gloo keeps its sockets to itself. Of each connection one end has an address that one of the two has published.
    void find_sockets(const std::vector<std::vector<Bytes>> &all)
    {
        DIR *dir = opendir("/proc/self/fd");
        for (struct dirent *e; dir && (e = readdir(dir));) {
            int fd = (int)std::strtol(e->d_name, nullptr, 10);
            if (e->d_name[0] != '.' && is_mine(fd, all))
                sockets.push_back(fcntl(fd, F_DUPFD_CLOEXEC, 3));
        }
        if (dir)
            closedir(dir);
        if (sockets.size() != (size_t)size - 1)
            throw std::runtime_error("this gloo publishes its addresses in another form than Cadre knows");
    }

    bool is_mine(int fd, const std::vector<std::vector<Bytes>> &all) const
    {
        struct sockaddr_storage here, there;
        socklen_t here_len = sizeof here, there_len = sizeof there;
        if (getsockname(fd, (struct sockaddr *)&here, &here_len) != 0 ||
            getpeername(fd, (struct sockaddr *)&there, &there_len) != 0)
            return false;
        for (int i = 0; i < size; i++)
            if (i != rank && (same(addresses[i], here) || same(all[i][rank], there)))
                return true;
        return false;
    }

    static bool same(const Bytes &published, const struct sockaddr_storage &address)
    {
        size_t len = address.ss_family == AF_INET ? 8 : address.ss_family == AF_INET6 ? 24 : 0;
        return len && published.size() >= len && std::memcmp(published.data(), &address, len) == 0;
    }
};

// Each address of the list: u32 length, bytes.
void put(Bytes &out, const Bytes &one)
{
    uint32_t len = (uint32_t)one.size();
    out.insert(out.end(), (const char *)&len, (const char *)&len + sizeof len);
    out.insert(out.end(), one.begin(), one.end());
}

std::vector<Bytes> take(const char *data, size_t len, int n)
{
    std::vector<Bytes> list;
    for (int i = 0; i < n; i++) {
        uint32_t size;
        if (len < sizeof size)
            throw std::runtime_error("a member has sent something else than its addresses");
        std::memcpy(&size, data, sizeof size);
        if (size > len - sizeof size)
            throw std::runtime_error("a member has sent something else than its addresses");
        list.emplace_back(data + sizeof size, data + sizeof size + size);
        data += sizeof size + size;
        len -= sizeof size + size;
    }
    return list;
}

// The collectives

void all_reduce(const std::shared_ptr<Mesh> &mesh, const backend_op *op, reduce_function reduce)
{
    gloo::AllreduceOptions o(mesh);
    size_t len = op->n * op->item;
    if (op->in != op->out)
        std::memcpy(op->out, op->in, len);
    // gloo counts in elements of its own: those of the function are behind a pointer, so bytes will do.
    switch (op->item) {
    case 1:
        o.setOutput((uint8_t *)op->out, op->n);
        break;
    case 2:
        o.setOutput((uint16_t *)op->out, op->n);
        break;
    case 4:
        o.setOutput((uint32_t *)op->out, op->n);
        break;
    default:
        o.setOutput((uint64_t *)op->out, op->n);
        break;
    }
    o.setReduceFunction(reduce);
    o.setTag(op->number);
    o.setTimeout(ms(op->limit_ms));
    gloo::allreduce(o);
}

// A ring: what a member adds to came from the one before it, and goes on to the one behind it.
void reduce_scatter(const std::shared_ptr<Mesh> &mesh, const backend_op *op, reduce_function reduce)
{
    const size_t len = op->n * op->item;
    const int n = mesh->size, me = mesh->rank;
    const uint64_t slot = PEER_SLOT + 1 + op->number;
    Bytes mine(len), theirs(len);
    auto part = [&](int i) { return (const char *)op->in + (size_t)(((i % n) + n) % n) * len; };
    std::memcpy(mine.data(), part(me - 1), len);
    for (int step = 0; step < n - 1; step++) {
        auto from = mesh->createUnboundBuffer(mine.data(), len), to = mesh->createUnboundBuffer(theirs.data(), len);
        from->send((me + 1) % n, slot);
        to->recv((me + n - 1) % n, slot);
        to->waitRecv(ms(op->limit_ms));
        from->waitSend(ms(op->limit_ms));
        reduce(theirs.data(), theirs.data(), part(me - 2 - step), op->n);
        mine.swap(theirs);
    }
    std::memcpy(op->out, mine.data(), len);
}

void all_gather(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    gloo::AllgatherOptions o(mesh);
    size_t len = op->n * op->item;
    o.setInput((char *)const_cast<void *>(op->in), len);
    o.setOutput((char *)op->out, len * mesh->size);
    o.setTag(op->number);
    o.setTimeout(ms(op->limit_ms));
    gloo::allgather(o);
}

void all_to_all(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    gloo::AlltoallOptions o(mesh);
    size_t len = op->n * op->item * mesh->size;
    o.setInput((char *)const_cast<void *>(op->in), len);
    o.setOutput((char *)op->out, len);
    o.setTag(op->number);
    o.setTimeout(ms(op->limit_ms));
    gloo::alltoall(o);
}

void broadcast(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    gloo::BroadcastOptions o(mesh);
    o.setOutput((char *)op->out, op->n * op->item);
    o.setRoot(op->peer);
    o.setTag(op->number);
    o.setTimeout(ms(op->limit_ms));
    gloo::broadcast(o);
}

void barrier(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    gloo::BarrierOptions o(mesh);
    o.setTag(op->number);
    o.setTimeout(ms(op->limit_ms));
    gloo::barrier(o);
}

void send(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    auto buffer = mesh->createUnboundBuffer(const_cast<void *>(op->in), op->n * op->item);
    buffer->send(op->peer, PEER_SLOT);
    buffer->waitSend(ms(op->limit_ms));
}

void recv(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    auto buffer = mesh->createUnboundBuffer(op->out, op->n * op->item);
    buffer->recv(op->peer, PEER_SLOT);
    buffer->waitRecv(ms(op->limit_ms));
}

int run_op(const std::shared_ptr<Mesh> &mesh, const backend_op *op, struct err *err)
{
    bool reduces = op->kind == BACKEND_ALL_REDUCE || op->kind == BACKEND_REDUCE_SCATTER;
    bool mean = op->reduction == CADRE_MEAN;
    reduce_function reduce = reduces ? reduce_find(op->dtype, mean ? CADRE_SUM : op->reduction) : nullptr;
    if (reduces && (!reduce || (mean && !reduce_divides(op->dtype))))
        return err_set(err, ERR_INVALID, "gloo does not reduce this type in this way");
    switch (op->kind) {
    case BACKEND_ALL_REDUCE:
        all_reduce(mesh, op, reduce);
        break;
    case BACKEND_REDUCE_SCATTER:
        reduce_scatter(mesh, op, reduce);
        break;
    case BACKEND_ALL_GATHER:
        all_gather(mesh, op);
        break;
    case BACKEND_ALL_TO_ALL:
        all_to_all(mesh, op);
        break;
    case BACKEND_BROADCAST:
        broadcast(mesh, op);
        break;
    case BACKEND_BARRIER:
        barrier(mesh, op);
        break;
    case BACKEND_SEND:
        send(mesh, op);
        break;
    case BACKEND_RECV:
        recv(mesh, op);
        break;
    }
    if (reduces && mean)
        reduce_divide(op->dtype, op->out, op->n, mesh->size);
    return 0;
}

// The face in C: no exception leaves it.

template <typename F> int guarded(struct err *err, int code, F f)
{
    WithoutSigpipe quiet;
    try {
        return f();
    } catch (const std::exception &e) {
        return err_set(err, std::strstr(e.what(), "imed out") ? ERR_TIMEOUT : code, "gloo: %s", e.what());
    }
}

struct Self {
    explicit Self(std::shared_ptr<Mesh> m) : mesh(std::move(m))
    {
    }

    // gloo would drop what the others have not read yet.
    ~Self()
    {
        const struct linger none = {0, 0};
        std::vector<int> sockets = mesh->sockets;
        mesh.reset();
        for (int fd : sockets) {
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
            ::close(fd);
        }
    }

    std::shared_ptr<Mesh> mesh;
};

void *open(const struct backend_config *config, char **ret_blob, size_t *ret_len, struct err *err)
{
    Self *self = nullptr;
    guarded(err, ERR_UNAVAILABLE, [&] {
        auto mesh = std::make_shared<Mesh>(config->index, config->n, config->address, config->limit_ms);
        Bytes blob;
        for (const Bytes &one : mesh->addresses)
            put(blob, one);
        *ret_blob = (char *)std::malloc(blob.size() + 1);
        if (!*ret_blob)
            std::abort();
        std::memcpy(*ret_blob, blob.data(), blob.size());
        *ret_len = blob.size();
        self = new Self(mesh);
        return 0;
    });
    return self;
}

int connect(void *self, char *const *blobs, const size_t *lens, struct err *err)
{
    auto &mesh = static_cast<Self *>(self)->mesh;
    return guarded(err, ERR_UNAVAILABLE, [&] {
        std::vector<std::vector<Bytes>> all;
        for (int i = 0; i < mesh->size; i++)
            all.push_back(take(blobs[i], lens[i], mesh->size));
        mesh->join(all);
        return 0;
    });
}

int run(void *self, const struct backend_op *op, struct err *err)
{
    auto &mesh = static_cast<Self *>(self)->mesh;
    return guarded(err, ERR_IO, [&] { return run_op(mesh, op, err); });
}

void abort_all(void *self)
{
    static_cast<Self *>(self)->mesh->abort();
}

void close(void *self)
{
    WithoutSigpipe quiet;
    delete static_cast<Self *>(self);
}

const struct backend gloo_backend = {BACKEND_VERSION, open, connect, run, abort_all, close};

} // namespace

extern "C" CADRE_EXPORT const struct backend *cadre_backend(void);
extern "C" const struct backend *cadre_backend(void)
{
    return &gloo_backend;
}
