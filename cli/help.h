// SPDX-License-Identifier: Apache-2.0
// What --help prints.
#ifndef CADRE_CLI_HELP_H
#define CADRE_CLI_HELP_H

const char *help_of(const char *verb); // NULL or an unknown one: the summary

#endif
