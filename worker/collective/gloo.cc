// SPDX-License-Identifier: Apache-2.0
// The back end gloo: memory of the host, over TCP. A shared object of its own, the only code of ours in C++.
#include <gloo/context.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

extern "C" {
#include "sdk/c/include/cadre/collective.h"
#include "worker/collective/backend.h"
}

#include "worker/collective/reduce.h"

namespace
{

using Bytes = std::vector<char>;

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

// gloo's connections between all members, and waits that end when the communicator is aborted. gloo's own collectives
// cannot be used: where a connection breaks while gloo answers the other side, gloo forgets to wake who waits.
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
    }

    void wait(gloo::transport::UnboundBuffer *buffer, bool receives, int64_t limit_ms)
    {
        begin(buffer);
        bool done = false;
        try {
            done = receives ? buffer->waitRecv(ms(limit_ms)) : buffer->waitSend(ms(limit_ms));
        } catch (...) {
            begin(nullptr);
            throw;
        }
        begin(nullptr);
        if (!done)
            throw std::runtime_error("aborted");
    }

    void abort()
    {
        std::lock_guard<std::mutex> lock(mutex);
        aborted = true;
        if (waiting) {
            waiting->abortWaitRecv();
            waiting->abortWaitSend();
        }
    }

    // For what arrives before it is reduced. It stays, so that a collective finds memory without page faults; at most
    // as much as a Ring has ahead.
    char *room(size_t len)
    {
        if (len > room_len) {
            room_.reset(new char[len]);
            room_len = len;
        }
        return room_.get();
    }

    std::vector<Bytes> addresses; // one for each peer

  private:
    void begin(gloo::transport::UnboundBuffer *buffer)
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (buffer && aborted)
            throw std::runtime_error("aborted");
        waiting = buffer;
    }

    std::mutex mutex; // of what follows
    bool aborted = false;
    gloo::transport::UnboundBuffer *waiting = nullptr;
    std::unique_ptr<char[]> room_;
    size_t room_len = 0;
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

// The transfers of one collective that are under way. Between two members, bytes arrive in the order sent.
class Flow
{
  public:
    Flow(const std::shared_ptr<Mesh> &m, const backend_op *o) : mesh(m), op(o)
    {
        bool pair = op->kind == BACKEND_SEND || op->kind == BACKEND_RECV;
        slot = pair ? 0 : 1 + (uint64_t)op->number;
    }

    // An empty message is not sent; the other side knows the length.
    void send(int to, const void *data, size_t len)
    {
        if (!len)
            return;
        sends.push_back(mesh->createUnboundBuffer(const_cast<void *>(data), len));
        sends.back()->send(to, slot);
    }

    void recv(int from, void *data, size_t len)
    {
        recvs.push_back(len ? mesh->createUnboundBuffer(data, len) : nullptr);
        if (len)
            recvs.back()->recv(from, slot);
    }

    void received() // the first that has not been
    {
        if (recvs.front())
            mesh->wait(recvs.front().get(), true, op->limit_ms);
        recvs.pop_front();
    }

    void sent(size_t left) // all but so many
    {
        for (; sends.size() > left; sends.pop_front())
            mesh->wait(sends.front().get(), false, op->limit_ms);
    }

  private:
    std::shared_ptr<Mesh> mesh;
    const backend_op *op;
    uint64_t slot;
    std::deque<std::unique_ptr<gloo::transport::UnboundBuffer>> sends, recvs;
};

// A ring, in which everything goes to the next member. Each of the parts, one a member, is cut into pieces, so that one
// is reduced while the next is on its way.
struct Ring {
    static constexpr size_t PIECE = 2 << 20, SMALL = 64 << 10; // bytes
    static constexpr size_t AHEAD = 2;                         // pieces that may arrive before they are wanted

    Ring(const std::shared_ptr<Mesh> &m, const backend_op *o, size_t elements, size_t all)
        : mesh(m), op(o), n(m->size), me(m->rank), next((me + 1) % n), before((me + n - 1) % n), part(elements),
          total(all)
    {
        size_t bytes = part * op->item;
        pieces = bytes <= SMALL ? 1 : std::max<size_t>((bytes + PIECE - 1) / PIECE, 2);
    }

    // Bytes of piece i of a part among the values of all parts: where, and how many.
    std::pair<char *, size_t> piece(char *data, int of, size_t i) const
    {
        size_t number = (size_t)(((of % n) + n) % n), from = std::min(number * part, total);
        size_t len = std::min(part, total - from), each = largest(), begin = std::min(i * each, len);
        return {data + (from + begin) * op->item, std::min(each, len - begin) * op->item};
    }

    size_t largest() const // elements of a piece
    {
        return (part + pieces - 1) / pieces;
    }

    std::shared_ptr<Mesh> mesh;
    const backend_op *op;
    int n, me, next, before;
    size_t part, total, pieces; // elements of the largest part, and of all
};

