// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/mover.h"

#include "common/base/mem.h"
#include "worker/transfer/flow.h"
#include "worker/transfer/local_sender.h"

#include <stdlib.h>
#include <unistd.h>

enum { DIRECT_STEP = 8 << 20 };

struct peer { // a rank of the other side
    uint64_t bytes;
    struct local_sender *local_sender; // NULL = not read directly
    struct transfer_cursor cursor;
    struct flow *flow; // NULL = none yet
    int fd;
    bool over;
};

struct mover {
    struct mover_config config;
    struct peer *peers;
    uint32_t n;
    uint32_t turn; // the peer that is read directly now
    struct pollfd *polled;
    struct local_sender_room *room; // of a receiver
};

static void begin(const struct mover *m, uint32_t other, struct transfer_cursor *c)
{
    const struct mover_config *o = &m->config;
    transfer_cursor_init(c, o->from, o->to, o->plan, o->sends ? o->rank : other, o->sends ? other : o->rank);
}

// Which blocks of a sender it gets anything from.
static bool *find_wanted(const struct mover *m, uint32_t sender)
{
    size_t n;
    const struct transfer_piece *p = transfer_plan_sends(m->config.plan, sender, m->config.rank, &n);
    bool *wanted = xcalloc(m->config.from->n + 1, sizeof *wanted);
    for (size_t i = 0; i < n; i++)
        wanted[p[i].source] = true;
    return wanted;
}

static void look_into(const struct mover *m, uint32_t sender, struct peer *p)
{
    const struct mover_config *o = &m->config;
    struct err ignored = ERR_INIT;
    _cleanup_(free_p) bool *wanted = find_wanted(m, sender);
    (void)local_sender_new(&o->places[sender], o->here, wanted, o->from->n, o->blocks, m->room, &p->local_sender,
                           &ignored);
}

struct mover *mover_new(const struct mover_config *config)
{
    struct mover *m = xcalloc(1, sizeof *m);
    uint64_t total = 0;
    m->config = *config;
    m->n = transfer_side_world(config->sends ? config->to : config->from);
    m->peers = xcalloc(m->n, sizeof *m->peers);
    m->polled = xcalloc(m->n, sizeof *m->polled);
    m->room = config->sends ? NULL : local_sender_room_new();
    m->turn = config->rank % m->n; // receivers begin with different senders
    for (uint32_t i = 0; i < m->n; i++) {
        struct peer *p = &m->peers[i];
        begin(m, i, &p->cursor);
        p->fd = -1;
        p->bytes = p->cursor.left;
        p->over = !p->bytes;
        total += p->bytes;
        if (p->bytes && !config->sends)
            look_into(m, i, p);
    }
    if (!config->sends)
        atomic_store(&config->progress->total, total);
    return m;
}

void mover_free(struct mover *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n; i++) {
        local_sender_free(m->peers[i].local_sender);
        flow_free(m->peers[i].flow);
        if (m->peers[i].fd >= 0)
            close(m->peers[i].fd);
    }
    free(m->peers);
    free(m->polled);
    free(m->room);
    free(m);
}

bool mover_needs(const struct mover *m, uint32_t other)
{
    return m->peers[other].bytes && !m->peers[other].local_sender;
}

void mover_connect(struct mover *m, uint32_t other, int fd)
{
    struct peer *p = &m->peers[other];
    p->fd = fd;
    p->flow = flow_new(fd, m->config.sends, m->config.blocks);
    begin(m, other, flow_cursor(p->flow));
}

static int step_peer(struct mover *m, struct peer *p, struct err *err)
{
    struct transfer_cursor *c = p->local_sender ? &p->cursor : flow_cursor(p->flow);
    uint64_t before = c->left;
    int r = p->local_sender ? local_sender_read(p->local_sender, c, DIRECT_STEP, err) : flow_run(p->flow, err);
    if (!m->config.sends)
        atomic_fetch_add(&m->config.progress->done, before - c->left);
    p->over = r >= 0 && (p->local_sender ? !c->left : r > 0);
    return r < 0 ? err_wrap(err, "%s", m->config.names[p - m->peers]) : 0;
}

// What is read directly is read one sender after the other, beginning with the turn. NULL = nothing is left.
static struct peer *next_direct(struct mover *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        struct peer *p = &m->peers[(m->turn + i) % m->n];
        if (p->local_sender && !p->over)
            return p;
    }
    return NULL;
}

// Of a sender: what others read directly is not its own work.
static bool is_over(const struct mover *m)
{
    bool over = true;
    for (uint32_t i = 0; i < m->n; i++)
        over = over && (m->peers[i].over || (m->config.sends && !m->peers[i].flow));
    return over;
}

int mover_step(struct mover *m, struct err *err)
{
    struct peer *direct = next_direct(m);
    int r = direct ? step_peer(m, direct, err) : 0;
    for (uint32_t i = 0; r == 0 && i < m->n; i++)
        if (m->peers[i].flow && !m->peers[i].over)
            r = step_peer(m, &m->peers[i], err);
    return r < 0 ? r : is_over(m);
}

bool mover_waits(struct mover *m, struct pollfd **ret, size_t *ret_n)
{
    *ret = m->polled;
    *ret_n = 0;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->peers[i].flow && !m->peers[i].over)
            m->polled[(*ret_n)++] = (struct pollfd){m->peers[i].fd, m->config.sends ? POLLOUT : POLLIN, 0};
    return !next_direct(m);
}

int mover_end(const struct mover *m, struct err *err)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->peers[i].local_sender && local_sender_end(m->peers[i].local_sender, err) < 0)
            return err_wrap(err, "%s", m->config.names[i]);
    return blocks_settle(m->config.blocks, err);
}

uint64_t mover_bytes(const struct mover *m, bool direct)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n; i++)
        if (direct ? m->peers[i].local_sender != NULL : m->peers[i].flow != NULL)
            sum += m->peers[i].bytes;
    return sum;
}
