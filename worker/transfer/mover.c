// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/mover.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "worker/transfer/flow.h"
#include "worker/transfer/local_receiver.h"
#include "worker/transfer/local_sender.h"
#include "worker/transfer/relay_link.h"

#include <stdlib.h>
#include <unistd.h>

enum { LEAVE_MS = 1000, LEAVE_LOOK_US = 2000 };
enum { LOOK_AT = 4096, SHORT = 1024 }; // chunks to look at, and bytes of a chunk

enum { NCCL_TICK_MS = 1 }; // nothing wakes this rank when a round of NCCL is done

const struct mover_sizes mover_sizes = {
    .step = 8 << 20, .least_written = 4 << 20, .told = 64 << 20, .round = 64 << 20, .packed = 256 << 10};

struct mover_peer { // a rank that gives bytes to this rank, or gets bytes from it
    bool gives, relays;
    uint32_t number; // as in the pieces of the plan
    int member;      // index of its name
    const char *name;
    int64_t moved_ms; // when it last gave bytes to this rank
    uint64_t bytes;
    struct transfer_cursor cursor;     // over the bytes that this rank reads or writes directly, or that the peer reads
    struct local_sender *local_sender; // NULL = this rank cannot read its memory
    bool writes;                       // it is a sender that writes to the memory of this rank
    struct local_receiver *local_receiver; // NULL = this rank does not write to its memory
    uint64_t written, told;                // bytes written directly, and bytes that the receiver knows of
    bool uses_nccl;                        // `pair` is its number in the flow of NCCL
    size_t pair;
    uint64_t came;          // bytes that have arrived by NCCL
    struct flow *flow;      // NULL = none yet
    struct relay_link link; // if this rank or the peer is a relay
    int fd;
    bool over;
};

struct mover {
    struct mover_config config;
    uint32_t own; // the number of this rank as the sender of pieces
    struct mover_peer *peers;
    size_t n;
    struct mover_peer **sources, **takers; // by their numbers; NULL = that rank is not a peer
    uint32_t n_from, n_to;
    size_t first_direct; // the peer whose memory this rank reads or writes first
    struct pollfd *polled;
    struct local_sender_room *room; // of a receiver
    struct window *window;          // of a relay, or of a receiver that senders write to
    struct nccl_flow *nccl;         // NULL = nothing goes by NCCL
    size_t n_nccl;                  // pairs
};

static void begin(const struct mover *m, const struct mover_peer *p, struct transfer_cursor *c)
{
    const struct mover_config *o = &m->config;
    transfer_cursor_init(c, o->from, o->to, o->plan, p->gives ? m->own : p->number, p->gives ? p->number : o->rank);
}

// Returns a flag for each of the n blocks of the other rank: the plan moves bytes from it, or to it.
static bool *find_wanted(const struct mover_peer *p, size_t n)
{
    bool *wanted = xcalloc(n + 1, sizeof *wanted);
    for (size_t i = 0; i < p->cursor.n; i++)
        wanted[p->gives ? p->cursor.pieces[i].destination : p->cursor.pieces[i].source] = true;
    return wanted;
}

static void look_into(const struct mover *m, struct mover_peer *p, const struct window_place *place)
{
    const struct mover_config *o = &m->config;
    struct err ignored = ERR_INIT;
    size_t n = p->relays ? o->to->n : o->from->n;
    _cleanup_(free_p) bool *wanted = find_wanted(p, n);
    (void)local_sender_new(place, o->here, wanted, n, o->blocks, m->room, &p->local_sender, &ignored);
}

static struct mover_peer *add_peer(struct mover *m, bool gives, uint32_t number, bool relays)
{
    const struct mover_config *o = &m->config;
    size_t pieces;
    (void)transfer_plan_sends(o->plan, gives ? m->own : number, gives ? number : o->rank, &pieces);
    if (!pieces)
        return NULL;
    struct mover_peer *p = &m->peers[m->n++];
    uint32_t rank = relays && !gives ? number - m->n_from : number;
    *p = (struct mover_peer){.gives = gives, .relays = relays, .number = number, .fd = -1};
    p->member = (int)(gives || relays ? rank : m->n_to + rank);
    p->name = o->names[p->member];
    begin(m, p, &p->cursor);
    p->bytes = p->cursor.left;
    p->cursor.until = relays ? 0 : p->cursor.n;
    return p;
}

