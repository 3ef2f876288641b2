// SPDX-License-Identifier: Apache-2.0
// The message of the center to a member that is to join a communicator of NCCL:
//
//   u64 number of the communicator, u32 n, u32 pairs of this member, struct nccl_flow_sizes: u64 round, u64 packed,
//   u32 runs; the unique id, u32 rank of each member of the transfer, all ones = it is not in it
//
// Pure. A member believes nothing that would make it use memory that it does not have.
#pragma once

#include "worker/transfer/nccl_flow.h"

struct join_message {
    uint64_t number; // of the communicator; never 0
    int n;           // its members
    uint32_t pairs;  // of the member that gets this message
    struct nccl_flow_sizes sizes;
    struct nccl_id id;
    int *
        ranks; // of all members of the transfer, in the communicator; -1 = that member is outside. The caller owns them
};

// `members`: of the transfer.
size_t join_message_len(int members);
void join_message_write(const struct join_message *m, int members, char *out);
// Call this with room for the ranks. `own`: the member that reads. `most`: how many bytes its rounds may have together.
// Returns false if the message contradicts itself.
bool join_message_read(struct join_message *ret, const char *in, size_t len, int members, int own, uint64_t most);
