// SPDX-License-Identifier: Apache-2.0
// Processes of a test that move weights: receivers and senders, whose tensors are split by columns and by rows.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TROOP_MAX = 8,
    TROOP_LONG_MS = 600 * 1000,
    TROOP_SHORT_MS = 150,
    TROOP_PATIENCE = 30, // times the limit: so long the others wait for one who stands still
    TROOP_LINE = 512,
    TROOP_BYTES = 64 * 4 * 4096 * 4 + 30 * 7 * 8 + 1000 * 2, // of all tensors
};

enum troop_refusal { // what the kernel does not let them do with the memory of receivers
    TROOP_LET,
    TROOP_NO_READ,
    TROOP_NO_WRITE,
    TROOP_NO_SECOND_WRITE, // that moves anything
};
enum troop_lie {
    TROOP_TRUTH,
    // The first sender lies to the center:
    TROOP_LIES_ABOUT_SIDE,
    TROOP_LIES_ABOUT_ERROR,
    // The center lies to all:
    TROOP_SAYS_NOTHING,
    TROOP_SAYS_LITTLE,
};

enum troop_oddity { // of one member
    TROOP_EVEN,
    TROOP_WANTS_NO_NCCL,
    TROOP_NCCL_BLOCKS,
    TROOP_LACKS_NCCL,
    TROOP_OTHER_NCCL, // another version
    TROOP_SAME_GPU,   // as member 0
};

struct troop_scene {
    int n_receivers, n_senders;
    bool direct;
    int64_t limit_ms;
    int victim; // -1 = none
    const char *fault;
    int signal;
    bool mismatch, differs;
    int late; // a member that does not come, -1 = none
    int slow; // after its HELLO, this sender reads nothing until all others are through; -1 = none
    bool canceled;
    bool absent;        // senders see no member that comes until all is over
    bool again;         // it is the second transfer, and nobody meets at the center or the witness
    int started_again;  // `again`: for the others, this member is a new process, and NCCL works then; -1 = none
    bool rest;          // of the first transfer, messages are still under way
    bool apart;         // the first sender is in another transfer than the others
    bool on_device[2];  // senders, receivers: their weights are on GPUs
    bool gpus_hang;     // all, from the beginning of the transfer on
    bool leaves_thread; // a thread waits in NCCL when a member ends, which LeakSanitizer does not survive
    bool by_nccl;       // all weights are on GPUs, and members have NCCL
    enum troop_oddity oddity;
    int odd;        // the member
    size_t packed;  // runs that are shorter are packed for NCCL
    int nccl_limit; // a part of the limit: so long members join a communicator
    // Letters of the machine and the container of each member; NULL = all are in this one.
    const char *const *places;
    uint64_t piece_max;
    bool alike; // all receivers get all
    enum troop_lie lie;
    enum troop_refusal refused; // to senders
};

struct troop_result { // by a member at its end
    char weights[8], code[16], text[TROOP_LINE];
    uint64_t direct, nccl, sent;
    uint64_t given;   // bytes that this member has written into the connections of those who came to it for weights
    uint64_t written; // and to their memory
    bool died;
};

extern const struct troop_scene troop_plain; // nothing happens
extern const char *troop_names[TROOP_MAX];   // of the members of the last run: "rank 1 of actor"

struct troop_counts { // of the stand-in for NCCL
    int inits, aborts;
};

// Each member's words are in said[]. If a victim stands still, the others end before it goes on. Whether the fault has
// happened: on a machine that is too busy, a short limit ends before.
bool troop_run(const struct troop_scene *c, struct troop_result *said);
// The same over the stand-ins for the driver and for NCCL, with these lines in their control file. `ret` may be NULL.
bool troop_run_on_gpus(const struct troop_scene *c, const char *control, struct troop_result *said,
                       struct troop_counts *ret);
// All receivers have these weights, and all members have ended with this error.
void troop_all_have(const struct troop_scene *c, const struct troop_result *said, const char *weights,
                    const char *code);
// After a victim: no receiver has mixed weights, and all that live have the same.
void troop_agree(const struct troop_scene *c, const struct troop_result *said);

struct troop_scene troop_on_gpus(void); // all members can use NCCL, and need it
// Returns the bytes that went through connections.
uint64_t troop_given(const struct troop_scene *c, const struct troop_result *said);
// Runs it on GPUs until all have the new weights, none of them directly. Returns the bytes that went through
// connections.
uint64_t troop_run_by_nccl(const struct troop_scene *c, const char *control, struct troop_counts *ret);