static void add_sources(struct mover *m)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->n_from + m->n_to; i++) {
        struct mover_peer *p = m->sources[i] = add_peer(m, false, i, i >= m->n_from);
        total += p ? p->bytes : 0;
        if (p && !p->relays)
            look_into(m, p, &m->config.places[i]);
    }
    atomic_store(&m->config.progress->total, total);
}

// The kernel looks up each run of bytes in the memory of the other process (local_receiver.h). So the side with fewer
// runs should be the other process. The first chunks show which side that is.
static bool costs_less_written(const struct mover *m, const struct mover_peer *p)
{
    struct transfer_cursor c;
    struct transfer_chunk k, last = {.len = 0};
    size_t chunks = 0, read = 0, written = 0;
    begin(m, p, &c);
    for (; chunks < LOOK_AT && transfer_cursor_next(&c, c.left, &k); chunks++) {
        read += !chunks || k.source != last.source || k.from != last.from + last.len;
        written += !chunks || k.destination != last.destination || k.to != last.to + last.len;
        last = k;
    }
    return read > 2 * written && p->bytes - c.left >= chunks * SHORT;
}

// If there are fewer senders than receivers, they would have to do more work, so they do not write. A relay reads,
// because it passes on each piece as soon as the piece is there.
static bool let_senders_write(struct mover *m)
{
    bool may = m->config.shows && m->n_from >= m->n_to && !blocks_any_on_device(m->config.blocks), any = false;
    for (size_t i = 0; may && i < m->n; i++) {
        struct mover_peer *p = &m->peers[i];
        p->writes = p->local_sender && !p->relays && local_sender_in_memory(p->local_sender) &&
                    p->bytes >= m->config.sizes->least_written && costs_less_written(m, p);
        any = any || p->writes;
    }
    return any;
}

static void open_window(struct mover *m, bool relays)
{
    if (relays && m->config.shows)
        m->window = window_new(m->config.blocks);
    else if (!relays && let_senders_write(m))
        m->window = window_new_room(m->config.blocks);
}

struct mover *mover_new(const struct mover_config *config)
{
    struct mover *m = xcalloc(1, sizeof *m);
    m->config = *config;
    m->config.sizes = config->sizes ? config->sizes : &mover_sizes;
    m->n_from = transfer_side_world(config->from);
    m->n_to = transfer_side_world(config->to);
    m->own = config->sends ? config->rank : m->n_from + config->rank;
    size_t most = (size_t)m->n_from + 2 * (size_t)m->n_to;
    m->peers = xcalloc(most, sizeof *m->peers);
    m->polled = xcalloc(most, sizeof *m->polled);
    m->sources = xcalloc(most, sizeof(struct mover_peer *));
    m->takers = m->sources + m->n_from + m->n_to;
    m->room = config->sends ? NULL : local_sender_room_new();
    if (!config->sends)
        add_sources(m);
    size_t sources = m->n;
    for (uint32_t i = 0; i < m->n_to; i++)
        m->takers[i] = add_peer(m, true, i, !config->sends);
    size_t direct = config->sends ? m->n : sources;
    m->first_direct = direct ? config->rank % direct : 0; // ranks begin with different peers
    if (!config->sends)
        open_window(m, m->n > sources);
    return m;
}

// The driver wants processes that read memory of this GPU to close it before this rank frees it. They close their
// connections after that. This rank does not wait longer for a process that stands still.
static void wait_for_readers(struct mover *m)
{
    int64_t until = clock_mono_ms(&clock_system) + LEAVE_MS, left = LEAVE_MS;
    for (size_t i = 0; i < m->n && blocks_any_on_device(m->config.blocks); i++) {
        struct pollfd p = {.fd = m->peers[i].fd, .events = POLLIN};
        if (m->peers[i].gives && m->peers[i].link.reads && left > 0)
            (void)poll(&p, 1, (int)left);
        left = until - clock_mono_ms(&clock_system);
    }
}

static void hang_up(struct mover_peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

void mover_free(struct mover *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        local_sender_free(m->peers[i].local_sender);
        local_receiver_free(m->peers[i].local_receiver);
        flow_free(m->peers[i].flow);
        if (!m->peers[i].gives)
            hang_up(&m->peers[i]);
    }
    wait_for_readers(m);
    window_end(m->window);
    for (size_t i = 0; i < m->n; i++)
        hang_up(&m->peers[i]);
    free(m->peers);
    free(m->polled);
    free(m->sources);
    free(m->room);
    free(m);
}

