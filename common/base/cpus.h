// SPDX-License-Identifier: Apache-2.0
// How many CPUs this process may use at the same time.
#pragma once

// The CPUs that the scheduler lets this process use, or fewer if the quota of its control group is lower. Whole CPUs,
// at least 1. A process in a container sees the control group of its container.
unsigned cpus_available(void);
// The whole CPUs of "QUOTA PERIOD", the text of cpu.max; 0 if it sets no quota ("max 100000").
unsigned cpus_of_quota(const char *text);