// After it, each member has the reduced values of the part with its number. The others are used up.
void reduce_parts(const Ring &r, char *data, reduce_function reduce)
{
    Flow flow(r.mesh, r.op);
    const size_t count = (size_t)(r.n - 1) * r.pieces;
    const size_t ahead = std::min<size_t>(Ring::AHEAD, count);
    const size_t each = r.largest() * r.op->item;
    char *const room = r.mesh->room(ahead * each);
    auto space = [&](size_t i) { return room + i % ahead * each; };
    auto outgoing = [&](size_t i) { return r.piece(data, r.me - 1 - (int)(i / r.pieces), i % r.pieces); };
    auto incoming = [&](size_t i) { return r.piece(data, r.me - 2 - (int)(i / r.pieces), i % r.pieces); };
    for (size_t i = 0; i < ahead; i++)
        flow.recv(r.before, space(i), incoming(i).second);
    for (size_t i = 0; i < count; i++) {
        auto out = outgoing(i), in = incoming(i);
        flow.send(r.next, out.first, out.second);
        flow.received();
        reduce(in.first, in.first, space(i), in.second / r.op->item);
        if (i + ahead < count)
            flow.recv(r.before, space(i), incoming(i + ahead).second);
        flow.sent(r.pieces);
    }
    flow.sent(0);
}

// Each member has the part with its number, and gets the others.
void gather_parts(const Ring &r, char *data)
{
    Flow flow(r.mesh, r.op);
    const size_t count = (size_t)(r.n - 1) * r.pieces;
    for (size_t i = 0; i < count; i++) {
        auto in = r.piece(data, r.me - 1 - (int)(i / r.pieces), i % r.pieces);
        flow.recv(r.before, in.first, in.second);
    }
    for (size_t i = 0; i < count; i++) {
        auto out = r.piece(data, r.me - (int)(i / r.pieces), i % r.pieces);
        flow.send(r.next, out.first, out.second);
        if (i + 1 >= r.pieces) // the next to be sent is what came a part ago
            flow.received();
    }
    for (size_t i = 1; i < r.pieces; i++)
        flow.received();
    flow.sent(0);
}

// The collectives

void all_reduce(const std::shared_ptr<Mesh> &mesh, const backend_op *op, reduce_function reduce)
{
    if (op->in != op->out)
        std::memcpy(op->out, op->in, op->n * op->item);
    Ring ring(mesh, op, (op->n + mesh->size - 1) / mesh->size, op->n);
    reduce_parts(ring, (char *)op->out, reduce);
    gather_parts(ring, (char *)op->out);
}

void reduce_scatter(const std::shared_ptr<Mesh> &mesh, const backend_op *op, reduce_function reduce)
{
    const size_t len = op->n * op->item;
    Bytes data((const char *)op->in, (const char *)op->in + len * mesh->size);
    reduce_parts(Ring(mesh, op, op->n, op->n * mesh->size), data.data(), reduce);
    std::memcpy(op->out, data.data() + len * mesh->rank, len);
}

void all_gather(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    const size_t len = op->n * op->item;
    std::memmove((char *)op->out + len * mesh->rank, op->in, len);
    gather_parts(Ring(mesh, op, op->n, op->n * mesh->size), (char *)op->out);
}

void all_to_all(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    Flow flow(mesh, op);
    const size_t len = op->n * op->item;
    const int n = mesh->size, me = mesh->rank;
    for (int i = 1; i < n; i++)
        flow.recv((me + n - i) % n, (char *)op->out + len * ((me + n - i) % n), len);
    for (int i = 1; i < n; i++)
        flow.send((me + i) % n, (const char *)op->in + len * ((me + i) % n), len);
    std::memcpy((char *)op->out + len * me, (const char *)op->in + len * me, len);
    for (int i = 1; i < n; i++)
        flow.received();
    flow.sent(0);
}

// A tree: who has it sends it on to those that are twice as far from the root.
void broadcast(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    Flow flow(mesh, op);
    const size_t len = op->n * op->item;
    const int n = mesh->size, place = (mesh->rank + n - op->peer) % n;
    int step = 1;
    while (step < n && !(place & step))
        step <<= 1;
    if (place) {
        flow.recv((place - step + op->peer) % n, op->out, len);
        flow.received();
    }
    while (step >>= 1)
        if (place + step < n)
            flow.send((place + step + op->peer) % n, op->out, len);
    flow.sent(0);
}

// Each hears of twice as many in every round.
void barrier(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    Flow flow(mesh, op);
    const int n = mesh->size, me = mesh->rank;
    const char here = 0;
    char there;
    for (int step = 1; step < n; step <<= 1) {
        flow.recv((me + n - step) % n, &there, 1);
        flow.send((me + step) % n, &here, 1);
        flow.received();
    }
    flow.sent(0);
}

void send(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    Flow flow(mesh, op);
    flow.send(op->peer, op->in, op->n * op->item);
    flow.sent(0);
}

void recv(const std::shared_ptr<Mesh> &mesh, const backend_op *op)
{
    Flow flow(mesh, op);
    flow.recv(op->peer, op->out, op->n * op->item);
    flow.received();
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
        self = new Self{mesh};
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

const struct backend gloo_backend = {BACKEND_VERSION, open, connect, run, nullptr, abort_all, close};

} // namespace

extern "C" CADRE_EXPORT const struct backend *cadre_backend(void);
extern "C" const struct backend *cadre_backend(void)
{
    return &gloo_backend;
}