enum mover_way mover_way(const struct mover *m, uint32_t sender)
{
    const struct mover_peer *p = m->sources[sender];
    if (p && !p->local_sender)
        return MOVER_CONNECTS;
    return p && p->writes ? MOVER_IS_WRITTEN : MOVER_READS;
}

void mover_show(const struct mover *m, struct window_place *ret)
{
    *ret = *m->config.here;
    if (m->window)
        window_show(m->window, ret);
}

// Writing to the memory of receivers

static bool has_connections(const struct mover *m)
{
    bool any = false;
    for (size_t i = 0; i < m->n; i++)
        any = any || m->peers[i].fd >= 0;
    return any;
}

int mover_write_to(struct mover *m, uint32_t receiver, const struct window_place *where, struct err *err)
{
    const struct mover_config *o = &m->config;
    struct mover_peer *p = m->takers[receiver];
    if (!p || has_connections(m) || blocks_any_on_device(o->blocks))
        return err_set(err, ERR_UNAVAILABLE, "this rank has nothing to write, or connections");
    _cleanup_(free_p) bool *wanted = find_wanted(p, o->to->n);
    return local_receiver_new(where, o->here, wanted, o->to->n, o->blocks, &p->local_receiver, err);
}

bool mover_wrote(struct mover *m, uint32_t *ret_receiver, uint64_t *ret_bytes)
{
    for (size_t i = 0; i < m->n; i++) {
        struct mover_peer *p = &m->peers[i];
        if (!p->local_receiver || (p->over ? p->told == p->bytes : p->written - p->told < m->config.sizes->told))
            continue;
        *ret_receiver = p->number;
        *ret_bytes = p->told = p->written;
        return true;
    }
    return false;
}

void mover_written(struct mover *m, uint32_t sender, uint64_t bytes)
{
    struct mover_peer *p = m->sources[sender];
    if (!p || !p->writes || p->over || bytes <= p->written)
        return;
    if (bytes > p->bytes) {
        p->writes = false;
        return;
    }
    atomic_fetch_add(&m->config.progress->done, bytes - p->written);
    p->written = bytes;
    p->moved_ms = clock_mono_ms(&clock_system);
    p->over = bytes == p->bytes;
    if (p->over) {
        p->cursor.i = p->cursor.n;
        p->cursor.left = 0;
    }
}

static bool may_still_write(const struct mover *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct mover_peer *p = &m->peers[i];
        if (p->writes && !p->over && local_sender_may_act(p->local_sender))
            return true;
    }
    return false;
}

// Senders check the window before each write.
bool mover_leave(struct mover *m)
{
    int64_t until = clock_mono_ms(&clock_system) + LEAVE_MS;
    window_end(TAKE_PTR(m->window));
    while (may_still_write(m) && clock_mono_ms(&clock_system) < until)
        usleep(LEAVE_LOOK_US);
    return !may_still_write(m);
}

// NCCL

static void use_nccl(struct mover *m, struct nccl_flow *flow, struct mover_peer *p, int rank)
{
    if (!p)
        return;
    m->nccl = flow;
    p->uses_nccl = true;
    p->pair = m->n_nccl++;
    begin(m, p, nccl_flow_add(flow, rank));
}

void mover_use_nccl_from(struct mover *m, struct nccl_flow *flow, uint32_t sender, int rank)
{
    use_nccl(m, flow, m->sources[sender], rank);
}

void mover_use_nccl_to(struct mover *m, struct nccl_flow *flow, uint32_t receiver, int rank)
{
    use_nccl(m, flow, m->takers[receiver], rank);
}

static int step_nccl(struct mover *m, struct err *err)
{
    if (!m->nccl || nccl_flow_is_over(m->nccl))
        return 0;
    int r = nccl_flow_step(m->nccl, err);
    for (size_t i = 0; i < m->n; i++) {
        struct mover_peer *p = &m->peers[i];
        uint64_t came = p->uses_nccl ? nccl_flow_moved(m->nccl, p->pair) : 0;
        if (p->gives || came == p->came)
            continue;
        atomic_fetch_add(&m->config.progress->done, came - p->came);
        p->came = came;
        p->over = came == p->bytes;
    }
    return MIN(r, 0);
}

// Connections

