// SPDX-License-Identifier: Apache-2.0
// How long tests wait for what must come. It decides nothing: a test that works is over when what it waits for has
// happened, however busy its machine is.
#ifndef CADRE_TESTS_UNIT_PATIENCE_H
#define CADRE_TESTS_UNIT_PATIENCE_H

#define PATIENCE_MS (120 * 1000)

#endif
