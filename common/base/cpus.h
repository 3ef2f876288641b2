// SPDX-License-Identifier: Apache-2.0
// How many CPUs this process may use at the same time.
#pragma once

// What the scheduler lets it run on, or less where its control group has a quota: whole ones, 1 at the least. Of the
// control group that it sees, as in a container.
unsigned cpus_available(void);
// Of "QUOTA PERIOD" as in cpu.max, in whole CPUs; 0 where that is no quota ("max 100000").
unsigned cpus_of_quota(const char *text);