static void open_flow(struct mover *m, struct mover_peer *p)
{
    p->flow = flow_new(p->fd, p->gives, m->config.blocks);
    begin(m, p, flow_cursor(p->flow));
    flow_cursor(p->flow)->until = p->gives ? p->cursor.until : p->cursor.n;
}

// A peer may ask for a connection although the plan has no bytes for it.
static struct mover_peer *connect_peer(struct mover_peer *p, int fd)
{
    if (p)
        p->fd = p->link.fd = fd;
    else
        close(fd);
    return p;
}

void mover_connect_from(struct mover *m, uint32_t source, int fd)
{
    struct mover_peer *p = connect_peer(m->sources[source], fd);
    if (p && !p->relays)
        open_flow(m, p);
}

int mover_connect_to(struct mover *m, uint32_t receiver, int fd, struct err *err)
{
    struct mover_peer *p = connect_peer(m->takers[receiver], fd);
    struct window_place place = *m->config.here;
    if (p && !p->relays)
        open_flow(m, p);
    if (!p || !p->relays)
        return 0;
    if (m->window)
        window_show(m->window, &place);
    return relay_link_show(&p->link, &place, err) < 0 ? err_wrap(err, "%s", p->name) : 0;
}

// Steps

static size_t pieces_of(const struct mover *m, const struct mover_peer *p)
{
    if (p->uses_nccl)
        return nccl_flow_pieces(m->nccl, p->pair);
    return p->flow ? flow_moved(p->flow) : p->cursor.i;
}

static bool has_arrived(const struct mover *m, const struct transfer_piece *p)
{
    const struct transfer_piece *first = &m->config.plan->pieces[p->first];
    const struct mover_peer *from = m->sources[first->from];
    return first < from->cursor.pieces + pieces_of(m, from);
}

// True if another piece has arrived that this rank has to relay to p.
static bool there_is_more(const struct mover *m, const struct mover_peer *p)
{
    return p->relays && p->gives && p->cursor.until < p->cursor.n && has_arrived(m, &p->cursor.pieces[p->cursor.until]);
}

// Lets peers have the pieces that have arrived and that this rank relays.
static int pass_on(struct mover *m, struct err *err)
{
    bool more = false;
    for (size_t i = 0; !more && i < m->n; i++)
        more = there_is_more(m, &m->peers[i]);
    if (more && blocks_settle(m->config.blocks, err) < 0)
        return err->code;
    for (size_t i = 0; more && i < m->n; i++) {
        struct mover_peer *p = &m->peers[i];
        while (there_is_more(m, p))
            p->cursor.until++;
        if (p->flow && p->relays && p->gives)
            flow_cursor(p->flow)->until = p->cursor.until;
    }
    return 0;
}

// A relay and its receiver agree on how the pieces move. After that, they have a flow, or marks.
static int agree(struct mover *m, struct mover_peer *p, struct err *err)
{
    struct window_place place;
    bool there = false;
    int r = p->gives ? relay_link_hear(&p->link, err) : relay_link_look(&p->link, &place, &there, err);
    if (r == 0 && there) {
        look_into(m, p, &place);
        r = relay_link_answer(&p->link, p->local_sender, err);
    }
    if (r == 0 && p->link.answered && !p->link.reads)
        open_flow(m, p);
    return r;
}

static int run_connection(struct mover *m, struct mover_peer *p, struct err *err)
{
    if (p->relays && !p->link.answered && (agree(m, p, err) < 0 || !p->link.answered))
        return err->code;
    if (p->flow) {
        int r = flow_run(p->flow, err);
        p->over = r > 0;
        return MIN(r, 0);
    }
    if (p->gives) {
        int r = relay_link_mark(&p->link, p->cursor.until, err);
        p->over = p->link.marks == p->cursor.n;
        return r;
    }
    int r = p->cursor.until < p->cursor.n ? relay_link_take(&p->link, err) : 0;
    p->cursor.until = MIN(p->link.marks, p->cursor.n);
    return r;
}

static int move_directly(const struct mover *m, struct mover_peer *p, struct err *err)
{
    uint64_t step = m->config.sizes->step;
    int r = p->gives ? local_receiver_write(p->local_receiver, &p->cursor, step, err)
                     : local_sender_read(p->local_sender, &p->cursor, step, err);
    if (r == 0 && p->gives)
        p->written = p->bytes - p->cursor.left;
    p->over = r == 0 && !p->cursor.left;
    return r;
}

static int step_peer(struct mover *m, struct mover_peer *p, bool directly, struct err *err)
{
    uint64_t before = p->flow ? flow_cursor(p->flow)->left : p->cursor.left;
    int r = directly ? move_directly(m, p, err) : run_connection(m, p, err);
    uint64_t left = p->flow ? flow_cursor(p->flow)->left : p->cursor.left;
    if (!p->gives)
        atomic_fetch_add(&m->config.progress->done, before - left);
    if (before != left)
        p->moved_ms = clock_mono_ms(&clock_system);
    return r < 0 ? err_wrap(err, "%s", p->name) : 0;
}

// Returns the next peer whose memory this rank can read or write now. NULL = there is none.
static struct mover_peer *next_direct(struct mover *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct mover_peer *p = &m->peers[(m->first_direct + i) % m->n];
        bool direct = p->gives ? p->local_receiver != NULL : p->local_sender && !p->writes;
        if (direct && p->cursor.i < p->cursor.until)
            return p;
    }
    return NULL;
}

static bool is_connected(const struct mover_peer *p)
{
    return p->fd >= 0 && !p->over;
}

// True if a receiver has got all its bytes, or if a sender has sent all. Bytes that others read are not work of a
// sender.
static bool is_over(const struct mover *m)
{
    bool over = !m->nccl || nccl_flow_is_over(m->nccl);
    for (size_t i = 0; i < m->n; i++) {
        const struct mover_peer *p = &m->peers[i];
        over = over && (p->over || (m->config.sends ? !p->flow && !p->local_receiver : p->gives));
    }
    return over;
}

int mover_step(struct mover *m, struct err *err)
{
    struct mover_peer *direct = next_direct(m);
    int r = direct ? step_peer(m, direct, true, err) : 0;
    for (size_t i = 0; r == 0 && i < m->n; i++)
        if (is_connected(&m->peers[i]))
            r = step_peer(m, &m->peers[i], false, err);
    if (r == 0)
        r = step_nccl(m, err);
    if (r == 0)
        r = pass_on(m, err);
    return r < 0 ? r : is_over(m);
}

// Returns the events to poll for. 0: the connection has no work before other bytes arrive.
static short waits_for(const struct mover_peer *p)
{
    if (!is_connected(p))
        return 0;
    if (p->relays && !p->link.answered)
        return POLLIN;
    if (!p->gives)
        return p->flow || p->cursor.until < p->cursor.n ? POLLIN : 0;
    return (p->flow ? flow_has_work(p->flow) : p->link.marks < p->cursor.until) ? POLLOUT : 0;
}

int mover_waits(struct mover *m, struct pollfd **ret, size_t *ret_n)
{
    *ret = m->polled;
    *ret_n = 0;
    for (size_t i = 0; i < m->n; i++) {
        short events = waits_for(&m->peers[i]);
        if (events)
            m->polled[(*ret_n)++] = (struct pollfd){m->peers[i].fd, events, 0};
    }
    if (next_direct(m))
        return 0;
    return m->nccl && !nccl_flow_is_over(m->nccl) ? NCCL_TICK_MS : MOVER_WAITS;
}

int mover_waits_for(const struct mover *m)
{
    const struct mover_peer *longest = NULL;
    for (size_t i = 0; i < m->n; i++) {
        const struct mover_peer *p = &m->peers[i];
        if (!p->gives && (is_connected(p) || (p->writes && !p->over)) && (!longest || p->moved_ms < longest->moved_ms))
            longest = p;
    }
    return longest ? longest->member : -1;
}

int mover_end(struct mover *m, struct err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        struct mover_peer *p = &m->peers[i];
        if (p->local_sender && local_sender_end(p->local_sender, err) < 0)
            return err_wrap(err, "%s", p->name);
        if (!p->gives && p->relays)
            hang_up(p);
    }
    return blocks_settle(m->config.blocks, err);
}

struct mover_bytes mover_bytes(const struct mover *m)
{
    struct mover_bytes sums = {.direct = 0};
    for (size_t i = 0; i < m->n; i++) {
        const struct mover_peer *p = &m->peers[i];
        uint64_t bytes = p->gives ? 0 : p->bytes;
        if (p->local_sender)
            sums.direct += bytes;
        else if (p->uses_nccl)
            sums.nccl += bytes;
        else if (p->flow)
            sums.sent += bytes;
    }
    return sums;
}
